#ifndef LAUNCH_H
#define LAUNCH_H
#include "serve.h"

/* Processes of this host, which mpirun starts: `rivulet-site rank`, with these options and a word. */
struct launch {
	unsigned ranks;
	const char *const *options; /* NULL-terminated */
};
/* Blocks until they have ended. ERR_CLOSED: not with status 0. ERR_DENIED: Open MPI refuses root. */
ERR_MUST_USE enum err launch_wait(
    const struct launch *l, const char *word, const struct serve_wish *wish, struct why *why);
/* serve.task, by them. context: struct launch. */
ERR_MUST_USE enum err launch_task(
    void *context, const char *directory, const struct serve_wish *wish, struct why *why);

#endif
