#ifndef LOCAL_WORLD_H
#define LOCAL_WORLD_H
#include "leader.h"

/* A world of threads of this process, whose rank 0 is the caller. */
struct local_world;
ERR_MUST_USE enum err local_world_new(struct local_world **out, unsigned ranks, struct why *why);
struct world *local_world_leader(struct local_world *w);
/* Ends the world and its threads. */
void local_world_free(struct local_world *w);

#endif
