#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "engine_inside.h"
#include "json.h"
#include "log.h"
#include "past_rows.h"
#include "retention.h"
#include "spool.h"
#include "store.h"
#include "wake.h"

/* What persons do to a job: resume, pause, stop. */

struct command {
	struct engine *g;
	uint8_t id[16];
	enum job_state state;
	const char *reason, *by;
	struct engine_spending *spending; /* NULL: nobody is charged */
	uint64_t round; /* the one that was open */
	bool found;
};

static enum err
write_command(struct store_db *db, void *arg, struct why *why)
{
	const struct command *c = arg;
	const struct engine_change change = {
	    c->id, c->state, c->reason, c->by, age_stamp(jobs_uses(c->g).age)};
	enum job_state was;

	enum err e = jobs_change_state(db, jobs_services(c->g), &change, &was, why);
	if (!e && states_job_lives(was))
		e = engine_owner_written(jobs_uses(c->g).spent, db, c->spending);
	return e || states_job_lives(was)
	    ? e
	    : err_set(why, ERR_STATE, "the job is %s", states_job_name(was));
}

static enum err
remove_delta(void *ctx, const struct store_accept *a)
{
	const struct command *c = ctx;

	spool_remove(jobs_uses(c->g).spool, a->task);
	return ERR_OK;
}

/* The deltas of a stopped job's open round are of no more use. Queued behind those on their way. */
static enum err
remove_deltas(struct store_db *db, void *arg, struct why *why)
{
	const struct command *c = arg;

	(void)why;
	spool_forget(jobs_uses(c->g).spool, c->id, c->round);
	return store_accept_waiting(db, c->id, c->round, remove_delta, arg);
}

/* Lock held. */
static void
carry_out_on(struct engine *g, struct job *j, struct command *c)
{
	const struct job_facts *facts = job_facts(j);
	bool paused = facts->state == JOB_PAUSED;

	c->round = facts->row.round;
	c->found = true;
	/* A stop wins over a fold that ended the job meanwhile, in memory as in the store. */
	if (!states_job_lives(facts->state) && c->state != JOB_STOPPED)
		return;
	jobs_lack_nothing(g, j);
	jobs_note_state(g, j, c->state, c->reason);
	if (c->state == JOB_STOPPED)
		rounds_step(g, j, ROUND_STOP, 0);
	else if (c->state == JOB_PAUSED)
		rounds_step(g, j, ROUND_PAUSE, 0);
	else if (paused)
		rounds_step(g, j, ROUND_RESUME, 0);
	if (!facts->work)
		jobs_past_note(g, j);
	else if (c->state == JOB_STOPPED && jobs_names_state(j))
		rounds_forget_later(g);
	else
		jobs_shrink(g, j);
}

/* On the store thread, after the commit: in memory as in the store, in the same order as the ends of rounds. */
static void
carry_out(void *arg)
{
	struct command *c = arg;

	jobs_lock(c->g);
	struct job *j = jobs_find(c->g, c->id);
	if (j)
		carry_out_on(c->g, j, c);
	jobs_unlock(c->g);
	wake_ring(jobs_uses(c->g).wake);
}

/* A job whose files are missing or damaged can only be stopped, until it is mended and loaded again. */
static bool
is_set_aside(struct engine *g, const uint8_t id[16], struct why *why)
{
	jobs_lock(g);
	const struct job *j = jobs_find(g, id);
	bool aside =
	    j && states_job_lives(job_facts(j)->state) && job_facts(j)->round.state == ROUND_ENDED;
	if (aside)
		err_set(why, ERR_STATE, "%s; fix it and restart", job_facts(j)->reason);
	jobs_unlock(g);
	return aside;
}

/* One that is over is for the store to refuse; one that waits for a file is paused in memory alone. */
static bool
is_so(struct engine *g, const uint8_t id[16], enum job_state state)
{
	jobs_lock(g);
	const struct job *j = jobs_find(g, id);
	bool so = j && states_job_lives(state) && job_facts(j)->state == state &&
	    !job_facts(j)->lack.kind;
	jobs_unlock(g);
	return so;
}

/* Durable first: what was answered survives a restart. */
static enum err
write_out(struct command *c, struct why *why)
{
	enum err e = c->spending ? engine_owner_spend(c->g, c->spending, why) : ERR_OK;

	if (e)
		return e;
	e = store_write_reserved(jobs_uses(c->g).store, write_command, carry_out, c, why);
	if (e && c->spending)
		engine_owner_unspend(c->g, c->spending);
	return !e && !c->found ? ERR_NOTFOUND : e;
}

enum err
engine_command_of(struct engine *g, const uint8_t id[16], enum job_state to, const char *by,
    struct engine_spending *spending, struct why *why)
{
	bool stop = to == JOB_STOPPED;
	struct command c = {.g = g,
	    .by = by,
	    /* Whoever runs out of changes can still end what it has. */
	    .spending = to == JOB_RUNNING ? spending : NULL,
	    .state = to,
	    .reason = jobs_by_hand(to)};

	memcpy(c.id, id, 16);
	if (!stop && is_set_aside(g, id, why))
		return ERR_STATE;
	if (is_so(g, id, to))
		return ERR_OK;
	enum err e = write_out(&c, why);
	if (e || !stop)
		return e;
	/* What its guard held is free now. The stop counts whatever becomes of all that: the next pass comes with the next round. */
	e = store_write(jobs_uses(g).store, remove_deltas, &c, why);
	if (!e)
		e = retention_pass(g);
	if (e)
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", err_name(e)));
	return ERR_OK;
}

enum err
engine_command(
    struct engine *g, const uint8_t id[16], enum job_state to, const char *by, struct why *why)
{
	return engine_command_of(g, id, to, by, NULL, why);
}

static bool
find_live(struct engine *g, const uint8_t owner[32], uint8_t id[16])
{
	unsigned seen = 0;
	bool found = false;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j && !found; j = jobs_next(g, j, &seen)) {
		found = states_job_lives(job_facts(j)->state) &&
		    memcmp(job_facts(j)->owner, owner, 32) == 0;
		if (found)
			memcpy(id, job_facts(j)->id, 16);
	}
	jobs_unlock(g);
	return found;
}

enum err
engine_stop_of(
    struct engine *g, const uint8_t owner[32], const char *by, uint64_t *count, struct why *why)
{
	enum err e = ERR_OK;
	uint8_t id[16];

	for (*count = 0; !e && find_live(g, owner, id); *count += !e)
		e = engine_command(g, id, JOB_STOPPED, by, why);
	return e;
}
