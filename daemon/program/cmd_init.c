#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "clock.h"
#include "command.h"
#include "hex.h"
#include "keys.h"
#include "messages.h"
#include "rng.h"
#include "store.h"

#define NAMES_MAX X509_NAMES_MAX
#define FIRST_TOKEN_USES 100
#define FIRST_TOKEN_SECONDS (7 * 86400)

static const char usage[] = "usage: rivuletd [--config FILE] init [--name HOST|IP]...\n"
			    "Makes what is missing of CA, certificates and keys, and prints the "
			    "first join token. With names, issues the\n"
			    "server certificate anew for them.\n";

struct options {
	bool help;
	const char *names[NAMES_MAX];
	size_t name_count;
};

static bool
read_options(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
	    {"name", required_argument, NULL, 'n'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	int c;

	*o = (struct options){.help = false};
	optind = 0;
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (c == 'h')
			o->help = true;
		else if (c == 'n' && o->name_count < NAMES_MAX)
			o->names[o->name_count++] = optarg;
		else
			return false;
	}
	return optind == argc;
}

struct first {
	struct services s;
	struct store_token token;
	uint8_t ca_hash[HASH_LEN];
};

static enum err
put_first(struct store_db *db, void *arg, struct why *why)
{
	struct json *facts = json_object();
	const struct first *f = arg;
	char hex[KEY_ID_HEX];

	hex_encode(hex, f->ca_hash, HASH_LEN);
	json_add_string(facts, "version", RIVULET_VERSION);
	json_add_string(facts, "ca", hex);
	enum err e = audit_append(db, &f->s,
	    &(struct audit_event){.event = RECORD_COORDINATOR_INITIALISED, .facts = facts}, why);
	if (!e)
		e = store_token_put(db, &f->token);
	return e ? e
		 : audit_token(db, &f->s, RECORD_TOKEN_CREATED, &f->token, "rivuletd init", why);
}

/* The first join token: for devices, good for a week. */
static enum err
first_token(const struct config *config, char text[TOKEN_TEXT_MAX], struct why *why)
{
	struct first f = {.s = {.fixed = config, .incarnation = 1},
	    .token = {.role = "device",
		.labels = "{}",
		.uses = FIRST_TOKEN_USES,
		.uses_left = FIRST_TOKEN_USES,
		.created_at = clock_wall()}};
	struct store_token *row = &f.token;
	char path[CONFIG_PATH_MAX + 16];
	uint8_t task_key[32];
	struct token t;

	row->expires_at = row->created_at + FIRST_TOKEN_SECONDS;
	enum err e = keys_load(config->state_dir, &f.s, task_key, why);
	if (!e)
		e = rng_bytes(&t, sizeof(t));
	if (e)
		return e;
	const struct services_ca *ca = shared_take(f.s.ca);
	memcpy(f.ca_hash, ca->hash, sizeof(f.ca_hash));
	shared_give(f.s.ca, ca);
	memcpy(t.ca_hash, f.ca_hash, sizeof(t.ca_hash));
	memcpy(row->id, t.id, sizeof(row->id));
	hash_sha256(row->secret_hash, t.secret, sizeof(t.secret));
	snprintf(path, sizeof(path), "%s/rivulet.db", config->state_dir);
	e = store_open(&f.s.store, path, why);
	if (!e)
		e = store_write(f.s.store, put_first, &f, why);
	store_close(f.s.store);
	keys_free(&f.s);
	messages_token_text(text, &t);
	hash_wipe(&t, sizeof(t));
	return e;
}

static int
init(const struct options *o, const struct config *config)
{
	char text[TOKEN_TEXT_MAX];
	struct why why = {""};
	bool fresh = false;

	enum err e = keys_init(config->state_dir, o->names, o->name_count, &fresh, &why);
	if (!e && fresh)
		e = first_token(config, text, &why);
	if (e)
		return command_fail(&why);
	if (!fresh) {
		fprintf(stderr, "rivuletd: %s is initialised already%s\n", config->state_dir,
		    o->name_count ? "; issued a new server certificate" : "");
		return 0;
	}
	fprintf(stderr,
	    "rivuletd: made the CA and the server certificate in %s/keys\n"
	    "rivuletd: this token lets %d devices join within a week:\n",
	    config->state_dir, FIRST_TOKEN_USES);
	printf("%s\n", text);
	return 0;
}

int
cmd_init_main(const char *path, int argc, char **argv)
{
	struct options o;

	if (!read_options(argc, argv, &o) || o.help) {
		fputs(usage, o.help ? stdout : stderr);
		return o.help ? COMMAND_OK : COMMAND_USAGE;
	}
	struct config *config = command_config(path);
	int rc = config ? init(&o, config) : COMMAND_FAILED;
	free(config);
	return rc;
}
