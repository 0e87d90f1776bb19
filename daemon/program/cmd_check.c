#include <stdio.h>
#include <stdlib.h>

#include "buf.h"
#include "check.h"
#include "command.h"
#include "delta_file.h"
#include "hash.h"
#include "job.h"
#include "json.h"
#include "num.h"
#include "option.h"
#include "start.h"

#define OLDER_S ((uint64_t)30 * 86400)

enum { SOUND = 0, REPAIRED = 3, WARNINGS = 4, DAMAGE = 7 };

struct options {
	bool json, repair, drop, delete_lost;
	uint64_t older_s;
	const char *dir;
};

static int
print_json(struct check *c)
{
	struct json *doc = json_object();
	struct buf text;

	json_add_string(doc, "state_dir", c->dir);
	json_add_bool(doc, "running", c->running);
	json_add_u64(doc, "damage", c->left[CHECK_DAMAGE]);
	json_add_u64(doc, "warnings", c->left[CHECK_WARNING]);
	json_add_u64(doc, "notes", c->left[CHECK_NOTE]);
	json_add_u64(doc, "repaired", c->repaired);
	json_add(doc, "findings", c->findings);
	c->findings = NULL;
	buf_init(&text, 64u << 20);
	enum err e = json_print(&text, doc, false);
	if (!e)
		printf("%s\n", buf_str(&text));
	buf_deinit(&text);
	json_free(doc);
	return !e ? COMMAND_OK : COMMAND_FAILED;
}

static void
print_sum(const struct check *c)
{
	printf("%s: %u damaged, %u warnings, %u repaired%s\n", c->dir, c->left[CHECK_DAMAGE],
	    c->left[CHECK_WARNING], c->repaired,
	    c->running ? "; a coordinator runs on it, so what may be changing was not checked"
		       : "");
}

/* *found: the key of encrypted deltas, in *key; NULL: there is none. */
static enum err
find_key(const struct config *config, struct delta_key *key, const struct delta_key **found,
    struct why *why)
{
	uint8_t secret[32];
	bool is_there;

	*found = NULL;
	enum err e = spool_start_secret(config, secret, &is_there, why);
	if (e || !is_there)
		return e;
	delta_file_key(key, secret);
	hash_wipe(secret, sizeof(secret));
	*found = key;
	return ERR_OK;
}

static int
examine(const struct options *o, const struct config *config)
{
	const char *dir = o->dir ? o->dir : config->state_dir;
	struct check *c = calloc(1, sizeof(*c));
	struct why why = {"no memory"};
	int rc = COMMAND_FAILED;
	struct delta_key key;

	if (!c || find_key(config, &key, &c->key, &why)) {
		free(c);
		return command_fail_in(dir, &why);
	}
	c->repair = o->repair;
	c->drop_deltas = o->drop;
	c->delete_lost = o->delete_lost;
	c->older_s = o->older_s;
	c->memory = config->spool_memory;
	c->quiet = o->json;
	if (check_run(c, dir, &why))
		rc = command_fail_in(dir, &why);
	else if (c->left[CHECK_DAMAGE] > 0)
		rc = DAMAGE;
	else if (c->left[CHECK_WARNING] > 0)
		rc = WARNINGS;
	else
		rc = c->repaired > 0 ? REPAIRED : SOUND;
	if (rc != COMMAND_FAILED && !o->json)
		print_sum(c);
	else if (rc != COMMAND_FAILED && print_json(c) != COMMAND_OK)
		rc = COMMAND_FAILED;
	check_deinit(c);
	free(c);
	hash_wipe(&key, sizeof(key));
	return rc;
}

/* Why the options cannot be used together; NULL: they can. */
static const char *
misuse(struct options *o, const char *older)
{
	if (older && !num_seconds(older, &o->older_s))
		return "--older wants a time (s, m, h or d may follow the number)";
	if (o->drop && !o->repair)
		return "--drop-damaged-deltas goes with --repair";
	return older && !o->delete_lost ? "--older goes with --delete-lost" : NULL;
}

int
cmd_check_main(const char *path, int argc, char **argv)
{
	struct options o = {.older_s = OLDER_S};
	const char *older = NULL;
	const struct option_entry table[] = {
	    {"repair", 0, NULL, "put in order what loses nothing; move damaged files to damaged/",
		NULL, &o.repair},
	    {"drop-damaged-deltas", 0, NULL,
		"with --repair: take back accepted deltas whose file is gone or damaged", NULL,
		&o.drop},
	    {"delete-lost", 0, NULL,
		"remove what was set aside in lost/, also beside a running coordinator", NULL,
		&o.delete_lost},
	    {"older", 0, "TIME",
		"of --delete-lost: only what was set aside so long ago (s, m, h or d; 30d)", &older,
		NULL},
	    {"json", 0, NULL, "print JSON", NULL, &o.json},
	    COMMAND_CONFIG(&path),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	static const struct option_usage usage = {
	    "check [--config FILE] [--repair [--drop-damaged-deltas]] [--delete-lost [--older "
	    "TIME]] [--json] [DIR]",
	    "Examines the state directory of the configuration, or DIR (then no configuration is "
	    "read), and changes nothing\n"
	    "without --repair, for which the coordinator must be stopped. While one runs, what may "
	    "be changing is not checked.\n"
	    "Of deltas of open rounds that are taken back, devices hold receipts that are then "
	    "not kept.\n"
	    "Exit codes: 0 sound, 1 could not be examined, 2 usage, 3 all that was found is "
	    "repaired, 4 warnings left,\n"
	    "7 damage left.",
	    0, 1};
	struct option_words words;
	int rc;

	if (!command_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	const char *wrong = misuse(&o, older);
	if (wrong)
		return command_misused(wrong, &usage);
	o.dir = words.count > 0 ? words.words[0] : NULL;
	struct config *config = o.dir ? calloc(1, sizeof(*config)) : command_config(path);
	rc = config ? examine(&o, config) : COMMAND_FAILED;
	free(config);
	return rc;
}
