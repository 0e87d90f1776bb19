#ifndef FOLD_H
#define FOLD_H
#include "delta_file.h"
#include "fold_round.h"
#include "job_fold.h"
#include "job_list.h"
#include "metric.h"
#include "models.h"
#include "own_metrics.h"
#include "vectors.h"

/*
 * One round's arithmetic over the spool: reads accepted deltas in device-id order, folds them tile by tile on all cores, moves
 * the weights. Memory: the new model and the optimizer's state, whatever the number of devices. Used by the folder's threads.
 */

/* One accepted delta, ready to be read. */
struct fold_input {
	uint8_t task[16], device[32];
	uint64_t round; /* of its task */
	uint8_t manifest[MANIFEST_LEN];
	struct delta_file file;
	struct vectors vectors;
	enum err e; /* of opening it */
	struct why why;
};

/* One round being folded. */
struct fold {
	const struct services *services; /* for the audit log */
	struct engine *engine;
	struct engine_uses uses;
	unsigned threads;
	double began; /* histogram_now */
	const struct engine_fold *f;
	struct engine_lack lack; /* the file that made it fail */
	struct fold_input *inputs; /* in device-id order */
	size_t count, room;
	struct models_map *base;
	struct fold_round round; /* its step's data, state and payload are owned */
	struct scale scale; /* of the rate, after this round */
	struct engine_outcome out;
	struct metric_training *trainings; /* one per input: what its figures are */
	size_t training_room;
	struct metric_figures trained; /* once read */
	struct metric_report *measured; /* by devices, of the base: measured.h */
	size_t measured_count, measured_room;
	uint64_t measured_examples;
	struct metric_value *owned; /* what devices report of the monitor's own metric */
	size_t owned_count;
	struct own_metrics own;
	struct counts
	    *counts; /* owned: of all who evaluated; NULL: the job asks for none, or nobody did */
};

/* Reads the accepted rows, sums what they report into out.row. */
ERR_MUST_USE enum err fold_read(struct fold *w, struct why *why);
/* And opens their files and hashes each against its manifest's root. ERR_CORRUPT if
 * there is none, or one is damaged: *why and the log say which, and where. */
ERR_MUST_USE enum err fold_open(struct fold *w, struct why *why);
/* Takes hold of the base. */
ERR_MUST_USE enum err fold_base(struct fold *w, struct why *why);
/* Makes round.step.data, round.step.state and out.row.norm. ERR_NUMERIC if the new model is not finite: data is then of no use. ERR_CLOSED, as
 * of fold_open: the program is to end, and the round is folded after the next start. */
ERR_MUST_USE enum err fold_run(struct fold *w, struct why *why);
/* Closes the deltas' files; what was read of them stays. */
void fold_close(struct fold *w);
/* Gives back what only the arithmetic needs, once its files are written: what is committed, and recorded, stays. */
void fold_lighten(struct fold *w);
void fold_deinit(struct fold *w);

#endif
