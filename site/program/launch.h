#ifndef LAUNCH_H
#define LAUNCH_H
#include "serve.h"

/* A task by processes of this host, which mpirun starts. */
struct launch {
	unsigned ranks;
	const char *const *options; /* of `rivulet-site rank`; NULL-terminated */
};
/* serve.task. context: struct launch. Open MPI refuses root. */
ERR_MUST_USE enum err launch_task(
    void *context, const char *directory, const struct serve_wish *wish, struct why *why);

#endif
