#include "round_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "hex.h"
#include "json.h"
#include "row.h"
#include "store.h"

struct accepted {
	struct {
		uint8_t device[32], manifest[MANIFEST_LEN];
	} * rows;
	size_t count, room;
};

static enum err
add(void *ctx, const struct store_accept *a)
{
	struct accepted *all = ctx;

	if (all->count == all->room)
		return ERR_CORRUPT;
	memcpy(all->rows[all->count].device, a->device, 32);
	memcpy(all->rows[all->count++].manifest, a->manifest, MANIFEST_LEN);
	return ERR_OK;
}

static void
add_id(struct json *to, const char *key, const uint8_t id[32])
{
	static const uint8_t none[32];
	char hex[65];

	if (memcmp(id, none, sizeof(none)) == 0)
		return;
	hex_encode(hex, id, 32);
	json_add_string(to, key, hex);
}

static struct json *
metric_facts(const struct store_metric *m)
{
	struct json *v = json_object();

	json_add_u64(v, "examples", m->examples);
	json_add_double(v, "loss", m->loss);
	json_add_double(v, "accuracy", m->accuracy);
	return v;
}

static struct json *
guard_facts(const struct rate_control_turn *t)
{
	struct json *v = json_object();

	json_add_string(v, "do", guard_word(t->verdict));
	if (t->back) {
		json_add_u64(v, "round", t->round);
		add_id(v, "base", t->base);
		add_id(v, "base_optimizer_state", t->state);
	}
	return v;
}

/* What was in force beside the document. */
static void
add_overrides(struct json *to, const struct fold *w)
{
	if (!override_is_empty(&w->f->overrides))
		json_add(to, "overrides", override_json(&w->f->overrides));
}

/* Of a round that made no model. */
static struct json *
evaluation_facts(const struct fold *w)
{
	const struct store_round *r = &w->out.row;
	struct json *v = json_object();

	add_id(v, "model", r->base);
	json_add_u64(v, "reports", r->reports);
	json_add_u64(v, "examples", r->examples);
	if (r->evaluate.known)
		json_add(v, "evaluate", metric_facts(&r->evaluate));
	add_overrides(v, w);
	if (r->reason[0])
		json_add_string(v, "reason", r->reason);
	return v;
}

/* By what late deltas count; how late each is, its manifest says. */
static void
add_mode(struct json *v, const struct job_spec *spec)
{
	const struct staleness_spec *s = &spec->aggregate.staleness;
	struct json *staleness = json_object();

	json_add_string(v, "mode", job_round_mode(spec->round.mode));
	json_add_u64(v, "max_staleness", spec->round.max_staleness);
	json_add_string(staleness, "weight", job_weight_word(s->weight));
	json_add_string(staleness, "divide", job_divide_word(s->divide));
	json_add(v, "staleness", staleness);
}

