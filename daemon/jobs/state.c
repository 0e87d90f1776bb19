#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "audit.h"
#include "jobs_inside.h"
#include "json.h"
#include "log.h"
#include "store.h"

/* What changes the state of a job, in memory and in the store. */

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
jobs_change_state(struct store_db *db, const struct services *s, const struct engine_change *c,
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
	e = store_job_set_state(db, c->job, c->state, c->reason, c->at);
	if (!e && states_job_over(c->state))
		e = store_sized_drop(db, c->job, INT64_MAX);
	if (!e && states_job_over(c->state))
		e = store_out_clear(db, c->job);
	return e ? e : audit_change(db, s, c, why);
}

bool
jobs_lives(struct engine *g, const struct job *j)
{
	lock_take(&g->lock);
	bool lives = states_job_lives(j->facts.state);
	lock_release(&g->lock);
	return lives;
}

struct state_change {
	const struct services *services;
	struct age *age;
	uint8_t id[16];
	enum job_state state;
	char reason[STORE_REASON_MAX];
};

static enum err
write_state(struct store_db *db, void *arg, struct why *why)
{
	const struct state_change *c = arg;
	const struct engine_change change = {c->id, c->state, c->reason, NULL, age_stamp(c->age)};
	enum job_state was;

	return jobs_change_state(db, c->services, &change, &was, why);
}

static void
state_written(void *arg, enum err e, const struct why *why)
{
	if (e)
		log_event(LOG_LEVEL_ERROR, "store.failed", LOG_S("why", why->text));
	free(arg);
}

/* The job is over, or was paused or resumed: what was said of it holds no longer. */
static void
unstuck(struct engine *g, struct job *j)
{
	if (!j->work)
		return;
	if (j->work->stuck.watch.said.kind)
		g->pace.stuck[j->work->stuck.watch.said.kind]--;
	j->work->stuck.watch = (struct stuck_watch){.since = 0};
	j->work->stuck.reopened = (struct stuck_reopened){.round = 0};
	g->pace.stuck_ms = 0;
}

void
jobs_note_state(struct engine *g, struct job *j, enum job_state state, const char *reason)
{
	g->report.jobs[j->facts.state]--;
	g->report.jobs[state]++;
	change_facts(j)->state = state;
	unstuck(g, j);
	change_facts(j)->ended_at = states_job_lives(state) ? NAN : age_stamp(jobs_uses(g).age);
	g->dated = g->dated && (states_job_lives(state) || isfinite(j->facts.ended_at));
	jobs_share_wait(g, j, state == JOB_PAUSED);
	if (!states_job_lives(state)) {
		share_order_remove(&g->order, &j->member);
		device_status_close(jobs_uses(g).registry, j->facts.place);
		change_facts(j)->place = DEVICE_STATUS_NO_PLACE;
	}
	snprintf(change_facts(j)->reason, sizeof(j->facts.reason), "%s", reason);
	log_event(LOG_LEVEL_INFO, "job.state", LOG_S("job", j->facts.hex),
	    LOG_S("name", j->facts.name), LOG_S("state", states_job_name(state)),
	    LOG_S("reason", reason));
}

void
jobs_set_state(struct engine *g, struct job *j, enum job_state state, const char *reason)
{
	struct state_change *c = calloc(1, sizeof(*c));

	jobs_note_state(g, j, state, reason);
	if (!c)
		return;
	c->services = g->services;
	c->age = jobs_uses(g).age;
	memcpy(c->id, j->facts.id, 16);
	c->state = state;
	memcpy(c->reason, j->facts.reason, sizeof(c->reason));
	if (store_submit(jobs_uses(g).store, write_state, state_written, c))
		free(c);
}

/* A row keeps the words alone. */
static const char *const by_hand[JOB_STOPPED + 1] = {
    [JOB_RUNNING] = "",
    [JOB_PAUSED] = "paused by hand",
    [JOB_STOPPED] = "stopped by hand",
};

const char *
jobs_by_hand(enum job_state state)
{
	return by_hand[state];
}

bool
jobs_paused_by_hand(const struct job *j)
{
	return j->facts.state == JOB_PAUSED && strcmp(j->facts.reason, by_hand[JOB_PAUSED]) == 0;
}

void
jobs_lack_is(struct engine *g, struct job *j, const struct engine_lack *lack)
{
	jobs_lack_nothing(g, j);
	g->report.jobs_lacking += lack->kind != LACKS_NOTHING;
	change_facts(j)->lack = *lack;
	j->pace.lack_fault = ERR_OK;
	j->pace.lack_looks = 0;
	j->pace.lack_ms = 0;
}

void
jobs_lack_nothing(struct engine *g, struct job *j)
{
	g->report.jobs_lacking -= j->facts.lack.kind != LACKS_NOTHING;
	change_facts(j)->lack.kind = LACKS_NOTHING;
}

void
jobs_note_reason(struct job *j, const char *reason)
{
	snprintf(change_facts(j)->reason, sizeof(j->facts.reason), "%s", reason);
}

/* What ended while the clock was doubted has ended now that it is believed, as its row says (store_past_dated). */
void
jobs_date_ends(struct engine *g, double now)
{
	unsigned seen = 0;

	for (struct job *j = g->dated ? NULL : g->jobs; j; j = jobs_next(g, j, &seen))
		if (!states_job_lives(j->facts.state) && isnan(j->facts.ended_at))
			change_facts(j)->ended_at = now;
	g->dated = true;
}

void
jobs_replace(struct engine *g, struct job *old, struct job *j)
{
	g->report.jobs[old->facts.state]--;
	jobs_lack_nothing(g, old);
	unstuck(g, old);
	share_order_remove(&g->order, &old->member);
	device_status_close(jobs_uses(g).registry, old->facts.place);
	change_facts(old)->place = DEVICE_STATUS_NO_PLACE;
	change_facts(old)->state = JOB_STOPPED;
	change_facts(old)->gone = true;
	g->gone_count++;
	change_facts(old)->row = (struct store_round){.round = 0};
	memset(change_facts(old)->model, 0, sizeof(old->facts.model));
	jobs_drop_states(old);
	g->report.jobs[j->facts.state]++;
	jobs_link(g, j);
	jobs_share_restart(g, j);
}
