#ifndef SEAL_H
#define SEAL_H
#include "config.h"

/*
 * The coordinator's sandbox for itself: after seal_close the process writes only below the state directory and the spool, makes sockets
 * only where the admin socket goes, and other processes of its user cannot trace it. Reading is not restricted, because a reload may name
 * new data and certificates. Threads that are started later are restricted, too, so call it before them; a kernel without Landlock
 * restricts less, and a warning says so.
 */
ERR_MUST_USE enum err seal_close(const struct config *c, struct why *why);

#endif
