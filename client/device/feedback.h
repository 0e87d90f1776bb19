#ifndef FEEDBACK_H
#define FEEDBACK_H
#include "delta.h"
#include "handle_inside.h"

/* Error feedback of the task in hand (residual.h). */
struct feedback {
	struct codec_elements_pair both; /* the delta, and: */
	struct kept residual; /* what encoding took from the job's deltas before; fd -1: nothing */
};
/* *f stays where it is, and feedback_deinit is due whatever comes. A residual that is damaged is gone, and the job goes on without it. */
ERR_MUST_USE enum err feedback_init(
    struct feedback *f, struct rivulet *r, const struct codec_elements *delta, struct why *why);
/* What is to be encoded: the delta and the residual. */
struct codec_elements feedback_values(const struct feedback *f);
/* What encoding takes now is kept on disk until this delta is accepted. */
ERR_MUST_USE enum err feedback_keep(
    const struct feedback *f, struct rivulet *r, const struct delta *made, struct why *why);
void feedback_deinit(struct feedback *f);

#endif
