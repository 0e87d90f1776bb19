#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "audit.h"
#include "clock.h"
#include "engine_inside.h"
#include "json.h"
#include "log.h"
#include "past_rows.h"
#include "retention.h"
#include "spool.h"
#include "store.h"

/* What changes the state of a job: its rounds, the coordinator, a person. */

static enum err
audit_change(
    struct store_db *db, const struct services *s, const struct engine_change *c, struct why *why)
{
	struct json *facts = json_object(), *detail = c->by ? json_object() : NULL;

	json_add_string(facts, "state", states_job_name(c->state));
	if (c->reason[0])
		json_add_string(facts, "reason", c->reason);
	if (detail)
		json_add_string(detail, "by", c->by);
	return audit_append(db, s,
	    &(struct audit_event){
		.event = RECORD_JOB_STATE, .job = c->job, .facts = facts, .detail = detail},
	    why);
}

enum err
engine_change_state(struct store_db *db, const struct services *s, const struct engine_change *c,
    enum job_state *was, struct why *why)
{
	struct store_job row;

	enum err e = store_job_get(db, c->job, &row);
	if (e)
		return e;
	free(row.document);
	*was = row.state;
	if (!states_job_lives(row.state))
		return ERR_OK;
	e = store_job_set_state(db, c->job, c->state, c->reason, age_stamp(s->age));
	if (!e && states_job_over(c->state))
		e = store_sized_drop(db, c->job, INT64_MAX);
	if (!e && states_job_over(c->state))
		e = store_out_clear(db, c->job);
	return e ? e : audit_change(db, s, c, why);
}

bool
engine_job_lives(struct engine *g, const struct engine_job *j)
{
	lock_take(&g->lock);
	bool lives = states_job_lives(j->state);
	lock_release(&g->lock);
	return lives;
}

/* --- by the coordinator itself */

struct state_change {
	const struct services *services;
	uint8_t id[16];
	enum job_state state;
	char reason[STORE_REASON_MAX];
};

static enum err
write_state(struct store_db *db, void *arg, struct why *why)
{
	const struct state_change *c = arg;
	const struct engine_change change = {c->id, c->state, c->reason, NULL};
	enum job_state was;

	return engine_change_state(db, c->services, &change, &was, why);
}

static void
state_written(void *arg, enum err e, const struct why *why)
{
	if (e)
		log_event(LOG_LEVEL_ERROR, "store.failed", LOG_S("why", why->text));
	free(arg);
}

void
engine_note_state(struct engine *g, struct engine_job *j, enum job_state state, const char *reason)
{
	g->report.jobs[j->state]--;
	g->report.jobs[state]++;
	j->state = state;
	engine_view_unstuck(g, j);
	j->ended_at = states_job_lives(state) ? NAN : age_stamp(g->services->age);
	g->dated = g->dated && (states_job_lives(state) || isfinite(j->ended_at));
	engine_share_wait(g, j, state == JOB_PAUSED);
	if (!states_job_lives(state)) {
		share_order_remove(&g->order, &j->member);
		standing_close(g->services->registry, j->place);
		j->place = STANDING_NO_PLACE;
	}
	snprintf(j->reason, sizeof(j->reason), "%s", reason);
	log_event(LOG_LEVEL_INFO, "job.state", LOG_S("job", j->hex), LOG_S("name", j->name),
	    LOG_S("state", states_job_name(state)), LOG_S("reason", reason));
}

void
engine_set_state(struct engine *g, struct engine_job *j, enum job_state state, const char *reason)
{
	struct state_change *c = calloc(1, sizeof(*c));

	engine_note_state(g, j, state, reason);
	if (!c)
		return;
	c->services = g->services;
	memcpy(c->id, j->id, 16);
	c->state = state;
	memcpy(c->reason, j->reason, sizeof(c->reason));
	if (store_submit(g->services->store, write_state, state_written, c))
		free(c);
}

/* --- by a person */

/* A row keeps the words alone. */
static const char *const by_hand[JOB_STOPPED + 1] = {
    [JOB_RUNNING] = "",
    [JOB_PAUSED] = "paused by hand",
    [JOB_STOPPED] = "stopped by hand",
};

