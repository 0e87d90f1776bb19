#ifndef FEEDBACK_H
#define FEEDBACK_H
#include "delta.h"
#include "handle_inside.h"

/* As delta_make for the task in hand, of values plus what encoding took from the job's deltas before (residual.h); what it takes now
 * is kept on disk until this one is accepted. values come back as that change. */
ERR_MUST_USE enum err feedback_make(struct delta *out, struct rivulet *r,
    const struct delta_facts *facts, float *values, struct why *why);

#endif
