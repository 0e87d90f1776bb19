#include <string.h>

#include "difference.h"
#include "engine_inside.h"

/* What running and paused jobs will still need of the disk, from what they are: docs/configuration.md has the sums. */

#define REPORT_ROWS \
	1536 /* bytes of database per report: manifest, receipt, report, audit details */
#define ROUND_ROWS 2048 /* and per round */
#define FILE_HEAD 4096 /* of a file of the spool or of a model, at most */

struct keep_spec
engine_forecast_keep(const struct config *c, const struct engine_job *j)
{
	struct keep_spec k = j->keep;

	if (k.last == JOB_KEEP_CONFIGURED)
		k.last = c->keep_last;
	if (k.every == JOB_KEEP_CONFIGURED)
		k.every = c->keep_every;
	return k;
}

/* Models of a job that retention leaves after so many rounds: the first, each k.every-th, the newest k.last. */
static uint64_t
models_kept(const struct keep_spec *k, uint64_t rounds)
{
	uint64_t older = rounds > k->last ? rounds - k->last : 0;

	return 1 + rounds - older + (k->every ? older / k->every : 0);
}

uint64_t
engine_forecast_kept(const struct config *c, const struct engine_job *j, uint64_t rounds)
{
	const struct keep_spec k = engine_forecast_keep(c, j);

	if (rounds == 0 && k.every > 0)
		return UINT64_MAX;
	uint64_t models = models_kept(&k, rounds > 0 ? rounds : k.last) + k.best;
	return j->model_bytes <= UINT64_MAX / models ? models * j->model_bytes : UINT64_MAX;
}

/* Of the file beside each model but the first. */
static uint64_t
difference_bytes(const struct engine_job *j)
{
	const struct codec *codec = codec_find_name(j->work->spec.download.codec);

	return codec ? DIFFERENCE_HEAD + difference_payload_bytes(codec, j->work->table.elements)
		     : 0;
}

/* At their longest, figures are in the reports, and once more, with their ratios, in the round's row. */
static uint64_t
round_rows(const struct engine_job *j)
{
	const struct job_spec *spec = &j->work->spec;
	const struct recipe *r = &spec->recipe;
	uint64_t counts =
	    figure_set_bytes(&r->figures, r->data.class_count, spec->aggregate.max_examples);
	uint64_t report = REPORT_ROWS + (r->evaluate_by == EVALUATE_DEVICES ? counts : 0);

	return ROUND_ROWS + 2 * counts + spec->round.goal * report;
}

struct job_forecast
engine_forecast(const struct config *c, const struct engine_job *j)
{
	uint64_t delta = manifest_body_bytes(engine_variate_payload(j)) + FILE_HEAD;
	uint64_t model = j->model_bytes + FILE_HEAD + difference_bytes(j);
	uint64_t state = engine_variate_state_bytes(j);
	uint64_t done = j->rounds_committed, goal = j->work->spec.round.goal;
	const uint64_t most = j->work->terms.stop.rounds, rounds = most > done ? most - done : 0;
	uint64_t left = rounds > 0 ? rounds : 1;
	/* While every round is a little worse than the one before, a guard holds all of its window. */
	uint64_t window = j->work->spec.guard.on ? j->work->spec.guard.window : 0;
	uint64_t held = window < left ? window : left;
	const struct keep_spec k = engine_forecast_keep(c, j);
	uint64_t best = j->monitor.metric == MONITOR_NONE ? 0 : k.best;
	best = best > j->best.count ? best - j->best.count : 0;

	if (engine_evaluates(j))
		return (struct job_forecast){.rounds_left = 1, .database_bytes = round_rows(j)};
	/* Tasks that are out hold what they started from, and come in while a round is folded. */
	const struct round_spec *round = &j->work->spec.round;
	const uint64_t out = round->concurrency;
	held += out > 0 ? round->max_staleness : 0;
	return (struct job_forecast){
	    .rounds_left = rounds,
	    /* At its worst there is one model and one state more: the old ones go after the commit. */
	    .models_bytes = (models_kept(&k, done + left) - models_kept(&k, done) + 1 +
				(best < left ? best : left)) *
		    model +
		2 * state + held * (model + state),
	    .spool_bytes =
		(goal > j->round.accepted ? goal - j->round.accepted : 0) * delta + out * delta,
	    .deltas_bytes = left * goal * delta,
	    .database_bytes = left * round_rows(j),
	};
}
