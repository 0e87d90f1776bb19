#ifndef CGROUP_H
#define CGROUP_H
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"

/*
 * Control groups (version 2; docs.kernel.org/admin-guide/cgroup-v2.html) for programs, below a group that the service manager delegated
 * (Delegate= of systemd.resource-control(5)). A program in a control group is charged for all its memory, also for memory that belongs to
 * no process, such as files in /dev/shm; and none of its processes can leave the group.
 */
struct cgroup_place {
	char path[PATH_MAX]; /* the delegated group; "": there is none */
};

struct cgroup {
	char path[PATH_MAX]; /* "": none */
};

/* Moves all processes of this process's own group into a new group below, so that groups of programs can stand beside it. `processes` is
 * the path of /proc, `folder` that of the control groups. ERR_UNSUPPORTED where no group was delegated; *out is empty after a failure. */
ERR_MUST_USE enum err cgroup_prepare(
    struct cgroup_place *out, const char *processes, const char *folder, struct why *why);
/* Has process number `process` called cgroup_prepare with success? */
bool cgroup_is_prepared(long process, const char *processes, const char *folder);
/* Makes a group for a program of this process, which has one at a time. memory: the most bytes that the program may have; 0: no limit. */
ERR_MUST_USE enum err cgroup_make(
    struct cgroup *out, const struct cgroup_place *place, uint64_t memory, struct why *why);
/* Moves the calling process into the group. False: the kernel refused. */
bool cgroup_enter(const struct cgroup *c);
/* If the kernel killed processes of the group for lack of memory: the most bytes that the group had (1 if not known); else 0. */
uint64_t cgroup_memory_over(const struct cgroup *c);
/* Kills the group's processes, waits for their end, and removes the group. A struct without a group is fine. */
void cgroup_end(struct cgroup *c);

#endif
