#ifndef SEND_H
#define SEND_H
#include "abort_reason.h"
#include "handle_inside.h"

/* Sends one delta of the outbox and checks the receipt; removes it when it was taken or refused for good. ERR_OK taken;
 * ERR_STATE refused for good (why holds the reason); ERR_CLOSED, ERR_TIMEOUT, ERR_DENIED, ERR_AGAIN: it stays. */
ERR_MUST_USE enum err send_delta(struct rivulet *r, const char *task, struct why *why);
/* Does a refusal with this status and problem end the delta? False for everything that can pass: 401,
 * 408, 429, 5xx, a certificate that has expired, a suspended or unknown device, a 403 of a type not known here. Other
 * 4xx are final. */
bool send_final(long status, enum problem_type t);
/* Sends all that waits. The first call verifies entries of an earlier life and names and drops damaged ones. ERR_OK when
 * nothing is left but what the coordinator itself could not take (408, 429, 5xx, or a receipt that is wrong): that is
 * tried again by later calls, with back-off, and must not keep the device from other work. Else why the first one stays. */
ERR_MUST_USE enum err send_all(struct rivulet *r, struct why *why);
/* Tells the coordinator that a task will not be done. */
ERR_MUST_USE enum err send_abort(struct rivulet *r, const char *task, struct abort_cause cause,
    const char *log, struct why *why);

#endif
