#ifndef COLLECT_H
#define COLLECT_H
#include "admin.h"

struct cmd_verify_fetched {
	uint64_t entries, models, deltas; /* in the directory now */
	uint64_t missing; /* deltas that the coordinator does not keep */
};

/* Writes the coordinator's audit chain to DIR (FORMAT.md, "Audit entries"), and with `deltas` the kept deltas and the models
 * needed to fold their rounds again. A chain that is there already must be the beginning of the new one; else ERR_CORRUPT, and
 * DIR stays as it is. Nothing else is checked of what is fetched. */
ERR_MUST_USE enum err cmd_verify_fetch(struct cmd_admin *a, const char *dir, bool deltas,
    struct cmd_verify_fetched *out, struct why *why);

#endif
