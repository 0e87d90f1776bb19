#ifndef BEGIN_H
#define BEGIN_H
#include <signal.h>
#include <stdbool.h>

#include "err.h"
#include "setup.h"

/* The start of the coordinator, and what happens when it fails. */

/* May this failure of a start end without a person? A port in use, an address or a file system not there yet, a disk that is full. */
bool begin_passes(enum err e);
/* Brings the coordinator up. Under a service manager, which would start the program again every few seconds, a failure that may pass
 * (begin_passes) is logged once and the start tried again every two seconds. ERR_CLOSED: one of `signals`, which are blocked, came
 * meanwhile. */
ERR_MUST_USE enum err begin_setup(struct setup **out, const struct config *config,
    struct answers *answers, const sigset_t *signals, struct why *why);

#endif
