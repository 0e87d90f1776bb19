#ifndef CGROUP_H
#define CGROUP_H
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"

/*
 * Control groups (version 2; docs.kernel.org/admin-guide/cgroup-v2.html) for programs, below one that the service manager gave away
 * (Delegate= of systemd.resource-control(5)). Of a program in one, all memory counts, also what belongs to no process, such as files
 * in /dev/shm; and none of its processes gets away.
 */
struct cgroup_place {
	char path[PATH_MAX]; /* the group that was given away; "": there is none */
};

struct cgroup {
	char path[PATH_MAX]; /* "": none */
};

/* Moves the processes of this process's own group into one below, so that others can stand beside it. `processes` is the folder of
 * /proc, `folder` that of the groups. ERR_UNSUPPORTED where no group was given away; *out is empty after a failure. */
ERR_MUST_USE enum err cgroup_prepare(
    struct cgroup_place *out, const char *processes, const char *folder, struct why *why);
/* Did that process prepare its group so? */
bool cgroup_is_prepared(long process, const char *processes, const char *folder);
/* A group for a program of this process, one at a time. memory: bytes of its most, 0: as much as there is. */
ERR_MUST_USE enum err cgroup_make(
    struct cgroup *out, const struct cgroup_place *place, uint64_t memory, struct why *why);
/* The calling process goes there. False: it could not. */
bool cgroup_enter(const struct cgroup *c);
/* Bytes that it had at its most, if the kernel ended processes of it for having more than they may; else 0. */
uint64_t cgroup_memory_over(const struct cgroup *c);
/* Ends what is in it, waits for that, and removes it. What has no group is fine. */
void cgroup_end(struct cgroup *c);

#endif
