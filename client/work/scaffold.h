#ifndef SCAFFOLD_H
#define SCAFFOLD_H
#include "work.h"

/*
 * This device's control variate of a job (FORMAT.md, "Control variates"), from round to round. Two files in HOME/variates:
 *
 *     JOB.own    the variate as the coordinator counts it
 *     JOB.next   what it becomes once the delta of its round is part of a committed round
 *
 * Both are RVV1 of FORMAT.md. The next task says which round counts; JOB.next of that round then takes the place of JOB.own, and otherwise never happened. So
 * neither a killed device nor a lost answer, nor a round that failed after its deltas were accepted, lets the two sides count
 * differently.
 */

/* Before anything else here: removes what a killed download or write left, and the files of jobs for which neither was written for 90
 * days. Makes no directory. */
ERR_MUST_USE enum err scaffold_init(const char *home, struct why *why);
/* Finds w->own. ERR_STATE: what the coordinator counts is not here any more. */
ERR_MUST_USE enum err scaffold_load(struct work *w, const char *home, struct why *why);
/* Elements of what is added to gradients, from both variates. */
ERR_MUST_USE enum err scaffold_shift(
    const struct work *w, uint64_t first, size_t count, float *out);
/* w->shift, all of that. */
ERR_MUST_USE enum err scaffold_correct(struct work *w, struct why *why);

/* The variate's change by the training: table.elements floats. */
struct scaffold_change {
	const struct work *work;
	const struct codec_elements *delta;
	double rates;
};
/* delta: after minus before; steps: of the training. */
struct scaffold_change scaffold_change_of(
    const struct work *w, const struct codec_elements *delta, unsigned long long steps);
struct codec_elements scaffold_change_values(const struct scaffold_change *c);
/* Keeps the variate after that change, as the coordinator will decode it, durably, as JOB.next. */
ERR_MUST_USE enum err scaffold_keep(
    const struct work *w, const char *home, const struct codec_elements *change, struct why *why);
/* Path of the job's file with that suffix. */
ERR_MUST_USE enum err scaffold_path(char out[PATH_MAX], const struct work *w, const char *home,
    const char *suffix, struct why *why);

#endif
