#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit.h"
#include "clock.h"
#include "command.h"
#include "err.h"
#include "fault.h"
#include "file.h"
#include "hex.h"
#include "inspect.h"
#include "json.h"
#include "keys.h"
#include "messages.h"
#include "option.h"
#include "rng.h"
#include "row.h"
#include "services.h"
#include "shared.h"
#include "store.h"
#include "version.h"

#define NAMES_MAX X509_NAMES_MAX
#define DATABASE "rivulet.db"
#define FIRST_TOKEN_USES 100
#define FIRST_TOKEN_SECONDS (7 * 86400)

struct options {
	bool new_database;
	struct option_words names;
};

struct first {
	struct services s;
	const struct services_ca *ca; /* of s, taken */
	struct store_token token;
};

static enum err
put_first(struct store_db *db, void *arg, struct why *why)
{
	struct json *facts = json_object();
	const struct first *f = arg;
	char hex[KEY_ID_HEX];

	hex_encode(hex, f->ca->hash, HASH_LEN);
	json_add_string(facts, "version", version_text());
	json_add_string(facts, "ca", hex);
	enum err e = audit_append(db, &f->s,
	    &(struct audit_event){.event = RECORD_COORDINATOR_INITIALISED, .facts = facts}, why);
	if (!e)
		e = store_meta_put(db, "incarnation", f->s.incarnation);
	if (!e)
		e = keys_compare_note(db, f->ca);
	if (!e)
		e = store_token_put(db, &f->token);
	return e ? e
		 : audit_token(db, &f->s, RECORD_TOKEN_CREATED, &f->token, "rivuletd init", why);
}

/* --- what is there */

static void
state_path(const struct config *config, const char *name, char out[CONFIG_PATH_MAX + 32])
{
	snprintf(out, CONFIG_PATH_MAX + 32, "%s/%s", config->state_dir, name);
}

static bool
is_there(const struct config *config, const char *name)
{
	char path[CONFIG_PATH_MAX + 32];

	state_path(config, name, path);
	return access(path, F_OK) == 0;
}

/* Is there a database? True also for one that cannot be read, as it may hold everything. */
static bool
has_database(const struct config *config)
{
	char path[CONFIG_PATH_MAX + 32];
	struct store_db *db = NULL;
	uint64_t version = 1;

	state_path(config, DATABASE, path);
	enum err e = store_inspect_open(&db, path, false, &version, NULL);
	store_inspect_close(db);
	return e != ERR_NOTFOUND && (e || version > 0);
}

/* Is the database to be made? An unfinished init, which left its mark, goes on; a CA alone says that the database is lost. */
static enum err
find_task(const struct options *o, const struct config *config, bool *make, struct why *why)
{
	bool has_ca = is_there(config, "keys/ca.key");

	*make = !has_database(config);
	if (o->new_database && !*make)
		return err_set(why, ERR_EXISTS,
		    "%s/" DATABASE " is there: --new-database is for when it is lost",
		    config->state_dir);
	if (o->new_database && !has_ca)
		return err_set(why, ERR_NOTFOUND,
		    "%s/keys holds no CA: put keys/ back (\"rivuletd keys import FILE\"), or begin "
		    "with a new CA, without "
		    "--new-database",
		    config->state_dir);
	if (*make && has_ca && !o->new_database && !is_there(config, DATABASE STORE_UNFINISHED))
		return err_set(why, ERR_STATE,
		    "%.80s has keys, but no database; restore a backup (\"rivuletd restore "
		    "DIR\"), or, without one, make an empty one (\"rivuletd init "
		    "--new-database\")",
		    config->state_dir);
	return ERR_OK;
}

/* The CA that the configuration names is never replaced by a new one. */
static enum err
check_pinned(const struct config *config, struct why *why)
{
	struct services_ca *ca = NULL;

	if (!config->ca[0])
		return ERR_OK;
	if (!is_there(config, "keys/ca.key"))
		return err_set(why, ERR_NOTFOUND,
		    "%.80s/keys holds no CA, and [identity] ca names %.16s...: put keys/ back "
		    "(\"rivuletd "
		    "keys import FILE\"), or, for a new CA, take the key out of the configuration",
		    config->state_dir, config->ca);
	enum err e = keys_load_ca(config->state_dir, &ca, why);
	if (!e)
		e = keys_compare_pinned(ca, config->ca, false, why);
	keys_free_ca(ca);
	return e;
}

/* --- the database */

/* Which life this is: the first one of a new CA, else later than any before it. */
static uint64_t
choose_incarnation(bool fresh)
{
	double now = clock_wall();

	return fresh || now < 2 ? 1 : (uint64_t)now;
}

/* Sets aside, in lost/, an empty file in the database's place, and a log, which may hold the last commits of a lost database. */
static enum err
clear_place(const struct config *config, struct why *why)
{
	static const char *const names[] = {DATABASE, DATABASE "-wal", DATABASE "-shm"};
	char path[CONFIG_PATH_MAX + 32], lost[CONFIG_PATH_MAX + 32];
	enum err e = ERR_OK;

	state_path(config, "lost", lost);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !e; i++) {
		state_path(config, names[i], path);
		if (is_there(config, names[i]))
			e = file_set_aside(path, lost, why);
	}
	return e;
}

