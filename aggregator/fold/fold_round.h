#ifndef FOLD_ROUND_H
#define FOLD_ROUND_H
#include "fold_sum.h"
#include "server_step.h"

/*
 * One round's arithmetic, cut into tiles of RULE_TILE elements of the delta vector: deltas are summed, and the sum moves the weights.
 * The coordinator folds with this, and whoever verifies a round folds it again with the same: the bits depend on the deltas in
 * their order alone. Tiles are independent: any number of threads may run different ones of the same round at a time.
 *
 *     step.table -> fold_tile_choose -> what else the halves want -> fold_tile_begin -> measures of the sum -> fold_tile_run of
 *     every tile -> fold_sum_end
 */
struct fold_tile {
	struct fold_sum sum;
	struct server_step step;
};

/* What both halves do in this round. ERR_UNSUPPORTED if rule or optimizer are not in this build. */
ERR_MUST_USE enum err fold_tile_choose(
    struct fold_tile *f, const struct aggregate_spec *spec, uint64_t round, struct why *why);
/* fold_sum_begin, once table, deltas and state are there. */
ERR_MUST_USE enum err fold_tile_begin(struct fold_tile *f, struct why *why);
uint64_t fold_tile_count(const struct fold_tile *f);
/* Folds tile number `tile` and writes the sum of squares of its update. ERR_NUMERIC if a weight is not finite, or what the
 * rule and read_tile return; data and state are then of no use. */
ERR_MUST_USE enum err fold_tile_run(const struct fold_tile *f, uint64_t tile, double *squares);
/* The norm of the whole update from the tiles' sums of squares. */
double fold_tile_norm(const double *squares, uint64_t tiles);

#endif
