#ifndef DELTA_RESUME_H
#define DELTA_RESUME_H
#include "delta_body.h"
#include "spool.h"

/* Resumes the upload of a task (spool_resume): checks the bytes of the part that are not yet known to be good (verified.h), cuts the part
 * off after its last good chunk, and *body goes on there. *m is the part's manifest and must live as long as *body. Reads up to a whole
 * delta: on a worker. On failure no transfer is live; ERR_NOTFOUND if there is no part, ERR_AGAIN as spool_resume. The caller deinits
 * *body in either case. */
ERR_MUST_USE enum err delta_resume(struct spool *s, const uint8_t task[16],
    const uint8_t device[32], struct spool_part *part, struct manifest *m, struct delta_body *body,
    struct why *why);

#endif
