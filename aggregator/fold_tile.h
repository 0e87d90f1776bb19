#ifndef FOLD_TILE_H
#define FOLD_TILE_H
#include "difference.h"
#include "normalise.h"
#include "rule.h"
#include "server_opt.h"
#include "tensor.h"

/*
 * One round's arithmetic, cut into tiles of RULE_TILE elements of the delta vector: a rule makes the tile's update, the server
 * optimizer moves the weights of train tensors with it; those of average tensors get it as it is. The coordinator folds with
 * this, and whoever verifies a round folds it again with the same: the bits depend on the deltas in their order alone.
 *
 * A job may send new models as differences (wire/difference.h): then the new weights are the old ones plus what decoding the
 * encoded difference gives, so that those who add it and those who fold agree to the bit.
 *
 * Tiles are independent: any number of threads may run different ones of the same round at a time.
 */
struct fold_tile {
	const struct tensor_table *table;
	struct rule *rule; /* between fold_tile_begin and fold_tile_end */
	struct normalise *scaled; /* likewise; NULL: deltas count as they are */
	const struct aggregate_spec *spec;
	const struct server_opt *opt;
	struct server_opt_params params;
	double rate; /* of this round by its schedule; params has it too */
	struct rule_input deltas; /* in device-id order */
	struct rule_input changes; /* spec->variates: of the same devices' control variates */
	const double *normalisers; /* spec->normalise: one per delta */
	uint8_t *data; /* the base model's data section, table->bytes long; becomes the new one's */
	float *
	    state; /* fold_tile_state_floats, before and after: the optimizer's vectors, then the rule's last update, then what the
		      download's codec has lost so far, last the control variate; NULL if none */
	struct difference
	    step; /* codec NULL: the new weights are what was folded; else codec, seed, elements */
	bool feedback;
	uint8_t
	    *payload; /* difference_payload_bytes, filled tile by tile; NULL if nobody wants it */
};

/* Sets spec, opt and params: those of this round. ERR_UNSUPPORTED if rule or optimizer are not in this build. */
ERR_MUST_USE enum err fold_tile_choose(
    struct fold_tile *f, const struct aggregate_spec *spec, uint64_t round, struct why *why);
/* Sets step and feedback, after table and before the state is sized; by default there is no such step. ERR_UNSUPPORTED if the codec
 * is not in this build. */
ERR_MUST_USE enum err fold_tile_download(struct fold_tile *f, const struct download_spec *spec,
    uint64_t job_seed, uint64_t round, struct why *why);
/* Multiplies the rate of the schedule by the round's factor (scale.h). */
void fold_tile_scale(struct fold_tile *f, double factor);
/* Makes the rule, once table, deltas and state are there. Some rules look at all deltas before the first tile: as long as
 * fold_tile_measures is not 0, that many strips are to be measured, in any order and by any threads, and then planned. */
ERR_MUST_USE enum err fold_tile_begin(struct fold_tile *f, struct why *why);
unsigned fold_tile_measures(const struct fold_tile *f);
ERR_MUST_USE enum err fold_tile_measure(const struct fold_tile *f, unsigned strip);
ERR_MUST_USE enum err fold_tile_plan(const struct fold_tile *f);
void fold_tile_end(struct fold_tile *f);
/* What a rule's random choices begin with: rule_input.seed. */
uint64_t fold_tile_seed(uint64_t job_seed, uint64_t round);
uint64_t fold_tile_count(const struct fold_tile *f);
/* Floats of state; 0 if there is none. */
uint64_t fold_tile_state_floats(const struct fold_tile *f);
/* Fills the state of a job's first round. */
void fold_tile_state_start(const struct fold_tile *f, float *state);
/* Folds tile number `tile` and writes the sum of squares of its update. ERR_NUMERIC if a weight is not finite, or what the
 * rule and read_tile return; data and state are then of no use. */
ERR_MUST_USE enum err fold_tile_run(const struct fold_tile *f, uint64_t tile, double *squares);
/* The norm of the whole update from the tiles' sums of squares. */
double fold_tile_norm(const double *squares, uint64_t tiles);

#endif
