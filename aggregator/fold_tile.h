#ifndef FOLD_TILE_H
#define FOLD_TILE_H
#include "rule.h"
#include "server_opt.h"
#include "tensor.h"

/*
 * One round's arithmetic, cut into tiles of RULE_TILE elements of the delta vector: a rule makes the tile's update, the server
 * optimizer moves the weights of train tensors with it; those of average tensors get it as it is. The coordinator folds with
 * this, and whoever verifies a round folds it again with the same: the bits depend on the deltas in their order alone.
 *
 * Tiles are independent: any number of threads may run different ones of the same round at a time.
 */
struct fold_tile {
	const struct tensor_table *table;
	const struct rule *rule;
	const struct server_opt *opt;
	struct server_opt_params params;
	struct rule_input deltas; /* in device-id order */
	uint8_t *data; /* the base model's data section, table->bytes long; becomes the new one's */
	float *
	    state; /* fold_tile_state_floats of the optimizer, before and after; NULL if it has none */
};

/* Sets rule, opt and params. ERR_UNSUPPORTED if one is not in this build. */
ERR_MUST_USE enum err fold_tile_choose(struct fold_tile *f, const char *rule, const char *optimizer,
    double rate, double momentum, struct why *why);
uint64_t fold_tile_count(const struct fold_tile *f);
/* Floats of optimizer state; 0 if there is none. */
uint64_t fold_tile_state_floats(const struct fold_tile *f);
/* Folds tile number `tile` and writes the sum of squares of its update. ERR_NUMERIC if a weight is not finite, or what the
 * rule and read_tile return; data and state are then of no use. */
ERR_MUST_USE enum err fold_tile_run(const struct fold_tile *f, uint64_t tile, double *squares);
/* The norm of the whole update from the tiles' sums of squares. */
double fold_tile_norm(const double *squares, uint64_t tiles);

#endif
