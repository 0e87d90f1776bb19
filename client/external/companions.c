#include "companions.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "child.h"
#include "program.h"

#define SLICE_MS 100

/* --- a task */

static void
see_off(struct companion *c)
{
	companion_step(c, LIFECYCLE_LEAVE);
	while (c->lifecycle.state != LIFECYCLE_ABSENT)
		companion_pump(c, SLICE_MS);
}

static bool
fits(const struct companion *c, const struct companion_task *t)
{
	enum lifecycle_state s = c->lifecycle.state;

	uint64_t stamp = program_stamp(c->trainer);

	/* What is just being replaced is no reason to start it: it may not be whole yet. */
	if (stamp != 0 && stamp != c->stamp)
		return false;
	return (s == LIFECYCLE_READY || s == LIFECYCLE_STARTING || s == LIFECYCLE_LATE) &&
	    c->data == t->data && (c->trainer->share_jobs || strcmp(c->job, t->job) == 0);
}

/* Where the trainer's is, made or not. */
static struct companion **
slot_of(struct companions *c, const struct settings_trainer *trainer)
{
	return &c->items[trainer - c->place.settings->trainers];
}

static enum err
wait_and_start(struct companion *c, const struct companion_task *t, struct companions_result *out,
    struct why *why)
{
	double wait = c->not_before - backoff_now();

	if (t->seconds > 0 && wait > t->seconds) {
		out->abort = ABORT_TRAINER_FAILED;
		return err_set(why, ERR_TIMEOUT,
		    "trainer %s failed %u times, and pauses for %.0f s, longer than its task has",
		    c->trainer->name, c->backoff.attempt, wait);
	}
	if (wait > 0 && !backoff_sleep(wait, t->stop, t->context)) {
		out->abort = ABORT_STOPPED;
		return err_set(why, ERR_AGAIN, "the agent is to end");
	}
	snprintf(c->job, sizeof(c->job), "%s", t->job);
	c->data = t->data;
	c->stamp = program_stamp(c->trainer);
	return companion_start(c, why);
}

enum err
companions_call(struct companions *all, const struct companion_task *t,
    struct companions_result *out, struct why *why)
{
	struct companion **slot = slot_of(all, t->trainer);

	*out = (struct companions_result){.abort = ABORT_NONE};
	if (!*slot && !(*slot = companion_new(&all->place, t->trainer)))
		return err_set(why, ERR_NOMEM, "no memory for trainer %s", t->trainer->name);
	struct companion *c = *slot;
	companion_pump(c, 0);
	if (c->lifecycle.state != LIFECYCLE_ABSENT && !fits(c, t))
		see_off(c);
	last_words_init(&c->said, c->log, sizeof(c->log));
	c->lifecycle.task_until = t->seconds > 0 ? backoff_now() + t->seconds : 0;
	c->task = NULL;
	c->taken = c->lost = c->asked = false;
	if (c->lifecycle.state == LIFECYCLE_LATE)
		companion_step(c, LIFECYCLE_TASK);
	/* It shall not leave for idleness now, nor for the time that an earlier task had. */
	c->lifecycle.until = c->lifecycle.state == LIFECYCLE_STARTING ? c->lifecycle.task_until : 0;
	enum err e = ERR_OK;
	if (c->lifecycle.state == LIFECYCLE_ABSENT)
		e = wait_and_start(c, t, out, why);
	return e;
}

void
companions_drop(struct companions *all, const struct companion_task *t)
{
	companion_step(*slot_of(all, t->trainer), LIFECYCLE_DROPPED);
}

/* Until the task is done or lost. */
static void
work(struct companion *c, const struct companion_task *t)
{
	while (!c->taken && !c->lost) {
		if (c->lifecycle.state == LIFECYCLE_READY)
			companion_step(c, LIFECYCLE_TASK);
		if (!companion_must_speak(c)) { /* it left while it had nothing to do */
			c->lost = true;
			c->lost_by = LIFECYCLE_ENDED;
			return;
		}
		companion_pump(c, SLICE_MS);
		if (t->stop && t->stop(t->context))
			companion_step(c, LIFECYCLE_STOP);
	}
	while (c->lifecycle.state == LIFECYCLE_KILLED)
		companion_pump(c, SLICE_MS);
}

