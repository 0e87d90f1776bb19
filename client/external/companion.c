#include "companion.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"
#include "program.h"
#include "protocol.h"
#include "task_directory.h"

#define PIECE 4096
#define READS_MAX 64 /* at a time: who never stops writing must not keep the agent from the clock */
#define CLOSED_S 1.0 /* a process that ends closes its files first */

enum { READ_END, WRITE_END };

/* --- what it is told */

static void
close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A pipe may be full, or closed at the other end: whoever does not read runs into the deadline. */
static void
flush(struct companion *c)
{
	while (c->words_in >= 0 && c->pending.len > 0) {
		ssize_t n = write(c->words_in, c->pending.data, c->pending.len);
		if (n > 0)
			buf_consume(&c->pending, (size_t)n);
		else if (n == 0 || errno == EAGAIN)
			return;
		else if (errno != EINTR)
			close_end(&c->words_in);
	}
}

static void
tell(struct companion *c, const char *event)
{
	if (c->place->events)
		events_emit(c->place->events, EVENTS_INFO, event,
		    EVENTS_PAIRS(EVENTS_S("name", c->trainer->name), EVENTS_S("job", c->job)));
}

/* The lines are short and the buffer's limit is a line's: they fit. */
static void
speak(struct companion *c, unsigned actions)
{
	const struct companion_task *t = c->task;

	if (t && actions & LIFECYCLE_GIVE)
		(void)!protocol_task(&c->pending, t->task, t->kind, c->directory);
	if (t && actions & LIFECYCLE_FINISH)
		(void)!protocol_finish(&c->pending, t->task);
	flush(c);
	if (actions & LIFECYCLE_CLOSE)
		close_end(&c->words_in);
}

void
companion_step(struct companion *c, enum lifecycle_event event)
{
	unsigned actions = lifecycle_step(&c->lifecycle, event, backoff_now());

	speak(c, actions);
	if (actions & LIFECYCLE_TERMINATE)
		spawner_signal(&c->spawner, SIGTERM);
	if (actions & LIFECYCLE_KILL)
		spawner_signal(&c->spawner, SIGKILL);
	if (actions & LIFECYCLE_TAKE)
		c->taken = true;
	if (actions & LIFECYCLE_LOSE) {
		c->lost = true;
		c->lost_by = event;
	}
	if (actions & (LIFECYCLE_FINISH | LIFECYCLE_TERMINATE))
		c->asked = true;
}

/* --- what it says */

static bool
has_task(const struct companion *c)
{
	enum lifecycle_state s = c->lifecycle.state;

	return c->task &&
	    (s == LIFECYCLE_WORKING || s == LIFECYCLE_FINISHING || s == LIFECYCLE_PARTING);
}

bool
companion_must_speak(const struct companion *c)
{
	return c->lifecycle.state == LIFECYCLE_STARTING || c->lifecycle.state == LIFECYCLE_LATE ||
	    has_task(c);
}

static enum err
hear(void *companion, const char *line, size_t len)
{
	struct companion *c = companion;
	struct protocol_line said;
	struct why why = {""};
	enum err e = protocol_read(&said, line, len, &why);

	if (e)
		/* ERR_LIMIT would be the line's length. */
		return err_set(&c->wrong, e == ERR_LIMIT ? ERR_INVALID : e,
		    "trainer %s wrote a line that is not understood: %s", c->trainer->name,
		    *why.text ? why.text : "it is no JSON");
	if (said.kind == PROTOCOL_READY)
		companion_step(c, LIFECYCLE_IS_READY);
	if (said.kind != PROTOCOL_DONE)
		return ERR_OK;
	if (!has_task(c) || strcmp(said.task, c->task->task) != 0)
		return err_set(&c->wrong, ERR_INVALID,
		    "trainer %s is done with a task that it does not have", c->trainer->name);
	companion_step(c, LIFECYCLE_DONE);
	return ERR_OK;
}

