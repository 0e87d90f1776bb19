#ifndef FEEDBACK_H
#define FEEDBACK_H
#include "delta.h"
#include "handle_inside.h"

/* Error feedback of the task in hand (residual.h). */
struct feedback {
	struct codec_elements_pair both; /* the delta plus the residual */
	/* What encoding has lost of the job's deltas so far; fd -1: nothing. */
	struct kept residual;
};
/* *f must not move in memory; feedback_deinit is due in every case. A damaged residual is dropped, and the job goes on without it. */
ERR_MUST_USE enum err feedback_init(
    struct feedback *f, struct rivulet *r, const struct codec_elements *delta, struct why *why);
/* The values to encode: the delta plus the residual. */
struct codec_elements feedback_values(const struct feedback *f);
/* Keeps what encoding `made` has lost on disk, for when this delta is accepted (residual_keep). */
ERR_MUST_USE enum err feedback_keep(
    const struct feedback *f, struct rivulet *r, const struct delta *made, struct why *why);
void feedback_deinit(struct feedback *f);

#endif
