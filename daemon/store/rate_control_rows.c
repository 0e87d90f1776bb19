#include "rate_control_rows.h"

#include "err.h"
#include "job.h"
#include "rate_control.h"
#include "row.h"
#include "store.h"

void
rate_control_rows_step(struct rate_control *c, const struct job_spec *spec,
    const struct store_round *row, const uint8_t measured_base[32], struct rate_control_turn *out)
{
	const struct schedule_round r = {.round = row->round,
	    .reports = row->reports,
	    .failed = row->state == OUTCOME_FAILED,
	    .base = row->base,
	    .model = row->model,
	    .state = row->optimizer_state,
	    .evaluated = row->evaluate.known,
	    .loss = row->evaluate.loss,
	    .accuracy = row->evaluate.accuracy,
	    .own = row->eval_own,
	    .measured = row->measured,
	    .measured_base = measured_base};

	rate_control_step(c, spec, &r, out);
}

struct replay {
	struct store_db *db;
	const struct job_spec *spec;
	struct rate_control *schedule;
};

static enum err
replay_round(void *ctx, const struct store_round *row)
{
	struct replay *r = ctx;
	struct rate_control_turn turn;
	struct store_round of = *row;

	if (row->state != OUTCOME_COMMITTED && row->state != OUTCOME_FAILED)
		return ERR_OK;
	enum err e =
	    row->measured > 0 ? store_round_get(r->db, row->job, row->measured, &of) : ERR_OK;
	if (!e)
		rate_control_rows_step(r->schedule, r->spec, row, of.base, &turn);
	return e == ERR_NOTFOUND ? ERR_CORRUPT : e;
}

enum err
rate_control_rows_load(struct store_db *db, const struct job_spec *spec, const uint8_t job[16],
    struct rate_control *out)
{
	struct replay r = {.db = db, .spec = spec, .schedule = out};

	*out = rate_control_start();
	return rate_control_matters(spec)
	    ? store_round_each(db, job, 1, UINT64_MAX, replay_round, &r)
	    : ERR_OK;
}

enum err
rate_control_rows_of(struct store_db *db, const struct store_job *row, struct rate_control *out)
{
	struct job_spec spec;

	*out = rate_control_start();
	if (job_parse(&spec, row->document, row->document_len, NULL))
		return ERR_OK;
	enum err e = rate_control_rows_load(db, &spec, row->id, out);
	job_deinit(&spec);
	return e;
}
