#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backoff.h"
#include "buf.h"
#include "last_words.h"

#define SLICE_MS 100
#define READS_MAX \
	64 /* more than a pipe holds; who never stops writing must not keep us from the clock */

struct run {
	const struct child_options *options;
	struct spawner *spawner;
	int output, answer; /* read ends, -1 when closed */
	struct last_words log;
	double until; /* when the next signal is due; 0: never */
	struct child_result *out;
};

enum err
child_split(char *text, const char **argv, size_t max)
{
	size_t n = 0;
	char *p = text;

	for (;;) {
		p += strspn(p, " \t");
		if (!*p)
			break;
		if (n + 1 >= max)
			return ERR_LIMIT;
		char quote = *p == '"' || *p == '\'' ? *p++ : '\0';
		argv[n++] = p;
		p = quote ? strchr(p, quote) : p + strcspn(p, " \t");
		if (!p)
			return ERR_INVALID;
		if (*p)
			*p++ = '\0';
	}
	argv[n] = NULL;
	return n ? ERR_OK : ERR_INVALID;
}

const char *
child_last_line(char *log)
{
	size_t len = strlen(log);

	while (len > 0 && (log[len - 1] == '\n' || log[len - 1] == '\r'))
		log[--len] = '\0';
	const char *end = strrchr(log, '\n');
	return end ? end + 1 : log;
}

/* Gives the end to write to; the other one does not block. */
static enum err
make_pipe(int *from, int *to, struct why *why)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(why, "pipe");
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*from = ends[0];
	*to = ends[1];
	return ERR_OK;
}

static void
close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static enum err
give_order(struct run *r, int output, int answer, struct why *why)
{
	struct spawner_order order = r->options->order;

	order.output = output;
	order.answer = answer;
	if (!order.environment)
		order.environment = (const char *const *)(size_t)environ;
	return spawner_start(r->spawner, &order, why);
}

static enum err
start(struct run *r, struct why *why)
{
	int output = -1, answer = -1;
	enum err e = make_pipe(&r->output, &output, why);

	if (!e && r->options->answer)
		e = make_pipe(&r->answer, &answer, why);
	if (!e)
		e = give_order(r, output, answer < 0 ? output : answer, why);
	close_end(&output);
	close_end(&answer);
	if (e) {
		close_end(&r->output);
		close_end(&r->answer);
	}
	return e;
}

static void
keep_tail(struct run *r, const char *data, size_t n)
{
	last_words_add(&r->log, data, n);
}

static void
keep_answer(struct run *r, const char *data, size_t n)
{
	if (!r->out->overflow && buf_append(r->options->answer, data, n))
		r->out->overflow = true;
}

static void
drain_end(struct run *r, int *fd, void (*keep)(struct run *r, const char *data, size_t n))
{
	char data[4096];

	for (unsigned reads = 0; *fd >= 0 && reads < READS_MAX; reads++) {
		ssize_t n = read(*fd, data, sizeof(data));
		if (n > 0) {
			keep(r, data, (size_t)n);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || errno != EAGAIN)
			close_end(fd);
		return;
	}
}

static void
drain(struct run *r)
{
	drain_end(r, &r->output, keep_tail);
	drain_end(r, &r->answer, keep_answer);
}

/* Deadlines, stop and an endless answer: first SIGTERM, then SIGKILL. */
static void
urge(struct run *r)
{
	const struct child_options *o = r->options;
	double now = backoff_now();
	bool due = r->until > 0 && now >= r->until;

	bool enough = due || r->out->overflow || (o->stop && o->stop(o->context));

	if (!r->out->asked && enough) {
		r->out->asked = true;
		spawner_signal(r->spawner, SIGTERM);
		r->until = now + o->grace_s;
	} else if (r->out->asked && !r->out->killed && due) {
		r->out->killed = true;
		spawner_signal(r->spawner, SIGKILL);
		r->until = 0;
	}
}

static enum err
wait_for_end(struct run *r, struct spawner_end *end)
{
	for (;;) {
		struct pollfd p[] = {{.fd = r->output, .events = POLLIN},
		    {.fd = r->answer, .events = POLLIN}, {.fd = r->spawner->fd, .events = POLLIN}};
		poll(p, sizeof(p) / sizeof(*p), SLICE_MS);
		drain(r);
		enum err e = spawner_ended(r->spawner, end);
		if (e != ERR_AGAIN)
			return e;
		urge(r);
	}
}

static enum err
judge(struct run *r, const struct spawner_end *end, struct why *why)
{
	struct child_result *out = r->out;

	out->exited = WIFEXITED(end->status);
	out->code = out->exited ? WEXITSTATUS(end->status) : WTERMSIG(end->status);
	out->memory = end->memory;
	if (!out->exited || out->code != SPAWNER_FAILED)
		return ERR_OK;
	return err_set(why, ERR_NOTFOUND, "%.100s cannot be started: %.120s",
	    r->options->order.argv[0], child_last_line(r->log.text));
}

static enum err
run(struct run *r, struct why *why)
{
	struct spawner_end end;
	enum err e = start(r, why);

	if (e)
		return e;
	if (r->options->seconds > 0)
		r->until = backoff_now() + r->options->seconds;
	e = wait_for_end(r, &end);
	drain(r);
	close_end(&r->output);
	close_end(&r->answer);
	return e ? err_set(why, e, "the process that starts programs is gone: start rivulet again")
		 : judge(r, &end, why);
}

enum err
child_run(struct child_result *out, const struct child_options *options, char *log, size_t room,
    struct why *why)
{
	struct spawner own;
	struct run r = {.options = options,
	    .spawner = options->spawner ? options->spawner : &own,
	    .output = -1,
	    .answer = -1,
	    .out = out};

	memset(out, 0, sizeof(*out));
	last_words_init(&r.log, log, room);
	enum err e = options->spawner ? ERR_OK : spawner_init(&own, why);
	if (e)
		return e;
	e = run(&r, why);
	if (!options->spawner)
		spawner_deinit(&own);
	return e;
}
