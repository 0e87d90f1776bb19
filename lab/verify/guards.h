#ifndef GUARDS_H
#define GUARDS_H
#include "history.h"

/* Checks that the rounds in a job's records follow from its document: when the guard acts and to which model it goes back, and the factor
 * of the server's rate. Stepped round by round from the first. */
struct cmd_verify_guards;

/* *out is NULL if there is nothing to check: this build cannot parse the document, and does not fold its rounds again either. A job
 * with neither guard nor scale is checked, too: each round starts from the model before, at factor 1. ERR_NOMEM. */
ERR_MUST_USE enum err cmd_verify_guards_new(
    struct cmd_verify_guards **out, const char *document, size_t len);
void cmd_verify_guards_free(struct cmd_verify_guards *c);
/* Checks the next round. measured_base: the base of round r->measured. ERR_CORRUPT: the record differs from what follows from the rounds
 * before. */
ERR_MUST_USE enum err cmd_verify_guards_step(struct cmd_verify_guards *c,
    const struct cmd_verify_round *r, const uint8_t measured_base[32], struct why *why);

#endif
