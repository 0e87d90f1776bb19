#ifndef GUARDS_H
#define GUARDS_H
#include "history.h"

/* Whether the rounds of a job's records go on as its document says: when its guard acts and where it goes back to, and the factor
 * of its rate. Fed round by round from the first. */
struct cmd_verify_guards;

/* *out is NULL if there is nothing to check: the document is no job of this build, whose rounds are not folded again either. A job
 * with neither guard nor scale has a schedule, too: each round starts from the model before, at factor 1. ERR_NOMEM. */
ERR_MUST_USE enum err cmd_verify_guards_new(
    struct cmd_verify_guards **out, const char *document, size_t len);
void cmd_verify_guards_free(struct cmd_verify_guards *c);
/* ERR_CORRUPT: the record says something else than what follows. */
ERR_MUST_USE enum err cmd_verify_guards_step(struct cmd_verify_guards *c,
    const struct cmd_verify_round *r, const uint8_t measured_base[32], struct why *why);

#endif
