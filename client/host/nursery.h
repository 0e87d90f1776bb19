#ifndef NURSERY_H
#define NURSERY_H
#include "spawner.h"

/*
 * A process that makes spawners (spawner.h) for as long as another lives: each has to be forked from something that holds no secrets,
 * and how many are wanted is not known before the settings are read. It ends with the other; the spawners end with theirs.
 */
struct nursery {
	int fd;
	pid_t pid;
};

/* Call it before other threads and secrets are there. */
ERR_MUST_USE enum err nursery_init(struct nursery *n, struct why *why);
/* What it made stays. */
void nursery_deinit(struct nursery *n);
/* spawner_deinit ends it. ERR_CLOSED if the process is gone. */
ERR_MUST_USE enum err nursery_spawner(struct nursery *n, struct spawner *out, struct why *why);

#endif
