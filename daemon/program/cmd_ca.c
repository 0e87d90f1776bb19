#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "err.h"
#include "inspect.h"
#include "keys.h"
#include "option.h"
#include "row.h"
#include "states.h"
#include "store.h"

/* The devices that would be locked out, because they do not work with a certificate of the next CA. */
struct behind {
	uint64_t generation, count;
	const char *told; /* each device is printed after this word; NULL: no device is printed */
};

static enum err
count_one(void *ctx, const struct store_device *d)
{
	struct behind *b = ctx;

	if (d->ca_generation >= b->generation || d->state == DEVICE_REVOKED ||
	    d->state == DEVICE_LEFT)
		return ERR_OK;
	b->count++;
	if (b->told)
		printf("%s: %s (%s)\n", b->told, d->name, states_device_name(d->state));
	return ERR_OK;
}

static enum err
count_behind(const struct config *config, struct behind *b, struct why *why)
{
	char path[CONFIG_PATH_MAX + 16];
	struct store_db *db = NULL;
	uint64_t version;

	snprintf(path, sizeof(path), "%s/rivulet.db", config->state_dir);
	enum err e = store_inspect_open(&db, path, false, &version, why);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	if (e)
		return e;
	e = version == store_inspect_known()
	    ? store_device_each(db, count_one, b)
	    : err_set(why, ERR_UNSUPPORTED, "start this version of rivuletd once first");
	store_inspect_close(db);
	return e;
}

static int
rotate(const struct config *config)
{
	struct why why = {""};

	if (keys_begin_rotation(config->state_dir, &why))
		return command_fail_in(config->state_dir, &why);
	printf(
	    "made the next CA in %s/keys; reload rivuletd now.\n"
	    "Devices renew their certificates as they ask for work; \"rivuletd ca status\" names "
	    "those that have not.\n",
	    config->state_dir);
	return COMMAND_OK;
}

static int
status(const struct config *config)
{
	struct services_ca *ca = NULL;
	struct why why = {""};

	if (keys_load_ca(config->state_dir, &ca, &why))
		return command_fail_in(config->state_dir, &why);
	struct behind b = {.generation = ca->generation + ca->rotating,
	    .told = ca->rotating ? "not renewed" : "shut out"};
	printf("generation %llu%s\n", (unsigned long long)ca->generation,
	    ca->rotating ? ", being replaced" : "");
	command_print_fingerprint(stdout, ca);
	enum err e = count_behind(config, &b, &why);
	/* Who must join again is told where the database can tell. */
	if (e && !ca->rotating)
		e = ERR_OK;
	if (!e && (ca->rotating || b.count > 0))
		printf("%llu devices %s\n", (unsigned long long)b.count,
		    ca->rotating ? "have not renewed" : "must join again");
	keys_free_ca(ca);
	return e ? command_fail_in(config->state_dir, &why) : COMMAND_OK;
}

static int
finish(const struct config *config, bool force)
{
	struct services_ca *ca = NULL;
	struct why why = {""};

	enum err e = keys_load_ca(config->state_dir, &ca, &why);
	struct behind b = {.generation = e ? 0 : ca->generation + 1};
	if (!e && ca->rotating)
		e = count_behind(config, &b, &why);
	keys_free_ca(ca);
	if (!e && b.count > 0) {
		fprintf(stderr, "rivuletd: %llu devices have not renewed%s\n",
		    (unsigned long long)b.count,
		    force ? "; they must join again"
			  : ": \"rivuletd ca status\" names them; --force shuts them out");
		if (!force)
			return COMMAND_FAILED;
	}
	if (!e)
		e = keys_finish_rotation(config->state_dir, &why);
	if (e)
		return command_fail_in(config->state_dir, &why);
	printf("the next CA is the CA now; reload rivuletd\n");
	if (keys_load_ca(config->state_dir, &ca, &why))
		return command_fail_in(config->state_dir, &why);
	command_print_fingerprint(stdout, ca);
	keys_free_ca(ca);
	return COMMAND_OK;
}

/* --- the three */

#define CA_FOLLOWS \
	"A running coordinator follows when it reads its configuration again (systemctl reload) " \
	"or starts."

/* rotate, status: argv[0] is the verb. */
static int
ca_plain(const char *path, int argc, char **argv)
{
	static const struct option_usage usages[] = {
	    {"ca rotate [--config FILE]", "Makes the next CA.\n" CA_FOLLOWS, 0, 0},
	    {"ca status [--config FILE]",
		"Says which CA it is, and, while it is replaced, who has not renewed.", 0, 0},
	};
	bool rotates = strcmp(argv[0], "rotate") == 0;
	const struct option_entry table[] = {
	    COMMAND_CONFIG(&path), {NULL, 0, NULL, NULL, NULL, NULL}};
	struct option_words words;
	int rc;

	if (!command_take(&words, table, &usages[rotates ? 0 : 1], argc, argv, &rc))
		return rc;
	struct config *config = command_config(path);
	rc = !config ? COMMAND_FAILED : rotates ? rotate(config) : status(config);
	free(config);
	return rc;
}

static int
ca_finish(const char *path, int argc, char **argv)
{
	bool force = false;
	const struct option_entry table[] = {
	    {"force", 0, NULL, "although devices have not renewed: they must join again", NULL,
		&force},
	    COMMAND_CONFIG(&path),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	static const struct option_usage usage = {"ca finish [--config FILE] [--force]",
	    "Makes the next CA the CA, and trusts the old one no more.\n" CA_FOLLOWS, 0, 0};
	struct option_words words;
	int rc;

	if (!command_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	struct config *config = command_config(path);
	rc = config ? finish(config, force) : COMMAND_FAILED;
	free(config);
	return rc;
}

int
cmd_ca_main(const char *path, int argc, char **argv)
{
	static const struct command_verb verbs[] = {
	    {"rotate", ca_plain, "make the next CA"},
	    {"status", ca_plain, "which CA, and who has not renewed"},
	    {"finish", ca_finish, "make it the CA, and trust the old one no more"},
	    {NULL, NULL, NULL},
	};

	return command_verbs("ca", verbs, path, argc, argv);
}