static struct json *
round_facts(const struct fold *w)
{
	const struct aggregate_spec *a = &w->f->spec->aggregate;
	const struct store_round *r = &w->out.row;
	struct json *v = json_object(), *rule = json_object(), *opt = json_object();

	add_id(v, "base", r->base);
	add_id(v, "base_optimizer_state", w->f->row.optimizer_state);
	add_id(v, "model", r->model);
	add_id(v, "optimizer_state", r->optimizer_state);
	json_add_string(rule, "name", a->rule.name);
	json_add(v, "rule", rule);
	json_add_string(opt, "name", a->optimizer);
	json_add_double(opt, "rate", a->rate);
	json_add_double(opt, "momentum", a->momentum);
	if (a->scale.by != SCALE_NONE)
		json_add_double(opt, "factor", w->out.turn.factor);
	json_add(v, "server_optimizer", opt);
	if (w->f->spec->download.codec[0]) {
		struct json *download = json_object();
		json_add_string(download, "codec", w->f->spec->download.codec);
		json_add_bool(download, "feedback", w->f->spec->download.feedback);
		json_add(v, "download", download);
	}
	if (w->f->spec->round.max_staleness > 0 || w->f->spec->round.mode == ROUND_MODE_BUFFERED)
		add_mode(v, w->f->spec);
	json_add_double(v, "max_norm", a->max_norm);
	if (!job_stamp_is_empty(&w->f->stamp))
		json_add(v, "defaults", job_stamp_json(&w->f->stamp));
	json_add_u64(v, "reports", r->reports);
	json_add_u64(v, "examples", r->examples);
	if (r->evaluate.known)
		json_add(v, "evaluate", metric_facts(&r->evaluate));
	if (r->measured > 0 && (r->evaluate.known || isfinite(r->eval_own)))
		json_add_u64(v, "measured", r->measured);
	if (isfinite(r->eval_own))
		json_add_double(v, "own", r->eval_own);
	if (w->out.turn.verdict >= GUARD_STOP)
		json_add(v, "guard", guard_facts(&w->out.turn));
	add_overrides(v, w);
	if (r->reason[0])
		json_add_string(v, "reason", r->reason);
	return v;
}

static enum record_event
event_of(enum round_outcome state)
{
	if (state == OUTCOME_EVALUATED)
		return RECORD_ROUND_EVALUATED;
	return state == OUTCOME_COMMITTED ? RECORD_ROUND_COMMITTED : RECORD_ROUND_FAILED;
}

/* What an evaluator's program said of the model that the round makes: its manifest, and the report that this signs. */
static enum err
append_evaluation(struct store_db *db, const struct fold *w, struct why *why)
{
	const struct store_round *r = &w->out.row;
	struct store_accept row;

	if (w->f->spec->recipe.evaluate_by != EVALUATE_PROGRAM || !r->evaluate.known)
		return ERR_OK;
	enum err e = store_evaluation_get(db, w->f->job_id, r->round, NULL, &row);
	if (e)
		return e == ERR_NOTFOUND
		    ? err_set(why, ERR_CORRUPT, "the evaluator's report is gone")
		    : e;
	const struct audit_item items[] = {{row.device, row.manifest, sizeof(row.manifest)},
	    {row.device, row.report, strlen(row.report)}};
	struct json *facts = json_object();
	add_id(facts, "model", r->model);
	json_add(facts, "evaluate", metric_facts(&r->evaluate));
	e = audit_append(db, w->services,
	    &(struct audit_event){.event = RECORD_MODEL_EVALUATED,
		.job = w->f->job_id,
		.round = r->round,
		.facts = facts,
		.items = items,
		.item_count = 2},
	    why);
	free(row.report);
	return e;
}

enum err
round_record_append(struct store_db *db, const struct fold *w, struct why *why)
{
	struct accepted all = {.room = w->count};
	struct audit_item *items = calloc(w->count + 1, sizeof(*items));
	const enum record_event event = event_of(w->out.row.state);
	enum err e = ERR_NOMEM;

	all.rows = calloc(w->count + 1, sizeof(*all.rows));
	if (items && all.rows)
		e = append_evaluation(db, w, why);
	if (!e)
		e = store_accept_each(db, w->f->job_id, w->f->row.round, add, &all);
	if (!e && all.count != w->count)
		e = err_set(why, ERR_CORRUPT, "rows of accepted deltas are gone");
	for (size_t i = 0; !e && i < all.count; i++)
		items[i] = (struct audit_item){
		    all.rows[i].device, all.rows[i].manifest, sizeof(all.rows[i].manifest)};
	if (!e)
		e = audit_append(db, w->services,
		    &(struct audit_event){.event = event,
			.job = w->f->job_id,
			.round = w->f->row.round,
			.facts =
			    event == RECORD_ROUND_EVALUATED ? evaluation_facts(w) : round_facts(w),
			.items = items,
			.item_count = all.count},
		    why);
	free(items);
	free(all.rows);
	return e;
}
