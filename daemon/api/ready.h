#ifndef READY_H
#define READY_H
#include <stdbool.h>

struct services;

struct health_report;

/* Can the coordinator do its work, and may it issue certificates? */

/* Sets out: what health reports, else certificates that are not valid now, else a full spool. out->reason is WAIT_NONE: ready. */
void ready_report(const struct services *s, struct health_report *out);
/* False, with the reason in out, while the server's certificate has expired or the clock is before the certificates: a device would refuse
 * a certificate that is issued then. */
bool ready_to_issue(const struct services *s, struct health_report *out);

#endif
