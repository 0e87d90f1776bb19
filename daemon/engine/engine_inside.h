#ifndef ENGINE_INSIDE_H
#define ENGINE_INSIDE_H
#include "drive.h"
#include "engine.h"
#include "job_facts.h"

/* --- limits of one owner (owner.c) */

/* ERR_OK: the document is a job of who submits it, or of anybody where an administrator does; ERR_NOTFOUND: none yet; ERR_EXISTS:
 * somebody else's. */
ERR_MUST_USE enum err engine_owner_find(struct engine *g, const struct engine_document *document,
    const uint8_t id[16], struct why *why);
/* ERR_STATE: the document's job was deleted; ERR_EXISTS: it was another owner's. */
ERR_MUST_USE enum err engine_owner_deleted(
    struct store_db *db, const uint8_t id[16], const uint8_t owner[32], struct why *why);
/* May its owner have this job, which is complete but for its rows, too? Then its place is reserved, unless r only asks. bounded:
 * [limits] owner_* hold.
 * ERR_DENIED names the limit and what to do; ERR_INVALID: too many jobs of all. No lock. */
ERR_MUST_USE enum err engine_owner_takes(struct engine *g, const struct job *j, bool bounded,
    struct engine_reservation *r, struct why *why);
/* May an owner that is bounded change the job's terms so? Then what it is to have more is reserved. ERR_DENIED names the limit and what
 * to do. The job is in use. No lock. */
ERR_MUST_USE enum err engine_owner_changes(struct engine *g, const struct job *j,
    const struct job_terms *was, const struct job_terms *to, struct engine_reservation *r,
    struct why *why);
/* As engine_owner_release, with the lock held: together with what then counts in its place. */
void engine_owner_end(struct engine *g, struct engine_reservation *r);

#endif
