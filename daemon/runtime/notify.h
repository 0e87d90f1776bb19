#ifndef NOTIFY_H
#define NOTIFY_H
#include <stdint.h>

/* The service manager's notify socket (sd_notify(3) protocol, plain AF_UNIX datagrams, no library). Does nothing without
 * $NOTIFY_SOCKET. Failures are ignored: the manager is a convenience. */

/* Sends state, e.g. "READY=1\nSTATUS=2 jobs". */
void notify_send(const char *state);
/* Half of $WATCHDOG_USEC in ms (how often to send WATCHDOG=1); 0 if the manager wants none. */
uint64_t notify_watchdog_ms(void);

#endif