bool
engine_paused_by_hand(const struct engine_job *j)
{
	return j->state == JOB_PAUSED && strcmp(j->reason, by_hand[JOB_PAUSED]) == 0;
}

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
	const struct engine_change change = {c->id, c->state, c->reason, c->by};
	enum job_state was;

	enum err e = engine_change_state(db, c->g->services, &change, &was, why);
	if (!e && states_job_lives(was))
		e = engine_owner_written(c->g->services, db, c->spending);
	return e || states_job_lives(was)
	    ? e
	    : err_set(why, ERR_STATE, "the job is %s", states_job_name(was));
}

static enum err
remove_delta(void *ctx, const struct store_accept *a)
{
	const struct command *c = ctx;

	spool_remove(c->g->services->spool, a->task);
	return ERR_OK;
}

/* The deltas of a stopped job's open round are of no more use. Queued behind those on their way. */
static enum err
remove_deltas(struct store_db *db, void *arg, struct why *why)
{
	const struct command *c = arg;

	(void)why;
	spool_forget(c->g->services->spool, c->id, c->round);
	return store_accept_waiting(db, c->id, c->round, remove_delta, arg);
}

/* Lock held. */
static void
carry_out_on(struct engine *g, struct engine_job *j, struct command *c)
{
	bool paused = j->state == JOB_PAUSED;

	c->round = j->row.round;
	c->found = true;
	/* A stop wins over a fold that ended the job meanwhile, in memory as in the store. */
	if (!states_job_lives(j->state) && c->state != JOB_STOPPED)
		return;
	engine_lack_nothing(g, j);
	engine_note_state(g, j, c->state, c->reason);
	if (c->state == JOB_STOPPED)
		engine_step(g, j, ROUND_STOP, 0);
	else if (c->state == JOB_PAUSED)
		engine_step(g, j, ROUND_PAUSE, 0);
	else if (paused)
		engine_step(g, j, ROUND_RESUME, 0);
	if (!j->work)
		engine_past_note(g, j);
	else if (c->state == JOB_STOPPED && engine_names_state(j))
		engine_forget_later(g);
	else
		engine_job_shrink(g, j);
}

/* On the store thread, after the commit: in memory as in the store, in the same order as the ends of rounds. */
static void
carry_out(void *arg)
{
	struct command *c = arg;

	lock_take(&c->g->lock);
	struct engine_job *j = engine_find(c->g, c->id);
	if (j)
		carry_out_on(c->g, j, c);
	lock_release(&c->g->lock);
	wake_ring(&c->g->services->wake);
}

/* A job whose files are missing or damaged can only be stopped, until it is mended and loaded again. */
static bool
is_set_aside(struct engine *g, const uint8_t id[16], struct why *why)
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, id);
	bool aside = j && states_job_lives(j->state) && j->round.state == ROUND_ENDED;
	if (aside)
		err_set(why, ERR_STATE, "%s; fix it and restart", j->reason);
	lock_release(&g->lock);
	return aside;
}

/* One that is over is for the store to refuse; one that waits for a file is paused in memory alone. */
static bool
is_so(struct engine *g, const uint8_t id[16], enum job_state state)
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, id);
	bool so = j && states_job_lives(state) && j->state == state && !j->lack.kind;
	lock_release(&g->lock);
	return so;
}

/* Durable first: what was answered survives a restart. */
static enum err
write_out(struct command *c, struct why *why)
{
	enum err e = c->spending ? engine_owner_spend(c->g, c->spending, why) : ERR_OK;

	if (e)
		return e;
	e = store_write_reserved(c->g->services->store, write_command, carry_out, c, why);
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
	    .reason = by_hand[to]};

	memcpy(c.id, id, 16);
	if (!stop && is_set_aside(g, id, why))
		return ERR_STATE;
	if (is_so(g, id, to))
		return ERR_OK;
	enum err e = write_out(&c, why);
	if (e || !stop)
		return e;
	/* What its guard held is free now. The stop counts whatever becomes of all that: the next pass comes with the next round. */
	e = store_write(g->services->store, remove_deltas, &c, why);
	if (!e)
		e = retention_pass(g->services);
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

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j && !found; j = engine_next(g, j, &seen)) {
		found = states_job_lives(j->state) && memcmp(j->owner, owner, 32) == 0;
		if (found)
			memcpy(id, j->id, 16);
	}
	lock_release(&g->lock);
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
