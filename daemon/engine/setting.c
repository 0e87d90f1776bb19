#include <stdlib.h>

#include "audit.h"
#include "buf.h"
#include "engine_inside.h"
#include "json.h"
#include "log.h"
#include "store.h"
#include "wake.h"

/* A change of what a job is run by, from the request to its row. */

struct setting {
	struct engine *g;
	struct job *job; /* in use, so that it stays */
	const struct engine_terms_change *asked;
	struct override_set overrides; /* after it */
	uint64_t
	    reports; /* in the job's models so far; kept only while there is a limit for them */
	bool same; /* all that is asked for is in force already */
	struct engine_reservation reservation;
};

static enum err
audit_setting(struct store_db *db, const struct setting *s, struct why *why)
{
	struct json *facts = json_object(), *detail = s->asked->by ? json_object() : NULL;

	json_add(facts, "set", override_json(s->asked->change));
	json_add(facts, "overrides", override_json(&s->overrides));
	if (detail)
		json_add_string(detail, "by", s->asked->by);
	return audit_append(db, jobs_services(s->g),
	    &(struct audit_event){.event = RECORD_JOB_SET,
		.job = job_facts(s->job)->id,
		.facts = facts,
		.detail = detail},
	    why);
}

static enum err
write_overrides(struct store_db *db, const uint8_t job[16], const struct override_set *o)
{
	struct json *v = override_json(o);
	struct buf text;

	buf_init(&text, OVERRIDE_TEXT_MAX);
	enum err e = json_print(&text, v, false);
	json_free(v);
	if (!e)
		e = store_override_put(db, job, override_is_empty(o) ? NULL : buf_str(&text));
	buf_deinit(&text);
	return e;
}

static enum err
refuse_ended(struct store_db *db, const uint8_t job[16], struct why *why)
{
	struct store_job row;

	enum err e = store_job_get(db, job, &row);
	if (e)
		return e;
	free(row.document);
	return states_job_lives(row.state)
	    ? ERR_OK
	    : err_set(why, ERR_STATE, "the job is %s", states_job_name(row.state));
}

static bool
are_same(const struct override_set *a, const struct override_set *b)
{
	bool same = true;

	for (enum override_key k = 0; k < OVERRIDE_KEYS && same; k++)
		same = a->state[k] == b->state[k] &&
		    (a->state[k] != OVERRIDE_GIVEN || a->value[k] == b->value[k]);
	return same;
}

static enum err
write_setting(struct store_db *db, void *arg, struct why *why)
{
	struct setting *s = arg;
	const uint8_t *job = job_facts(s->job)->id;

	enum err e = refuse_ended(db, job, why);
	if (!e)
		e = terms_overrides(db, job, &s->overrides, why);
	if (e)
		return e;
	override_merge(&s->overrides, s->asked->change);
	e = write_overrides(db, job, &s->overrides);
	if (!e)
		e = store_round_reports(db, job, 1, INT64_MAX, &s->reports);
	if (!e)
		e = engine_owner_written(jobs_uses(s->g).spent, db, s->asked->spending);
	return e ? e : audit_setting(db, s, why);
}

/* On the store thread, after the commit, in the order of the ends of rounds. */
static void
take_setting(void *arg)
{
	struct setting *s = arg;
	struct job *j = s->job;

	jobs_lock(s->g);
	if (job_facts(j)->work && states_job_lives(job_facts(j)->state)) {
		jobs_note_reports(j, s->reports);
		terms_take(s->g, j, &s->overrides);
		rounds_step(s->g, j, ROUND_TICK, 0);
	}
	engine_owner_end(s->g, &s->reservation);
	log_event(LOG_LEVEL_INFO, "job.set", LOG_S("job", job_facts(j)->hex),
	    LOG_S("name", job_facts(j)->name));
	jobs_unlock(s->g);
	wake_ring(jobs_uses(s->g).wake);
}

/* The job, in use, and its terms as they are and would be. */
static enum err
begin_setting(struct setting *s, const uint8_t id[16], struct job_terms *was, struct job_terms *to,
    struct why *why)
{
	enum err e = ERR_NOTFOUND;

	jobs_lock(s->g);
	struct job *j = jobs_find(s->g, id);
	if (j && (!job_facts(j)->work || !states_job_lives(job_facts(j)->state)))
		e = err_set(why, ERR_STATE, "the job is %s", states_job_name(job_facts(j)->state));
	else if (j) {
		s->job = j;
		jobs_read_begin(j);
		struct override_set after = job_facts(j)->work->overrides;
		override_merge(&after, s->asked->change);
		s->same = are_same(&after, &job_facts(j)->work->overrides);
		*was = job_facts(j)->work->terms;
		override_terms(to, &job_facts(j)->work->spec, &after);
		e = ERR_OK;
	}
	jobs_unlock(s->g);
	return e;
}

static void
end_setting(struct setting *s)
{
	jobs_lock(s->g);
	jobs_read_end(s->g, s->job);
	engine_owner_end(s->g, &s->reservation);
	jobs_unlock(s->g);
}

/* Paid for once it is known to change something and to be allowed. */
static enum err
change(struct setting *s, struct why *why)
{
	struct engine_spending *spending = s->asked->spending;
	enum err e = spending ? engine_owner_spend(s->g, spending, why) : ERR_OK;

	if (e)
		return e;
	e = store_write_then(jobs_uses(s->g).store, write_setting, take_setting, s, why);
	if (e && spending)
		engine_owner_unspend(s->g, spending);
	return e;
}

enum err
engine_set(
    struct engine *g, const uint8_t id[16], const struct engine_terms_change *c, struct why *why)
{
	struct setting s = {.g = g, .asked = c};
	struct job_terms was, to;

	enum err e = begin_setting(&s, id, &was, &to, why);
	if (e)
		return e;
	e = override_check(c->change, &job_facts(s.job)->work->spec, why);
	if (!e)
		e = terms_rule_takes(&job_facts(s.job)->work->spec, &to.round, why);
	if (!e && c->bounded)
		e = engine_owner_changes(g, s.job, &was, &to, &s.reservation, why);
	if (!e && !s.same)
		e = change(&s, why);
	end_setting(&s);
	return e;
}
