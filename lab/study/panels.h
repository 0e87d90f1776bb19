#ifndef PANELS_H
#define PANELS_H
#include "rounds.h"

/* Prints the curves of one job over its rounds from number `from` on: of the metric (scalars.h), or with NULL of loss and accuracy. */
ERR_MUST_USE enum err cmd_panels(struct cmd_admin *a, const struct json *job, const char *metric,
    uint64_t from, struct why *why);

#endif
