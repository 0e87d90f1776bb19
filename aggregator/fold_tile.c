#include "fold_tile.h"

#include <math.h>
#include <string.h>

#include "vec.h"

enum err
fold_tile_choose(struct fold_tile *f, const char *rule, const char *optimizer, double rate,
    double momentum, struct why *why)
{
	f->rule = rule_find(rule);
	f->opt = server_opt_find(optimizer);
	if (!f->rule || !f->opt)
		return err_set(why, ERR_UNSUPPORTED, "rule %s or optimizer %s is not in this build",
		    rule, optimizer);
	f->params = (struct server_opt_params){f->opt->name, (float)rate, (float)momentum};
	return ERR_OK;
}

uint64_t
fold_tile_count(const struct fold_tile *f)
{
	return (f->table->elements + RULE_TILE - 1) / RULE_TILE;
}

uint64_t
fold_tile_state_floats(const struct fold_tile *f)
{
	return f->opt->state_vectors(&f->params) * f->table->elements;
}

/* Moves one tensor's share of a tile. Weights pass through a buffer: a foreign model file may not align them. */
static enum err
move_piece(const struct fold_tile *f, const struct tensor *t, uint64_t first, size_t count,
    const float *update)
{
	static const struct server_opt_params plain = {"sgd", 1, 0};
	float weights[RULE_TILE];
	uint8_t *at = f->data + t->begin + (first - t->first) * sizeof(float);
	bool train = t->role == TENSOR_TRAIN;

	memcpy(weights, at, count * sizeof(float));
	enum err e = f->opt->step(train ? &f->params : &plain, weights, update,
	    train && f->state ? f->state + first : NULL, count);
	memcpy(at, weights, count * sizeof(float));
	return e;
}

enum err
fold_tile_run(const struct fold_tile *f, uint64_t tile, double *squares)
{
	uint64_t first = tile * RULE_TILE, left = f->table->elements - first;
	size_t count = left < RULE_TILE ? (size_t)left : RULE_TILE;
	float update[RULE_TILE];

	enum err e = f->rule->fold(&f->deltas, first, count, update);
	*squares = e ? 0 : vec_sum_squares(update, count);
	for (size_t i = 0; i < f->table->count && e == ERR_OK; i++) {
		const struct tensor *t = &f->table->items[i];
		uint64_t from = t->first > first ? t->first : first;
		uint64_t end = t->first + t->elements;
		if (!t->in_delta || end <= first || from >= first + count)
			continue;
		if (end > first + count)
			end = first + count;
		e = move_piece(f, t, from, (size_t)(end - from), update + (from - first));
	}
	return e;
}

double
fold_tile_norm(const double *squares, uint64_t tiles)
{
	double sum = 0;

	for (uint64_t i = 0; i < tiles; i++)
		sum += squares[i];
	return sqrt(sum);
}
