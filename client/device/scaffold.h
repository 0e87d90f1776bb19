#ifndef SCAFFOLD_H
#define SCAFFOLD_H
#include <stdbool.h>
#include <stddef.h>

#include "err.h"

struct rivulet;
struct work;

/*
 * This device's control variate of a job (FORMAT.md, "Control variates"), from round to round. Two files in HOME/variates:
 *
 *     JOB.own    the variate as the coordinator counts it
 *     JOB.next   what it becomes once the delta of its round is part of a committed round
 *
 * Each: "RVV1", u32 zero, u64 round, u64 elements, the elements as f32, SHA-256 of all that. The next task says which round
 * counts; JOB.next of that round then takes the place of JOB.own, and otherwise never happened. So neither a killed device nor
 * a lost answer, nor a round that failed after its deltas were accepted, lets the two sides count differently.
 */
struct scaffold {
	bool on; /* the job has control variates */
	float *server, *own,
	    *shift; /* table.elements each; the last is what is added to gradients, NULL for zeros */
};

/* Before anything else here: removes what a killed download or write left, and the files of jobs for which neither was written for 90
 * days. Makes no directory. */
ERR_MUST_USE enum err scaffold_init(const char *home, struct why *why);
/* Before the training, once the work is loaded: finds the own variate, fetches the coordinator's. Nothing happens for a job without.
 * ERR_STATE: what the coordinator counts is not here any more; ERR_CORRUPT, ERR_INVALID; as fetch_model. */
ERR_MUST_USE enum err scaffold_load(struct rivulet *r, struct why *why);
/* The variate's change by the training: table.elements floats. delta: after minus before; steps: of the training. NULL if memory is
 * short. The caller frees it. */
float *scaffold_change(const struct work *w, const float *delta, unsigned long long steps);
/* Keeps the variate after that change, as the coordinator will decode it, durably, as JOB.next. */
ERR_MUST_USE enum err scaffold_keep(const struct rivulet *r, const float *change, struct why *why);
void scaffold_deinit(struct scaffold *s);

#endif
