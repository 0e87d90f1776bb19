#include "forecast.h"

#include "codec.h"
#include "difference.h"
#include "manifest.h"

#define REPORT_ROWS \
	1536 /* bytes of database per report: manifest, receipt, report, audit details */
#define ROUND_ROWS 2048 /* and per round */
#define FILE_HEAD 4096 /* of a file of the spool or of a model, at most */

/* Models of a job that retention leaves after so many rounds: the first, each k->every-th, the newest k->last. */
static uint64_t
models_kept(const struct keep_spec *k, uint64_t rounds)
{
	uint64_t older = rounds > k->last ? rounds - k->last : 0;

	return 1 + rounds - older + (k->every ? older / k->every : 0);
}

uint64_t
forecast_kept(const struct keep_spec *k, uint64_t model_bytes, uint64_t rounds)
{
	if (rounds == 0 && k->every > 0)
		return UINT64_MAX;
	uint64_t models = models_kept(k, rounds > 0 ? rounds : k->last) + k->best;
	return model_bytes <= UINT64_MAX / models ? models * model_bytes : UINT64_MAX;
}

uint64_t
forecast_difference_bytes(const struct job_spec *spec, uint64_t elements)
{
	const struct codec *codec = codec_find_name(spec->download.codec);

	return codec ? DIFFERENCE_HEAD + difference_payload_bytes(codec, elements) : 0;
}

/* At their longest, figures are in the reports, and once more, with their ratios, in the round's row. */
static uint64_t
round_rows(const struct job_spec *spec)
{
	const struct recipe *r = &spec->recipe;
	uint64_t counts =
	    figure_set_bytes(&r->figures, r->data.class_count, spec->aggregate.max_examples);
	uint64_t report = REPORT_ROWS + (r->evaluate_by == EVALUATE_DEVICES ? counts : 0);

	/* An evaluator's is in its own row, and in the audit log. */
	const uint64_t more = r->evaluate_by == EVALUATE_PROGRAM ? 2 : 0;

	return ROUND_ROWS + 2 * counts + (spec->round.goal + more) * report;
}

/* Models beside those that are kept by their age. */
static uint64_t
best_to_come(const struct forecast_job *j, uint64_t left)
{
	uint64_t best = j->spec->monitor.metric == MONITOR_NONE ? 0 : j->keep.best;

	best = best > j->best_held ? best - j->best_held : 0;
	return best < left ? best : left;
}

/* Bases that somebody may still need. */
static uint64_t
bases_held(const struct job_spec *spec, uint64_t left)
{
	/* While every round is a little worse than the one before, a guard holds all of its window. */
	uint64_t window = spec->guard.on ? spec->guard.window : 0;

	/* Tasks that are out hold what they started from. */
	return (window < left ? window : left) +
	    (spec->round.concurrency > 0 ? spec->round.max_staleness : 0);
}

struct job_forecast
forecast_job(const struct forecast_job *j)
{
	const struct job_spec *spec = j->spec;
	uint64_t delta = manifest_body_bytes(j->payload_bytes) + FILE_HEAD;
	uint64_t model = j->model_bytes + FILE_HEAD + forecast_difference_bytes(spec, j->elements);
	uint64_t done = j->committed, goal = spec->round.goal;
	const uint64_t rounds = j->rounds > done ? j->rounds - done : 0;
	uint64_t left = rounds > 0 ? rounds : 1;

	if (spec->only_evaluates)
		return (struct job_forecast){.rounds_left = 1, .database_bytes = round_rows(spec)};
	return (struct job_forecast){
	    .rounds_left = rounds,
	    /* At its worst there is one model and one state more: the old ones go after the commit. */
	    .models_bytes = (models_kept(&j->keep, done + left) - models_kept(&j->keep, done) + 1 +
				best_to_come(j, left)) *
		    model +
		2 * j->state_bytes + bases_held(spec, left) * (model + j->state_bytes),
	    /* What comes in while a round is folded is there as well. */
	    .spool_bytes = (goal > j->accepted ? goal - j->accepted : 0) * delta +
		spec->round.concurrency * delta,
	    .deltas_bytes = left * goal * delta,
	    .database_bytes = left * round_rows(spec),
	};
}