static enum err
take_words(struct companion *c, const char *data, size_t n)
{
	enum err e = lines_feed(&c->lines, data, n, hear, c);

	if (e == ERR_LIMIT)
		err_set(&c->wrong, e, "trainer %s wrote a line of more than %u bytes",
		    c->trainer->name, PROTOCOL_MAX);
	return e;
}

static enum err
take_output(struct companion *c, const char *data, size_t n)
{
	last_words_add(&c->said, data, n);
	return ERR_OK;
}

/* False: it is closed now, or of no use any more. */
static bool
drain_end(
    struct companion *c, int fd, enum err (*take)(struct companion *c, const char *data, size_t n))
{
	char data[PIECE];

	for (unsigned reads = 0; reads < READS_MAX; reads++) {
		ssize_t n = read(fd, data, sizeof(data));
		if (n > 0 && take(c, data, (size_t)n))
			return false;
		if (n > 0 || (n < 0 && errno == EINTR))
			continue;
		return n < 0 && errno == EAGAIN;
	}
	return true;
}

static void
drain_words(struct companion *c)
{
	if (c->words_out < 0 || drain_end(c, c->words_out, take_words))
		return;
	close_end(&c->words_out);
	c->closed_at = backoff_now();
	if (*c->wrong.text)
		companion_step(c, LIFECYCLE_WRONG);
}

/* The words first: what it printed before it said that it is done is then read, too. */
static void
drain(struct companion *c)
{
	drain_words(c);
	if (c->output >= 0 && !drain_end(c, c->output, take_output))
		close_end(&c->output);
}

/* --- its process */

/* Whatever it was, the next one waits, but for one that was told to leave. */
static void
note_end(struct companion *c)
{
	enum lifecycle_state was = c->lifecycle.state;

	drain(c);
	close_end(&c->words_in);
	close_end(&c->words_out);
	close_end(&c->output);
	buf_reset(&c->pending);
	if (was != LIFECYCLE_LEAVING && was != LIFECYCLE_URGED)
		c->not_before = backoff_now() + backoff_next(&c->backoff);
	companion_step(c, LIFECYCLE_ENDED);
	tell(c, "trainer.ended");
}

static void
look_for_end(struct companion *c)
{
	enum err e = spawner_ended(&c->spawner, &c->end);

	if (e == ERR_AGAIN)
		return;
	if (e) {
		c->end = (struct spawner_end){.status = SPAWNER_FAILED << 8};
		spawner_deinit(&c->spawner);
	}
	note_end(c);
}

void
companion_pump(struct companion *c, int timeout_ms)
{
	struct pollfd p[] = {{.fd = c->output, .events = POLLIN},
	    {.fd = c->words_out, .events = POLLIN},
	    {.fd = c->pending.len > 0 ? c->words_in : -1, .events = POLLOUT},
	    {.fd = c->spawner.fd, .events = POLLIN}};

	if (c->lifecycle.state == LIFECYCLE_ABSENT)
		return;
	poll(p, sizeof(p) / sizeof(*p), timeout_ms);
	flush(c);
	drain(c);
	look_for_end(c);
	double now = backoff_now();
	if (c->closed_at > 0 && now > c->closed_at + CLOSED_S && companion_must_speak(c)) {
		err_set(&c->wrong, ERR_CLOSED, "trainer %s closed RIVULET_TRAINER_OUT",
		    c->trainer->name);
		companion_step(c, LIFECYCLE_WRONG);
	}
	if (lifecycle_due(&c->lifecycle, now))
		companion_step(c, LIFECYCLE_DUE);
}

/* --- its start */

/* Three pipes: what it reads, what it writes, and its output. Ours do not block. */
static enum err
make_pipes(int pipes[3][2], struct why *why)
{
	for (size_t i = 0; i < 3; i++)
		if (pipe2(pipes[i], O_CLOEXEC) != 0)
			return err_errno(why, "pipe");
	fcntl(pipes[0][WRITE_END], F_SETFL, O_NONBLOCK);
	fcntl(pipes[1][READ_END], F_SETFL, O_NONBLOCK);
	fcntl(pipes[2][READ_END], F_SETFL, O_NONBLOCK);
	return ERR_OK;
}

