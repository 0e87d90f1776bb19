#ifndef REFOLD_H
#define REFOLD_H
#include "history.h"

/* Folds rounds of a checked chain again, from the deltas in DIR/deltas and the models in DIR/models, with the coordinator's own
 * arithmetic. A round's model is the base of the next round, so the first base is enough. Memory: a model and an optimizer state per
 * job, twice if a device is left out. */
struct cmd_verify_fold;

/* without: 32 bytes, the id of a device whose deltas are left out, from its first accepted delta on, or NULL. out_dir: directory for the
 * models without the device, or NULL. All pointers must outlive the object. Returns NULL if memory is short. */
struct cmd_verify_fold *cmd_verify_fold_new(const struct cmd_verify_history *h, const char *dir,
    const uint8_t *without, const char *out_dir);
void cmd_verify_fold_free(struct cmd_verify_fold *f);

enum cmd_verify_result {
	CMD_VERIFY_SAME, /* model and optimizer state came out to the bit */
	CMD_VERIFY_SKIPPED, /* the round was not folded, because a file that it needs is missing */
};
struct cmd_verify_outcome {
	enum cmd_verify_result result;
	struct why why; /* why the round was skipped */
	bool touched; /* the round has a delta of the device that is left out */
	bool erased; /* manifests are erased, so the round may have had such a delta */
	/* There is a model without the device; if it was the only device, the model before. */
	bool changed;
	uint8_t model[32]; /* id of that model */
	struct why changed_why; /* if not changed: why there is no model without the device */
};
/* Folds the next round of the chain. ERR_CORRUPT: another model or state comes out, a delta is not the one that was signed, or a
 * model file is not the one that was named. */
ERR_MUST_USE enum err cmd_verify_fold_round(struct cmd_verify_fold *f,
    const struct cmd_verify_round *r, struct cmd_verify_outcome *out, struct why *why);

#endif
