#ifndef READY_H
#define READY_H
#include <stdbool.h>

struct services;

struct health_report;

/* Can the coordinator do its work, and may it issue certificates? */

/* What health knows, certificates that nobody takes now, a spool without room. WAIT_NONE in out->reason: ready. */
void ready_report(const struct services *s, struct health_report *out);
/* False, with the reason, while the server's certificate is over or the clock stands before the certificates: whatever is issued
 * then is refused by those who get it. */
bool ready_to_issue(const struct services *s, struct health_report *out);

#endif
