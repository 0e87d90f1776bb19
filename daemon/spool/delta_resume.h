#ifndef DELTA_RESUME_H
#define DELTA_RESUME_H
#include "delta_body.h"
#include "spool.h"

/* Takes up the part of a task (spool_resume) and hashes what is there and not known to be good (verified.h), so that *body goes on
 * after its last good chunk; the part is cut off there. *m is the part's manifest and must live as long as *body. Reads up to a whole delta: on a worker. On failure
 * nothing is live; ERR_NOTFOUND if there is nothing to take up, ERR_AGAIN as spool_resume. The caller deinits *body in either
 * case. */
ERR_MUST_USE enum err delta_resume(struct spool *s, const uint8_t task[16],
    const uint8_t device[32], struct spool_part *part, struct manifest *m, struct delta_body *body,
    struct why *why);

#endif
