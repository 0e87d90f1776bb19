#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backoff.h"
#include "cmd.h"
#include "credentials.h"
#include "err.h"
#include "file.h"
#include "home.h"
#include "identity_set.h"
#include "json.h"
#include "num.h"
#include "option.h"
#include "options.h"
#include "print.h"
#include "rekey.h"
#include "session.h"

#define POLL_S 0.2

/* No agent runs here: this process does it. */
static enum err
rotate_here(const char *home, struct why *why)
{
	const struct session_options options = {.home = home, .locked = true};
	struct session *s;
	enum err e = identity_set_apply(home, why);

	if (!e)
		e = session_open(&s, &options, why);
	if (e)
		return e;
	e = rekey_run(s, why);
	session_free(s);
	return e;
}

/* What the agent left about a rotation that came to nothing. */
static enum err
read_failure(const char *home, struct why *why)
{
	char path[PATH_MAX];
	char *text = NULL;
	struct why ignored;
	size_t len;
	enum err e = identity_path(path, home, HOME_ROTATE_FAILED, why);

	if (!e)
		e = file_read(path, 4096, &text, &len, why);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	err_set(why, ERR_DENIED, "the agent could not: %.200s", text);
	free(text);
	(void)!home_drop(home, HOME_ROTATE_FAILED, &ignored);
	return ERR_DENIED;
}

/* The agent that works there does it, between two tasks or while it waits for one. *waiting: not yet. */
static enum err
ask_agent(const char *home, double wait_s, bool *waiting, struct why *why)
{
	double until = backoff_now() + wait_s;
	enum err e = home_drop(home, HOME_ROTATE_FAILED, why);

	if (!e)
		e = home_put(home, HOME_ROTATE, "", why);
	while (!e && home_has(home, HOME_ROTATE) && backoff_now() < until)
		backoff_sleep(POLL_S, NULL, NULL);
	*waiting = !e && home_has(home, HOME_ROTATE);
	return e || *waiting ? e : read_failure(home, why);
}

static void
report(const char *home, bool waiting, bool json)
{
	struct credentials held;
	char hex[2 * HASH_LEN + 1] = "";
	struct json *doc;

	if (!json && waiting) {
		cmd_print_line(
		    "the agent in %s was asked; it makes the new key after its task", home);
		return;
	}
	if (credentials_load(&held, home, NULL) == ERR_OK) {
		snprintf(hex, sizeof(hex), "%s", held.identity.device);
		credentials_deinit(&held);
	}
	if (!json) {
		cmd_print_line("device %.16s has a new key", hex);
		return;
	}
	doc = json_object();
	json_add_string(doc, "device", hex);
	json_add_bool(doc, "rotated", !waiting);
	cmd_print_json(doc);
	json_free(doc);
}

static enum err
rotate(const char *home, double wait_s, bool *waiting, struct why *why)
{
	struct identity id;
	int lock = -1;
	enum err e = identity_load(&id, home, why);

	if (e)
		return e;
	*waiting = false;
	e = home_lock(&lock, home, why);
	if (e == ERR_STATE)
		return ask_agent(home, wait_s, waiting, why);
	if (!e)
		e = rotate_here(home, why);
	home_unlock(lock);
	return e;
}

int
cmd_rotate_main(int argc, char **argv)
{
	const char *home = NULL, *wait = "60";
	bool json = false, waiting = false;
	const struct option_entry table[] = {
	    {"home", 0, "DIR", "where the identity is", &home, NULL},
	    {"wait", 0, "S", "how long to wait for a running agent (default 60)", &wait, NULL},
	    {"json", 0, NULL, "print JSON", NULL, &json},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"rotate [--home DIR] [--wait S] [--json]",
	    "Gives the device a new key; its id, name and deltas not yet sent stay.", 0, 0};
	struct option_words words;
	struct why why = {""};
	char dir[PATH_MAX];
	uint64_t wait_s;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (!num_u64(wait, 86400, &wait_s)) {
		fprintf(stderr, "rivulet: --wait wants seconds, from 0 to 86400\n");
		return CMD_USAGE;
	}
	enum err e = identity_home(dir, home, &why);
	if (!e)
		e = rotate(dir, (double)wait_s, &waiting, &why);
	if (e)
		return cmd_options_fail(e, &why);
	report(dir, waiting, json);
	return CMD_OK;
}