/* The first join token: for devices, good for a week. */
static enum err
draw_token(struct first *f, char text[TOKEN_TEXT_MAX])
{
	struct store_token *row = &f->token;
	struct token t;

	*row = (struct store_token){.role = "device",
	    .labels = "{}",
	    .uses = FIRST_TOKEN_USES,
	    .uses_left = FIRST_TOKEN_USES,
	    .created_at = clock_wall()};
	row->expires_at = row->created_at + FIRST_TOKEN_SECONDS;
	enum err e = rng_bytes(&t, sizeof(t));
	if (e)
		return e;
	memcpy(t.ca_hash, f->ca->hash, sizeof(t.ca_hash));
	memcpy(row->id, t.id, sizeof(row->id));
	hash_sha256(row->secret_hash, t.secret, sizeof(t.secret));
	messages_token_text(text, &t);
	hash_wipe(&t, sizeof(t));
	return ERR_OK;
}

/* Makes the database; the keys stay in f. */
static enum err
make_database(
    const struct config *config, struct first *f, char text[TOKEN_TEXT_MAX], struct why *why)
{
	char path[CONFIG_PATH_MAX + 32];
	uint8_t task_key[32];

	enum err e = keys_load(config->state_dir, &f->s.ca, &f->s.sign_key, task_key, why);
	if (e)
		return e;
	hash_wipe(task_key, sizeof(task_key));
	f->ca = shared_take(f->s.ca);
	e = draw_token(f, text);
	if (!e)
		e = clear_place(config, why);
	state_path(config, DATABASE, path);
	if (!e)
		e = store_create(path, put_first, f, why);
	return e;
}

/* Marks that an init has begun, so that a second init may finish it. */
static enum err
begin(const struct config *config, int *lock, struct why *why)
{
	char path[CONFIG_PATH_MAX + 32];

	enum err e = file_mkdirs(config->state_dir, 0700, why);
	state_path(config, "lock", path);
	if (!e)
		e = file_lock(path, lock, why);
	if (e == ERR_EXISTS)
		return err_set(why, e, "a coordinator uses %s", config->state_dir);
	state_path(config, DATABASE STORE_UNFINISHED, path);
	if (!e && access(path, F_OK) != 0)
		e = file_write(path, "", 0, 0600, why);
	FAULT("init.begun");
	return e;
}

/* --- all of it */

static void
first_deinit(struct first *f)
{
	if (f->ca)
		shared_give(f->s.ca, f->ca);
	keys_free(&f->s.ca, &f->s.sign_key);
}

static void
print_first(const struct first *f, const struct config *config, bool fresh, const char *text)
{
	fprintf(stderr,
	    fresh ? "rivuletd: made the CA and the server certificate in %s/keys\n"
		  : "rivuletd: made a new database; the CA in %s/keys is as it was\n",
	    config->state_dir);
	command_print_fingerprint(stderr, f->ca);
	fprintf(
	    stderr, "rivuletd: this token lets %d devices join within a week:\n", FIRST_TOKEN_USES);
	printf("%s\n", text);
}

static int
init(const struct options *o, const struct config *config)
{
	struct first f = {.s = {.fixed = config}};
	bool make = false, fresh = false;
	char text[TOKEN_TEXT_MAX];
	struct why why = {""};
	int lock = -1;

	enum err e = find_task(o, config, &make, &why);
	if (!e)
		e = check_pinned(config, &why);
	if (!e && make)
		e = begin(config, &lock, &why);
	if (!e)
		e = keys_init(config->state_dir, o->names.words, o->names.count, &fresh, &why);
	f.s.incarnation = choose_incarnation(fresh);
	FAULT("init.keys");
	if (!e && make)
		e = make_database(config, &f, text, &why);
	if (lock >= 0)
		close(lock);
	if (!e && make)
		print_first(&f, config, fresh, text);
	else if (!e)
		fprintf(stderr, "rivuletd: %s is initialised already%s\n", config->state_dir,
		    o->names.count > 0 ? "; issued a new server certificate"
				       : "; with --name it issues a new server certificate");
	first_deinit(&f);
	return e ? command_fail_in(config->state_dir, &why) : COMMAND_OK;
}

int
cmd_init_main(const char *path, int argc, char **argv)
{
	struct options o = {.new_database = false};
	const char *name = NULL;
	const struct option_entry table[] = {
	    {"name", 0, "HOST|IP", "of the server's certificate; may be given several times", &name,
		NULL},
	    {"new-database", 0, NULL,
		"the database is lost and there is no backup: make an empty one under the CA that "
		"is there",
		NULL, &o.new_database},
	    COMMAND_CONFIG(&path),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	static const struct option_usage usage = {
	    "init [--config FILE] [--name HOST|IP]... [--new-database]",
	    "Makes what is missing of CA, certificates and keys, and the database, and prints the "
	    "first join token. With names,\n"
	    "issues the server certificate again for them. An init that was interrupted is "
	    "finished by the next.\n"
	    "With a new database devices join again with their keys; models and deltas of before "
	    "are set aside in lost/.",
	    0, 0};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!command_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = option_all(&o.names, table, "name", argc, argv, &why);
	if (!e && o.names.count > NAMES_MAX)
		e = err_set(&why, ERR_LIMIT, "a certificate has at most %d names", NAMES_MAX);
	if (e)
		return command_misused(why.text, &usage);
	struct config *config = command_config(path);
	rc = config ? init(&o, config) : COMMAND_FAILED;
	free(config);
	return rc;
}
