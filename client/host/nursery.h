#ifndef NURSERY_H
#define NURSERY_H
#include "apart.h"
#include "spawner.h"

/*
 * A process that makes spawners (spawner.h) for as long as another lives: each has to be forked from something that holds no secrets,
 * and how many are wanted is not known before the settings are read. It ends with the other; the spawners end with theirs. Where programs
 * have a user of their own, it is what may become that, and does what apart.h asks for.
 */
struct nursery {
	int fd;
	pid_t pid;
	struct apart *apart; /* the user of programs; NULL: this process's */
};

/* Call it before other threads and secrets are there. apart: the user of programs, who is asked through it from now on; NULL: this
 * process's user. With one, this process has no rights after success. */
ERR_MUST_USE enum err nursery_init(struct nursery *n, struct apart *apart, struct why *why);
/* What it made stays. */
void nursery_deinit(struct nursery *n);
/* spawner_deinit ends it. ERR_CLOSED if the process is gone. */
ERR_MUST_USE enum err nursery_spawner(struct nursery *n, struct spawner *out, struct why *why);

#endif
