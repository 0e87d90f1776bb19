#include "commit.h"

#include <math.h>
#include <string.h>

#include "age.h"
#include "clock.h"
#include "err.h"
#include "fault.h"
#include "figures_view.h"
#include "json.h"
#include "models.h"
#include "round_record.h"
#include "row.h"
#include "store.h"

void
commit_fill(struct fold *w)
{
	struct store_round *r = &w->out.row;

	bool trained = r->state != OUTCOME_EVALUATED;

	r->bytes_down = w->f->bytes_down;
	r->loss = trained ? w->trained.loss : (double)NAN;
	r->accuracy = trained ? w->trained.accuracy : (double)NAN;
	r->closed_at = clock_wall();
	/* How long it took stays right where the wall clock has stepped meanwhile. */
	if (r->opened_ms > 0)
		r->opened_at = r->closed_at - (double)(clock_ms() - r->opened_ms) / 1000;
}

static enum err
end_job(struct store_db *db, const struct fold *w, struct why *why)
{
	const struct engine_change change = {w->f->job_id, w->out.after.job_state,
	    w->out.after.job_reason, NULL, age_stamp(w->uses.age)};
	enum job_state was;

	return jobs_change_state(db, w->services, &change, &was, why);
}

/* If another job's old model of the same bytes was removed at this moment, the round is folded again. */
static enum err
put_model(struct store_db *db, const struct fold *w, const struct store_model *m, struct why *why)
{
	enum err e = models_still(w->uses.models, m->id, why);

	return e ? ERR_TIMEOUT : store_model_put(db, m);
}

static enum err
put_metrics(struct store_db *db, const struct fold *w)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < w->own.count && !e; i++)
		e = metric_rows_put(db, w->f->job_id, w->f->row.round, &w->own.items[i].row);
	return e;
}

static enum err
put_figures(struct store_db *db, const struct fold *w)
{
	struct buf text;

	buf_init(&text, FIGURES_VIEW_MAX);
	enum err e = figures_view_print(&text, w->counts);
	if (!e)
		e = metric_rows_put_figures(db, w->f->job_id, w->f->row.round, text.data);
	buf_deinit(&text);
	return e;
}

static enum err
put_overrides(struct store_db *db, const struct fold *w)
{
	struct buf text;

	if (override_is_empty(&w->f->overrides))
		return ERR_OK;
	struct json *v = override_json(&w->f->overrides);
	buf_init(&text, OVERRIDE_TEXT_MAX);
	enum err e = json_print(&text, v, false);
	json_free(v);
	if (!e)
		e = store_override_put_round(db, w->f->job_id, w->f->row.round, buf_str(&text));
	buf_deinit(&text);
	return e;
}

enum err
commit_work(struct store_db *db, void *arg, struct why *why)
{
	struct fold *w = arg;
	struct engine_outcome *o = &w->out;
	struct store_model m = {
	    .bytes = o->model_bytes, .round = o->row.round, .created_at = o->row.closed_at};

	memcpy(m.id, o->row.model, 32);
	memcpy(m.job, w->f->job_id, 16);
	FAULT("commit.begin");
	enum err e = store_round_put(db, &o->row);
	FAULT("commit.round");
	if (!e)
		e = put_overrides(db, w);
	if (!e)
		e = put_metrics(db, w);
	if (!e && w->counts && (o->row.state != OUTCOME_EVALUATED || o->row.evaluate.known))
		e = put_figures(db, w);
	if (!e && o->best_changed)
		e = metric_rows_put_best(db, w->f->job_id, &o->best);
	if (!e && o->row.state == OUTCOME_COMMITTED)
		e = put_model(db, w, &m, why);
	if (!e && (o->after.begin_next || o->after.begin_evaluation))
		e = store_round_put(db, &o->next);
	if (!e)
		e = round_record_append(db, w, why);
	if (!e && o->after.job_state)
		e = end_job(db, w, why);
	FAULT("commit.rows");
	return e;
}
