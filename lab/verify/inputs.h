#ifndef INPUTS_H
#define INPUTS_H
#include "file.h"
#include "history.h"
#include "vectors.h"

struct fold_round;

/* The deltas of one round, mapped from DIR/deltas and checked against their manifests. */
struct cmd_verify_input {
	uint8_t device[32];
	uint64_t round; /* of the delta's task */
	struct file_map payload;
	struct vectors vectors;
	double weight; /* examples */
	double normaliser;
};
struct cmd_verify_inputs {
	struct cmd_verify_input *items; /* in the order of devices and of their tasks' rounds */
	size_t count;
	size_t *chosen;
	size_t chosen_count;
};

/* second: the job's deltas have a second vector. ERR_NOTFOUND: a manifest is erased, or a delta is not there; ERR_UNSUPPORTED: its codec is not in this build; ERR_CORRUPT. */
ERR_MUST_USE enum err cmd_verify_inputs_open(struct cmd_verify_inputs *in, const char *dir,
    const struct cmd_verify_round *r, uint64_t elements, bool second, struct why *why);
/* Chooses all of them but `without`'s (NULL: all); there may be none. */
void cmd_verify_inputs_choose(struct cmd_verify_inputs *in, const uint8_t *without);
/* The chosen ones are the deltas of r. ERR_NOMEM. */
ERR_MUST_USE enum err cmd_verify_inputs_give(struct cmd_verify_inputs *in, struct fold_round *r);
void cmd_verify_inputs_close(struct cmd_verify_inputs *in);

#endif
