#ifndef INPUTS_H
#define INPUTS_H
#include "file.h"
#include "history.h"
#include "rule.h"
#include "vectors.h"

/* The deltas of one round, mapped from DIR/deltas and checked against their manifests. */
struct cmd_verify_input {
	uint8_t device[32];
	uint64_t round; /* of its task */
	struct file_map payload;
	struct vectors vectors;
	double weight; /* examples */
	double normaliser;
};
struct cmd_verify_inputs {
	struct cmd_verify_input *items; /* in the order of devices and of their tasks' rounds */
	size_t count;
	/* For a rule: those that are chosen. */
	size_t *chosen;
	double *weights, *normalisers, *scales;
	struct rule_input rule;
	struct rule_input changes; /* likewise, their second vectors */
};

/* second: the job's deltas have a second vector. ERR_NOTFOUND: a manifest is erased, or a delta is not there; ERR_UNSUPPORTED: its codec is not in this build; ERR_CORRUPT. */
ERR_MUST_USE enum err cmd_verify_inputs_open(struct cmd_verify_inputs *in, const char *dir,
    const struct cmd_verify_round *r, uint64_t elements, bool second, struct why *why);
/* Points in->rule at all of them but `without` (NULL: at all); its count may come out 0. round: the one that they are folded in. */
void cmd_verify_inputs_choose(struct cmd_verify_inputs *in, const struct staleness_spec *staleness,
    uint64_t round, const uint8_t *without);
void cmd_verify_inputs_close(struct cmd_verify_inputs *in);

#endif