static enum err
give_order(struct companion *c, const int pipes[3][2], struct why *why)
{
	static const char *const environment[] = {
	    "RIVULET_TRAINER_IN=3", "RIVULET_TRAINER_OUT=4", NULL};
	const int words[SPAWNER_WORDS] = {pipes[0][READ_END], pipes[1][WRITE_END]};
	const struct task_directory_place place = {
	    .home = c->place->home, .apart = c->place->apart, .trainer = c->trainer};
	struct task_directory_stay stay;
	struct program_order order = {.words = ""};
	const struct program program = {.settings = c->place->settings,
	    .trainer = c->trainer,
	    .home = c->place->home,
	    .apart = c->place->apart,
	    .directory = stay.tasks,
	    .given = stay.given,
	    .environment = environment,
	    .data = c->data};
	enum err e = task_directory_stay(&stay, &place, why);

	if (!e)
		e = program_sandbox_prepare(c->place->apart, c->place->home, c->trainer->name, why);
	if (!e)
		e = program_order_init(&order, &program, why);
	if (e)
		return e;
	order.order.words = words;
	order.order.output = order.order.answer = pipes[2][WRITE_END];
	e = spawner_start(&c->spawner, &order.order, why);
	program_order_deinit(&order);
	return e;
}

static enum err
find_spawner(struct companion *c, struct why *why)
{
	if (c->spawner.fd >= 0)
		return ERR_OK;
	if (c->place->apart && !c->place->pool)
		return err_set(why, ERR_STATE, "nobody may start programs as " APART_USER);
	return c->place->pool ? spawner_pool_spawner(c->place->pool, &c->spawner, why)
			      : spawner_init(&c->spawner, why);
}

enum err
companion_start(struct companion *c, struct why *why)
{
	int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
	enum err e = find_spawner(c, why);

	if (!e)
		e = make_pipes(pipes, why);
	if (!e)
		e = give_order(c, pipes, why);
	close_end(&pipes[0][READ_END]);
	close_end(&pipes[1][WRITE_END]);
	close_end(&pipes[2][WRITE_END]);
	c->words_in = pipes[0][WRITE_END];
	c->words_out = pipes[1][READ_END];
	c->output = pipes[2][READ_END];
	if (e) {
		/* Whoever stood at its other end is gone. */
		if (e == ERR_CLOSED)
			spawner_deinit(&c->spawner);
		close_end(&c->words_in);
		close_end(&c->words_out);
		close_end(&c->output);
		return e;
	}
	lines_deinit(&c->lines);
	lines_init(&c->lines, PROTOCOL_MAX);
	c->closed_at = 0;
	c->wrong.text[0] = '\0';
	companion_step(c, LIFECYCLE_STARTED);
	tell(c, "trainer.started");
	return ERR_OK;
}

struct companion *
companion_new(const struct companion_place *place, const struct settings_trainer *trainer)
{
	struct companion *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->place = place;
	c->trainer = trainer;
	c->lifecycle =
	    (struct lifecycle){.grace_s = trainer->grace_s, .idle_s = trainer->idle_exit_s};
	c->spawner.fd = c->words_in = c->words_out = c->output = -1;
	buf_init(&c->pending, PROTOCOL_MAX);
	lines_init(&c->lines, PROTOCOL_MAX);
	last_words_init(&c->said, c->log, sizeof(c->log));
	backoff_init(&c->backoff, (uint64_t)getpid());
	return c;
}

void
companion_free(struct companion *c)
{
	if (!c)
		return;
	spawner_deinit(&c->spawner);
	task_directory_leave(&(struct task_directory_place){
	    .home = c->place->home, .apart = c->place->apart, .trainer = c->trainer});
	buf_deinit(&c->pending);
	lines_deinit(&c->lines);
	free(c);
}
