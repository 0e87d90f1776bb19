#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "buf.h"
#include "clock.h"
#include "jobs_inside.h"
#include "json.h"
#include "rule.h"
#include "store.h"

/* What a job is run by: its document, and what people have overridden of it. */

struct round_policy
terms_policy(const struct job *j, bool evaluates)
{
	/* The machine takes it from a document: a copy that only reads what it shares. */
	struct job_spec spec = j->work->spec;

	spec.round = j->work->terms.round;
	spec.recipe.evaluate_deadline_s = j->work->terms.evaluate_deadline_s;
	return evaluates ? round_evaluation(&spec) : round_policy(&spec);
}

void
terms_take(struct engine *g, struct job *j, const struct override_set *o)
{
	struct job_work *w = j->work;
	const int64_t before = j->member.priority;

	w->overrides = *o;
	override_terms(&w->terms, &w->spec, o);
	const struct round_policy policy = terms_policy(j, j->facts.round.policy.once);
	round_amend(&change_facts(j)->round, &policy);
	j->member.share = w->terms.share;
	j->member.priority = w->terms.priority;
	share_order_move(&g->order, &j->member);
	if (j->member.is_in && j->member.priority != before)
		share_order_raise(&g->order, &j->member, clock_ms());
}

/* A job does not end by a clock that is doubted: that is for good. */
enum after_limit
terms_limit(const struct engine *g, const struct job *j)
{
	double now;
	const bool believed = age_now(jobs_uses(g).age, &now);

	return after_reached(&j->work->terms.stop,
	    &(struct after_progress){.round = j->facts.row.round,
		.reports = j->facts.reports + j->facts.round.accepted,
		.seconds = believed ? now - j->facts.created_at : 0});
}

/* Empty if there is no row. */
enum err
terms_overrides(
    struct store_db *db, const uint8_t job[16], struct override_set *out, struct why *why)
{
	char *text = NULL;

	*out = (struct override_set){.state = {OVERRIDE_ABSENT}};
	enum err e = store_override_get(db, job, &text);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	e = override_parse(out, text, strlen(text), why);
	free(text);
	return e == ERR_INVALID || e == ERR_LIMIT ? ERR_CORRUPT : e;
}

/* --- defaults of new jobs */

void
terms_stamp(struct job *j)
{
	j->work->stamp = job_stamp_new(&j->work->spec);
	job_stamp_apply(&j->work->spec, &j->work->stamp);
}

enum err
terms_put_stamp(struct store_db *db, const struct job *j)
{
	struct buf text;

	if (job_stamp_is_empty(&j->work->stamp))
		return ERR_OK;
	struct json *v = job_stamp_json(&j->work->stamp);
	buf_init(&text, JOB_STAMP_TEXT_MAX);
	enum err e = json_print(&text, v, false);
	json_free(v);
	if (!e)
		e = store_stamp_put(db, j->facts.id, buf_str(&text));
	buf_deinit(&text);
	return e;
}

/* Without a row the document alone counts. */
static enum err
load_stamp(struct store_db *db, struct job *j, struct why *why)
{
	char *text = NULL;

	enum err e = store_stamp_get(db, j->facts.id, &text);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	e = job_stamp_parse(&j->work->stamp, text, strlen(text), why);
	free(text);
	if (!e)
		job_stamp_apply(&j->work->spec, &j->work->stamp);
	return e == ERR_INVALID || e == ERR_LIMIT ? ERR_CORRUPT : e;
}

enum err
terms_load(struct engine *g, struct store_db *db, struct job *j, struct why *why)
{
	struct override_set o;

	enum err e = load_stamp(db, j, why);
	if (!e)
		e = terms_overrides(db, j->facts.id, &o, why);
	if (!e)
		terms_take(g, j, &o);
	return e;
}

enum err
terms_rule_takes(const struct job_spec *spec, const struct round_spec *round, struct why *why)
{
	struct why detail = {""};

	enum err e = rule_check(&spec->aggregate.rule, round->quorum, &detail);
	if (!e)
		e = rule_check(&spec->aggregate.rule, round->goal, &detail);
	return e ? err_set(why, ERR_INVALID, "aggregate.rule: %s", detail.text) : ERR_OK;
}
