#ifndef SEAL_H
#define SEAL_H
#include "config.h"

/*
 * Closed from inside: from here on the process writes below the state directory and the spool only, makes sockets where the admin
 * socket goes, and cannot be looked into by others of its user. Reading stays as file modes have it, for a reload may name new data
 * and certificates. It holds for threads that are started later, so that it comes before them; on a kernel without Landlock it
 * holds less, which a warning says.
 */
ERR_MUST_USE enum err seal_close(const struct config *c, struct why *why);

#endif
