#include "serve.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "lines.h"
#include "net_spec.h"
#include "num.h"
#include "recipe.h"
#include "result.h"

#define LINE_MAX_BYTES (64u << 10)
#define TASK_ID_MAX 34 /* an id with its zero, and one byte to see that a text is longer */

static volatile sig_atomic_t ending;

static void
on_signal(int sig)
{
	(void)sig;
	ending = 1;
}

void
serve_catch_signals(void)
{
	struct sigaction act = {.sa_handler = on_signal};

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
}

bool
serve_is_ending(void)
{
	return ending != 0;
}

/* --- what it can do */

static bool
is_among(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(word, *list) == 0)
			return true;
	return false;
}

static struct json *
names(const char *const *list, const char *const *lacking)
{
	struct json *out = json_array();

	for (; *list; list++)
		if (!is_among(*list, lacking))
			json_push(out, json_new_string(*list));
	return out;
}

/* What is the device's own need not be there; it does no harm. */
struct json *
serve_offer(const char *const *lacking)
{
	static const char *const kinds[] = {"train", "evaluate", NULL}, *const none[] = {NULL};
	struct json *offer = json_object();

	json_add(offer, "kinds", names(kinds, none));
	json_add(offer, "layers", names(net_spec_type_names(), none));
	json_add(offer, "features", names(recipe_feature_names(), lacking));
	return offer;
}

/* --- a task */

/* Leaves a result or a reason; an error only if neither can be written. */
static enum err
do_task(const struct serve *s, const char *path, const struct serve_wish *wish, struct why *why)
{
	struct directory d;
	struct training_out out = {.has_report = false};
	struct why inner = {""};
	enum abort_reason reason = ABORT_TRAINER_FAILED;

	if (s->task)
		return s->task(s->context, path, wish, why);
	enum err e = directory_open(&d, path, &inner);

	if (!e) {
		struct training_in in = directory_task(&d);
		in.stop = wish->wanted;
		in.context = wish->context;
		in.take = result_take;
		in.taker = &d;
		e = s->train(s->context, &in, &out, &inner);
		reason = e ? out.abort : ABORT_TRAINER_FAILED;
	}
	if (!e)
		e = result_report(&d, &out, &inner);
	if (e)
		s->say(inner.text);
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
	return serve_is_ending();
}

enum err
serve_task(const struct serve *s, const char *directory, struct why *why)
{
	const struct serve_wish wish = {is_ending, NULL};

	return do_task(s, directory, &wish, why);
}

/* --- one that stays */

/* What the agent says. While a task is worked on, `finish` is looked for between its steps. */
struct talk {
	const struct serve *serve;
	int in, out;
	struct lines lines;
	struct json *next; /* a line that gives a task, not yet taken */
	char task[TASK_ID_MAX]; /* in hand; "": none */
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
	return t->finish || t->closed || serve_is_ending();
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
	const struct serve_wish wish = {is_finishing, t};
	struct json *said = t->next;
	const char *task = json_string(json_get(said, "task"));
	const char *directory = json_string(json_get(said, "directory"));
	enum err e = ERR_OK;

	t->next = NULL;
	t->finish = false;
	if (task && directory && strlen(task) < sizeof(t->task)) {
		memcpy(t->task, task, strlen(task) + 1);
		e = do_task(t->serve, directory, &wish, why);
		if (!e && say(t, "done", t->task))
			e = err_set(why, ERR_CLOSED, "the agent is gone");
		t->task[0] = '\0';
	}
	json_free(said);
	return e;
}

/* Until the agent closes its end, or SIGTERM. */
static enum err
stay(const struct serve *s, int in, int out, struct why *why)
{
	struct talk t = {.serve = s, .in = in, .out = out};
	enum err e = ERR_OK;

	lines_init(&t.lines, LINE_MAX_BYTES);
	if (say(&t, "ready", NULL))
		e = err_set(why, ERR_CLOSED, "the agent is gone");
	while (!e && !serve_is_ending() && (t.next || !t.closed)) {
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

enum err
serve_agent(const struct serve *s, struct why *why)
{
	int in, out;

	if (!descriptor("RIVULET_TRAINER_IN", &in) || !descriptor("RIVULET_TRAINER_OUT", &out))
		return err_set(why, ERR_INVALID, "it wants a task's directory, or an agent");
	return stay(s, in, out, why);
}