static enum err
judge_end(struct companion *c, struct companions_result *out, struct why *why)
{
	const struct spawner_end *end = &c->end;
	const char *name = c->trainer->name;

	out->abort = ABORT_TRAINER_FAILED;
	if (end->memory > 0) {
		out->abort = ABORT_OUT_OF_MEMORY;
		return err_set(why, ERR_NOMEM,
		    "trainer %s was killed with %llu MiB of memory: its memory_bytes is %llu MiB",
		    name, (unsigned long long)(end->memory >> 20),
		    (unsigned long long)(c->trainer->memory_bytes >> 20));
	}
	if (!WIFEXITED(end->status))
		return err_set(why, ERR_INVALID, "trainer %s was ended by signal %d", name,
		    WTERMSIG(end->status));
	if (WEXITSTATUS(end->status) == SPAWNER_FAILED)
		return err_set(why, ERR_NOTFOUND, "trainer %s cannot be started: %.120s", name,
		    child_last_line(c->said.text));
	return err_set(why, ERR_INVALID, "trainer %s exited with %d, and its task was not done",
	    name, WEXITSTATUS(end->status));
}

static enum err
judge_loss(struct companion *c, struct companions_result *out, struct why *why)
{
	switch (c->lost_by) {
	case LIFECYCLE_WRONG:
		out->abort = ABORT_TRAINER_FAILED;
		return err_set(why, ERR_INVALID, "%.250s", c->wrong.text);
	case LIFECYCLE_STOP:
		out->abort = ABORT_STOPPED;
		return err_set(why, ERR_AGAIN, "the agent is to end");
	case LIFECYCLE_DUE:
		out->abort = ABORT_DEADLINE;
		return err_set(why, ERR_TIMEOUT,
		    c->lifecycle.state == LIFECYCLE_LATE
			? "trainer %s was not ready in time; it goes on starting"
			: "trainer %s did not finish when asked, and was killed",
		    c->trainer->name);
	default:
		return judge_end(c, out, why);
	}
}

enum err
companions_run(struct companions *all, const struct companion_task *t, const char *directory,
    struct companions_result *out, struct why *why)
{
	struct companion *c = *slot_of(all, t->trainer);

	c->task = t;
	c->directory = directory;
	all->busy = c;
	work(c, t);
	c->task = NULL;
	all->busy = NULL;
	out->asked = c->asked;
	if (c->taken) {
		backoff_reset(&c->backoff);
		return ERR_OK;
	}
	return judge_loss(c, out, why);
}

const char *
companions_log(const struct companions *all, const struct companion_task *t)
{
	const struct companion *c = all->items[t->trainer - all->place.settings->trainers];

	return c ? c->log : "";
}

/* --- all of them */

void
companions_init(struct companions *c, const struct companion_place *place)
{
	*c = (struct companions){.place = *place};
}

void
companions_tend(struct companions *c)
{
	for (size_t i = 0; i < SETTINGS_TRAINERS_MAX; i++)
		if (c->items[i] && c->items[i] != c->busy)
			companion_pump(c->items[i], 0);
}

/* Together: they need not wait for each other. */
static bool
any_left(struct companions *c)
{
	bool left = false;

	for (size_t i = 0; i < SETTINGS_TRAINERS_MAX; i++) {
		if (!c->items[i] || c->items[i]->lifecycle.state == LIFECYCLE_ABSENT)
			continue;
		companion_pump(c->items[i], SLICE_MS);
		left = true;
	}
	return left;
}

void
companions_deinit(struct companions *c)
{
	for (size_t i = 0; i < SETTINGS_TRAINERS_MAX; i++)
		if (c->items[i])
			companion_step(c->items[i], LIFECYCLE_LEAVE);
	while (any_left(c))
		;
	for (size_t i = 0; i < SETTINGS_TRAINERS_MAX; i++) {
		companion_free(c->items[i]);
		c->items[i] = NULL;
	}
}
