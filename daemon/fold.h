#ifndef FOLD_H
#define FOLD_H
#include <stdatomic.h>

#include "codec.h"
#include "delta_file.h"
#include "engine.h"
#include "models.h"
#include "rule.h"
#include "server_opt.h"

/*
 * One round's arithmetic over the spool: reads accepted deltas in device-id order, folds them tile by tile on all cores, moves
 * the weights. Memory: the new model and the optimizer's state, whatever the number of devices. Used by the folder's thread.
 */

/* One accepted delta, ready to be read. */
struct fold_input {
	uint8_t task[16], device[32];
	uint8_t manifest[MANIFEST_LEN];
	struct delta_file file;
	const struct codec *codec;
	struct codec_params params;
};

/* One round being folded. */
struct fold {
	const struct services *services;
	unsigned threads;
	const struct engine_fold *f;
	struct fold_input *inputs; /* in device-id order */
	double *weights;
	size_t count, room;
	struct models_map *base;
	uint8_t *data; /* the new model's data section */
	float *state; /* server optimizer, NULL if it has none */
	const struct rule *rule;
	const struct server_opt *opt;
	struct server_opt_params opt_params;
	double *unit_norms; /* sum of squares of the update, per unit */
	atomic_int failed; /* first enum err of any thread */
	struct engine_outcome out;
	/* sums over the manifests and reports */
	double loss, accuracy, accuracy_examples;
	double eval_loss, eval_accuracy, eval_examples, eval_accuracy_examples;
};

/* Reads the accepted rows, sums what they report into out.row, opens their files. ERR_CORRUPT if there is none, or one is
 * damaged. */
ERR_MUST_USE enum err fold_open(struct fold *w, struct why *why);
/* Makes data, state and out.row.norm. ERR_NUMERIC if the new model is not finite: data is then of no use. */
ERR_MUST_USE enum err fold_run(struct fold *w, struct why *why);
/* Floats of optimizer state; 0 if there is none. */
uint64_t fold_state_floats(const struct fold *w);
void fold_deinit(struct fold *w);

#endif
