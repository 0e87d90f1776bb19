#ifndef SEND_H
#define SEND_H
#include "abort_reason.h"
#include "handle_inside.h"

/* Sends one delta of the outbox and checks the receipt; a delta that was accepted or refused for good is removed. ERR_OK: accepted;
 * ERR_STATE: refused for good (`why` has the reason); ERR_CLOSED, ERR_TIMEOUT, ERR_DENIED, ERR_AGAIN: the delta stays. */
ERR_MUST_USE enum err send_delta(struct rivulet *r, const char *task, struct why *why);
/* Is a refusal with this status and problem final? False for everything that can pass: 401, 408, 429, 5xx, a certificate that
 * has expired, a suspended or unknown device, a 403 of a type that this version does not know. Other 4xx are final. */
bool send_final(long status, enum problem_type t);
/* Sends all deltas of the outbox. The first call verifies entries of an earlier process, and logs and drops damaged ones. ERR_OK if
 * no delta is left, or only deltas that the coordinator itself could not accept (408, 429, 5xx, or a wrong receipt): later calls
 * send these again, with back-off, and the device can do other work. Else the error of the first delta that stays. */
ERR_MUST_USE enum err send_all(struct rivulet *r, struct why *why);
/* Tells the coordinator that a task will not be done. */
ERR_MUST_USE enum err send_abort(struct rivulet *r, const char *task, struct abort_cause cause,
    const char *log, struct why *why);

#endif
