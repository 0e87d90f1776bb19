#ifndef SPAWNER_POOL_H
#define SPAWNER_POOL_H
#include "apart.h"
#include "spawner.h"

/*
 * The spawner pool: a process that makes spawners (spawner.h) for its parent, the agent. A spawner must be forked from a process without
 * secrets, and how many are needed is not known before the settings are read. The pool ends with its parent; each spawner ends with its
 * client. Where programs have a user of their own, the pool may become that user, and carries out the requests of apart.h.
 */
struct spawner_pool {
	int fd;
	pid_t pid;
	struct apart *apart; /* the user of programs; NULL: this process's */
};

/* Starts the pool; called before this process has other threads or secrets. apart: the user of programs, whose requests go through the pool
 * from now on; NULL: this process's user. If apart is not NULL this process has no rights (user.h) after success. */
ERR_MUST_USE enum err spawner_pool_init(
    struct spawner_pool *n, struct apart *apart, struct why *why);
/* Ends the pool; spawners that it made stay. */
void spawner_pool_deinit(struct spawner_pool *n);
/* Makes a spawner, which spawner_deinit ends. ERR_CLOSED if the pool is gone. */
ERR_MUST_USE enum err spawner_pool_spawner(
    struct spawner_pool *n, struct spawner *out, struct why *why);

#endif
