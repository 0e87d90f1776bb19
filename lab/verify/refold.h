#ifndef REFOLD_H
#define REFOLD_H
#include "history.h"

/* Folds rounds of a checked chain again, from the deltas that lie in DIR/deltas and the models in DIR/models, with the
 * coordinator's own arithmetic. A round's model is the next one's base, so the first base is enough. Memory: a model and an
 * optimizer state per job, twice if a device is left out. */
struct cmd_verify_fold;

/* without: 32 bytes of a device whose deltas are left out, from the first round that it touched on, or NULL. out_dir: where
 * models without it go, or NULL. All pointers must outlive the object. NULL if memory is short. */
struct cmd_verify_fold *cmd_verify_fold_new(const struct cmd_verify_history *h, const char *dir,
    const uint8_t *without, const char *out_dir);
void cmd_verify_fold_free(struct cmd_verify_fold *f);

enum cmd_verify_result {
	CMD_VERIFY_SAME, /* model and optimizer state came out to the bit */
	CMD_VERIFY_SKIPPED, /* something it needs is not here */
};
struct cmd_verify_outcome {
	enum cmd_verify_result result;
	struct why why; /* of a skipped one */
	bool touched; /* the device left out is among the accepted */
	bool erased; /* manifests are gone: it may have been */
	/* A model without it came out, or that of before stayed because it was alone. */
	bool changed;
	uint8_t model[32]; /* that one */
	struct why changed_why; /* why not, if not */
};
/* The next round of the chain. ERR_CORRUPT: another model or state comes out, a delta is not the one that was signed, or a model
 * file not the one that was named. */
ERR_MUST_USE enum err cmd_verify_fold_round(struct cmd_verify_fold *f,
    const struct cmd_verify_round *r, struct cmd_verify_outcome *out, struct why *why);

#endif
