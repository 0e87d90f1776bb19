#include "fold_round.h"

#include <math.h>

#include "job.h"
#include "vec.h"

enum err
fold_tile_choose(
    struct fold_tile *f, const struct aggregate_spec *spec, uint64_t round, struct why *why)
{
	if (!rule_known(spec->rule.name) || server_step_choose(&f->step, spec, round))
		return err_set(why, ERR_UNSUPPORTED, "rule %s or optimizer %s is not in this build",
		    spec->rule.name, spec->optimizer);
	f->sum.spec = spec;
	return ERR_OK;
}

enum err
fold_tile_begin(struct fold_tile *f, struct why *why)
{
	f->sum.table = f->step.table;
	f->sum.deltas.centre = server_step_centre(&f->step);
	return fold_sum_begin(&f->sum, why);
}

uint64_t
fold_tile_count(const struct fold_tile *f)
{
	return (f->step.table->elements + RULE_TILE - 1) / RULE_TILE;
}

static enum err
run_control(const struct fold_tile *f, uint64_t first, size_t count)
{
	double sum[RULE_TILE];

	enum err e = fold_sum_changes(&f->sum, first, count, sum);
	return e ? e : server_step_control(&f->step, first, count, sum);
}

enum err
fold_tile_run(const struct fold_tile *f, uint64_t tile, double *squares)
{
	uint64_t first = tile * RULE_TILE, left = f->step.table->elements - first;
	size_t count = left < RULE_TILE ? (size_t)left : RULE_TILE;
	float update[RULE_TILE];

	enum err e = fold_sum_run(&f->sum, first, count, update);
	*squares = e ? 0 : vec_sum_squares(update, count);
	if (!e)
		e = server_step_run(&f->step, first, count, update);
	return !e && f->sum.spec->variates ? run_control(f, first, count) : e;
}

double
fold_tile_norm(const double *squares, uint64_t tiles)
{
	double sum = 0;

	for (uint64_t i = 0; i < tiles; i++)
		sum += squares[i];
	return sqrt(sum);
}
