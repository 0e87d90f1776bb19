#ifndef SCAFFOLD_H
#define SCAFFOLD_H
#include "work.h"

/*
 * This device's control variate of a job (FORMAT.md, "Control variates"), from round to round. Two files in HOME/variates:
 *
 *     JOB.own    the variate as the coordinator counts it
 *     JOB.next   what it becomes once the delta of its round is part of a committed round
 *
 * Both are RVV1 of FORMAT.md. The next task says which round counts; if JOB.next is of that round, it takes the place of JOB.own, else it
 * is ignored. So device and coordinator agree even after a killed device, a lost answer, or a round that failed after its deltas were
 * accepted.
 */

/* Called before the other functions: removes what an interrupted download or write left, and the files of jobs whose two files were not
 * written for 90 days. Makes no directory. */
ERR_MUST_USE enum err scaffold_init(const char *home, struct why *why);
/* Sets w->own. ERR_STATE: the variate that the coordinator counts is no longer on this device. */
ERR_MUST_USE enum err scaffold_load(struct work *w, const char *home, struct why *why);
/* Elements [first, first + count) of the correction that is added to every gradient, from both variates. */
ERR_MUST_USE enum err scaffold_shift(
    const struct work *w, uint64_t first, size_t count, float *out);
/* Allocates w->shift and fills it with the whole correction. */
ERR_MUST_USE enum err scaffold_correct(struct work *w, struct why *why);

/* The variate's change by the training: table.elements floats. */
struct scaffold_change {
	const struct work *work;
	const struct codec_elements *delta;
	double rates;
};
/* delta: the weights after the training minus those before; steps: of the training. */
struct scaffold_change scaffold_change_of(
    const struct work *w, const struct codec_elements *delta, unsigned long long steps);
struct codec_elements scaffold_change_values(const struct scaffold_change *c);
/* Keeps the variate after `change` (as the coordinator will decode it) as JOB.next, durably. */
ERR_MUST_USE enum err scaffold_keep(
    const struct work *w, const char *home, const struct codec_elements *change, struct why *why);
/* The path of the job's file with this suffix. */
ERR_MUST_USE enum err scaffold_path(char out[PATH_MAX], const struct work *w, const char *home,
    const char *suffix, struct why *why);

#endif
