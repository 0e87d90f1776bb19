#include "cmd.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <poll.h>

#include "err.h"
#include "json.h"
#include "lines.h"
#include "net_spec.h"
#include "num.h"
#include "option.h"
#include "options.h"
#include "print.h"
#include "protocol.h"
#include "recipe.h"
#include "result.h"

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
	struct training_out out = {.has_report = false};
	struct why inner = {""};
	enum abort_reason reason = ABORT_TRAINER_FAILED;
	enum err e = directory_open(&d, path, &inner);

	if (!e) {
		struct training_in in = directory_task(&d);
		in.stop = wish->wanted;
		in.context = wish->context;
		in.take = result_take;
		in.taker = &d;
		e = training_run(&in, &out, &inner);
		reason = e ? out.abort : ABORT_TRAINER_FAILED;
	}
	if (!e)
		e = result_report(&d, &out, &inner);
	if (e)
		cmd_print_error("%s", inner.text);
	if (e)
		e = result_give_back(path, reason, inner.text, why);
	training_out_deinit(&out);
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

/* What the agent says. While a task is worked on, `finish` is looked for between its steps. */
struct talk {
	int in, out;
	struct lines lines;
	struct json *next; /* a line that gives a task, not yet taken */
	char task[PROTOCOL_TASK_MAX]; /* in hand; "": none */
	bool closed, finish;
};

static enum err
hear(void *context, const char *line, size_t len)
{
	struct talk *t = context;
	struct json *said = NULL;

	/* What is no JSON is no word of this version's. */
	if (json_parse(&said, line, len, NULL))
		return ERR_OK;
	const char *finish = json_string(json_get(said, "finish"));
	if (finish && strcmp(finish, t->task) == 0)
		t->finish = true;
	if (!json_get(said, "task") || t->next) {
		json_free(said);
		return ERR_OK;
	}
	t->next = said;
	return ERR_OK;
}

/* Waits for more of what the agent says, or looks once. */
static enum err
listen_to(struct talk *t, bool waits)
{
	struct pollfd p = {.fd = t->in, .events = POLLIN};
	char some[4096];

	if (t->closed || poll(&p, 1, waits ? -1 : 0) <= 0)
		return ERR_OK;
	ssize_t n = read(t->in, some, sizeof(some));
	if (n > 0)
		return lines_feed(&t->lines, some, (size_t)n, hear, t);
	t->closed = n == 0 || errno != EINTR;
	return ERR_OK;
}

static bool
is_finishing(void *context)
{
	struct talk *t = context;

	t->closed |= listen_to(t, false) != ERR_OK;
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
take_next(struct talk *t, struct why *why)
{
	const struct wish wish = {is_finishing, t};
	struct json *said = t->next;
	const char *task = json_string(json_get(said, "task"));
	const char *directory = json_string(json_get(said, "directory"));
	enum err e = ERR_OK;

	t->next = NULL;
	t->finish = false;
	if (task && directory && strlen(task) < sizeof(t->task)) {
		memcpy(t->task, task, strlen(task) + 1);
		e = do_task(directory, &wish, why);
		if (!e && say(t, "done", t->task))
			e = err_set(why, ERR_CLOSED, "the agent is gone");
		t->task[0] = '\0';
	}
	json_free(said);
	return e;
}

/* Until the agent closes its end, or SIGTERM. */
static enum err
stay(int in, int out, struct why *why)
{
	struct talk t = {.in = in, .out = out};
	enum err e = ERR_OK;

	lines_init(&t.lines, PROTOCOL_MAX);
	if (say(&t, "ready", NULL))
		e = err_set(why, ERR_CLOSED, "the agent is gone");
	while (!e && !ending && (t.next || !t.closed)) {
		if (t.next)
			e = take_next(&t, why);
		else if ((e = listen_to(&t, true)))
			err_set(why, e, "a line of the agent's is too long");
	}
	json_free(t.next);
	lines_deinit(&t.lines);
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
	const struct option_entry table[] = {
	    {"offer", 0, NULL, "print what it can do, as an agent asks", NULL, &offer},
	    {.name = NULL}};
	const struct option_usage usage = {.usage = "trainer DIR|--offer",
	    .about = "Does a task of a built-in job in DIR, where an agent has laid it out, as the "
		     "agent itself\n"
		     "would: [trainer builtin] exec = /usr/bin/rivulet trainer. Without DIR it "
		     "stays and is\n"
		     "given tasks (persistent = yes).",
	    .least = 0,
	    .most = 1};
	struct option_words words;
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
