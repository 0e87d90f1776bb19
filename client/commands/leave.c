#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "err.h"
#include "file.h"
#include "home.h"
#include "identity_set.h"
#include "json.h"
#include "option.h"
#include "options.h"
#include "outbox.h"
#include "print.h"
#include "session.h"

#define ATTEMPTS 3

struct leaving {
	char home[PATH_MAX];
	bool yes, force, json;
	struct identity id;
	struct outbox outbox;
};

/* Told once is enough: a coordinator that says it knows this device no more has heard it. */
static enum err
tell(const struct leaving *l, struct why *why)
{
	const struct session_options options = {.home = l->home, .locked = true};
	const struct session_call call = {
	    .path = "/v1/leave", .attempts = ATTEMPTS, .request = {.method = "POST"}};
	struct transport_answer answer;
	struct session *s;
	enum problem_type type = PROBLEM_NONE;
	enum err e = session_open(&s, &options, why);

	if (e)
		return e;
	e = session_do(s, &call, &answer, why);
	if (!e)
		e = session_refusal(&answer, &type, why);
	transport_answer_deinit(&answer);
	session_free(s);
	return type == PROBLEM_DEVICE_LEFT ? ERR_OK : e;
}

static enum err
check_outbox(struct leaving *l, struct why *why)
{
	char tasks[OUTBOX_ENTRIES_MAX][OUTBOX_TASK_HEX];
	enum err e = outbox_init(&l->outbox, l->home, 0, why);
	size_t n = e ? 0 : outbox_list(&l->outbox, tasks, OUTBOX_ENTRIES_MAX);

	if (n == 0 || l->yes)
		return e;
	return err_set(why, ERR_STATE,
	    "%zu trained deltas wait in %s/outbox and would be lost; send them (rivulet run), or "
	    "give --yes",
	    n, l->home);
}

/* What was made from this device's data for the coordinator's jobs. */
static enum err
drop_traces(const char *home, struct why *why)
{
	static const char *const names[] = {"outbox", "residual", "variates", "kept"};
	char path[PATH_MAX];
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < sizeof(names) / sizeof(*names); i++) {
		e = identity_path(path, home, names[i], why);
		if (!e)
			e = file_empty_dir(path, why);
		if (!e)
			rmdir(path);
	}
	return e;
}

/* The identity last, so that what a kill cuts short is ended by the next `leave`. It goes whatever becomes of the rest. */
static enum err
wipe(struct leaving *l, struct why *why)
{
	struct why first;

	enum err kept = drop_traces(l->home, &first);
	enum err e = identity_set_wipe(l->home, why);
	if (e || !kept)
		return e;
	return err_set(why, kept, "key and certificate are gone, but: %.200s", first.text);
}

static enum err
leave_locked(struct leaving *l, struct why *why)
{
	enum err e = identity_load(&l->id, l->home, why);

	if (e == ERR_NOTFOUND && identity_set_wiping(l->home))
		return identity_set_wipe(l->home, why);
	if (!e)
		e = check_outbox(l, why);
	if (!e && !l->force) {
		e = identity_set_apply(l->home, why);
		if (!e)
			e = tell(l, why);
	}
	return e ? e : wipe(l, why);
}

static void
report(const struct leaving *l)
{
	struct json *doc;

	if (!l->json) {
		cmd_print_line("%s %s%s; its key and certificate are gone from %s",
		    *l->id.name ? l->id.name : "this device",
		    l->force ? "forgot its coordinator" : "left",
		    l->force ? ", which was not told: revoke the device there" : "", l->home);
		return;
	}
	doc = json_object();
	json_add_string(doc, "device", l->id.device);
	json_add_bool(doc, "left", true);
	json_add_bool(doc, "told", !l->force);
	cmd_print_json(doc);
	json_free(doc);
}

int
cmd_leave_main(int argc, char **argv)
{
	struct leaving l = {.yes = false};
	const char *home = NULL;
	const struct option_entry table[] = {
	    {"home", 0, "DIR", "where the identity is", &home, NULL},
	    {"yes", 'y', NULL, "also when deltas wait in the outbox; they are lost", NULL, &l.yes},
	    {"force", 0, NULL, "wipe without telling the coordinator", NULL, &l.force},
	    {"json", 0, NULL, "print JSON", NULL, &l.json},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"leave [--home DIR] [--yes] [--force] [--json]",
	    "Ends the membership: tells the coordinator, then wipes key and certificate.", 0, 0};
	struct option_words words;
	struct why why = {""};
	int rc, lock = -1;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = identity_home(l.home, home, &why);
	if (!e && !home_has(l.home, "device.json") && !identity_set_wiping(l.home))
		e = err_set(&why, ERR_NOTFOUND, "%s has not joined a coordinator", l.home);
	if (!e)
		e = home_lock(&lock, l.home, &why);
	if (!e)
		e = leave_locked(&l, &why);
	home_unlock(lock);
	if (e)
		return cmd_options_fail(e, &why);
	report(&l);
	return CMD_OK;
}
