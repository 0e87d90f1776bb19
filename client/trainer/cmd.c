#include "cmd.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <poll.h>

#include "net_spec.h"
#include "num.h"
#include "options.h"
#include "print.h"
#include "recipe.h"
#include "result.h"
#include "spoken.h"

static volatile sig_atomic_t ending; /* SIGTERM, SIGINT: save what there is, and leave */

static void
on_signal(int sig)
{
	(void)sig;
	ending = 1;
}

static void
catch_signals(void)
{
	struct sigaction act = {.sa_handler = on_signal};

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
}

/* --- `--offer` */

static struct json *
names(const char *const *list)
{
	struct json *out = json_array();

	for (; *list; list++)
		json_push(out, json_new_string(*list));
	return out;
}

/* What is the device's own need not be there; it does no harm. */
static int
print_offer(void)
{
	static const char *const kinds[] = {"train", "evaluate", NULL};
	struct json *offer = json_object();

	json_add(offer, "kinds", names(kinds));
	json_add(offer, "layers", names(net_spec_type_names()));
	json_add(offer, "features", names(recipe_feature_names()));
	cmd_print_json_line(offer);
	json_free(offer);
	return CMD_OK;
}

/* --- a task */

/* What a task is broken off by. */
struct wish {
	bool (*wanted)(void *context);
	void *context;
};

/* Leaves a result or a reason; an error only if neither can be written. */
static enum err
do_task(const char *path, const struct wish *wish, struct why *why)
{
	struct directory d;
	struct trainer_out out;
	struct why inner = {""};
	enum abort_reason reason = ABORT_TRAINER_FAILED;

	memset(&out, 0, sizeof(out));
	enum err e = directory_open(&d, path, &inner);
	if (!e) {
		const struct trainer_in in = {.work = &d.work,
		    .train = &d.train,
		    .validation = &d.validation,
		    .settings = d.settings,
		    .home = path,
		    .device = d.device,
		    .seconds = d.seconds,
		    .stop = wish->wanted,
		    .context = wish->context};
		e = trainer_builtin_run(&in, &out, &inner);
		reason = e ? out.abort : ABORT_NONE;
	}
	if (!e)
		e = result_write(&d, path, &out, &inner);
	if (e)
		cmd_print_error("%s", inner.text);
	if (e)
		e = result_give_back(path, reason ? reason : ABORT_TRAINER_FAILED, inner.text, why);
	trainer_out_deinit(&out);
	directory_close(&d);
	return e;
}

static bool
is_ending(void *context)
{
	(void)context;
	return ending != 0;
}

/* --- one that stays */

/* Lines from the agent. While a task is worked on, `finish` is looked for between its steps. */
struct talk {
	int in, out;
	char *line; /* SPOKEN_MAX and an end */
	size_t len; /* of what has come of the next lines */
	bool closed, finish;
};

/* More of what the agent says; waits for it, or looks once. */
static void
listen_to(struct talk *t, bool waits)
{
	struct pollfd p = {.fd = t->in, .events = POLLIN};

	if (t->closed || t->len == SPOKEN_MAX)
		return;
	if (poll(&p, 1, waits ? -1 : 0) <= 0)
		return;
	ssize_t n = read(t->in, t->line + t->len, SPOKEN_MAX - t->len);
	if (n > 0)
		t->len += (size_t)n;
	else if (n == 0 || errno != EINTR)
		t->closed = true;
}

/* The next whole line, which is taken away; false if there is none yet. */
static bool
next_line(struct talk *t, struct json **said)
{
	char *end = memchr(t->line, '\n', t->len);

	*said = NULL;
	if (!end)
		return false;
	size_t len = (size_t)(end - t->line);
	if (json_parse(said, t->line, len, NULL))
		*said = NULL;
	t->len -= len + 1;
	memmove(t->line, end + 1, t->len);
	return true;
}

static bool
is_finishing(void *context)
{
	struct talk *t = context;
	struct json *said;

	listen_to(t, false);
	while (!t->finish && next_line(t, &said)) {
		t->finish = json_get(said, "finish") != NULL;
		json_free(said);
	}
	return t->finish || t->closed || ending;
}

static enum err
say(const struct talk *t, const char *key, const char *value)
{
	char line[128];
	int n = value ? snprintf(line, sizeof(line), "{\"%s\": \"%s\"}\n", key, value)
		      : snprintf(line, sizeof(line), "{\"%s\": true}\n", key);

	for (int at = 0; at < n;) {
		ssize_t wrote = write(t->out, line + at, (size_t)(n - at));
		if (wrote < 0 && errno != EINTR)
			return ERR_IO;
		at += wrote > 0 ? (int)wrote : 0;
	}
	return ERR_OK;
}

static enum err
take_line(struct talk *t, const struct json *said, struct why *why)
{
	const char *task = json_string(json_get(said, "task"));
	const char *directory = json_string(json_get(said, "directory"));
	const struct wish wish = {is_finishing, t};

	if (!task || !directory || strlen(task) >= SPOKEN_TASK_MAX)
		return ERR_OK;
	t->finish = false;
	char id[SPOKEN_TASK_MAX];
	memcpy(id, task, strlen(task) + 1);
	enum err e = do_task(directory, &wish, why);
	if (!e && say(t, "done", id))
		e = err_set(why, ERR_CLOSED, "the agent is gone");
	return e;
}

/* Until the agent closes its end, or SIGTERM. */
static enum err
stay(int in, int out, struct why *why)
{
	struct talk t = {.in = in, .out = out, .line = malloc(SPOKEN_MAX + 1)};
	enum err e = t.line ? ERR_OK : err_set(why, ERR_NOMEM, "no memory");

	if (!e && say(&t, "ready", NULL))
		e = err_set(why, ERR_CLOSED, "the agent is gone");
	while (!e && !ending) {
		struct json *said = NULL;
		if (next_line(&t, &said))
			e = take_line(&t, said, why);
		else if (t.closed)
			break;
		else if (t.len == SPOKEN_MAX)
			e = err_set(why, ERR_LIMIT, "a line of the agent's is too long");
		else
			listen_to(&t, true);
		json_free(said);
	}
	free(t.line);
	return e;
}

static bool
descriptor(const char *variable, int *out)
{
	const char *text = getenv(variable);
	uint64_t n;

	if (!text || !num_u64(text, INT_MAX, &n))
		return false;
	*out = (int)n;
	return true;
}

int
cmd_trainer_main(int argc, char **argv)
{
	bool offer = false;
	const struct cmd_option table[] = {
	    {"offer", 0, NULL, "print what it can do, as an agent asks", NULL, &offer},
	    {.name = NULL}};
	const struct cmd_usage usage = {.usage = "trainer DIR|--offer",
	    .about = "Does a task of a built-in job in DIR, where an agent has laid it out, as the "
		     "agent itself\n"
		     "would: [trainer builtin] exec = /usr/bin/rivulet trainer. Without DIR it "
		     "stays and is\n"
		     "given tasks (persistent = yes).",
	    .least = 0,
	    .most = 1};
	struct cmd_words words;
	struct why why = {""};
	int rc, in, out;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (offer)
		return print_offer();
	catch_signals();
	const struct wish wish = {is_ending, NULL};
	enum err e;
	if (words.count == 1)
		e = do_task(words.words[0], &wish, &why);
	else if (descriptor("RIVULET_TRAINER_IN", &in) && descriptor("RIVULET_TRAINER_OUT", &out))
		e = stay(in, out, &why);
	else
		e = err_set(&why, ERR_INVALID, "it wants a task's directory, or an agent");
	return e ? cmd_options_fail(e, &why) : CMD_OK;
}
