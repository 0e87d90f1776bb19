#ifndef USER_H
#define USER_H
#include <stdbool.h>
#include <sys/types.h>

#include "err.h"

/*
 * A user of their own for programs. A process that is not the superuser's becomes another user by the capabilities (capabilities(7))
 * CAP_SETUID and CAP_SETGID, and needs CAP_KILL to end programs of that user. These three are called "the rights" here.
 */
#define USER_GROUPS_MAX 64

struct user {
	uid_t uid, before; /* before: of the process that called user_find */
	gid_t gid, before_gid;
	gid_t groups[USER_GROUPS_MAX]; /* beside gid */
	size_t count;
};

/* Looks a user up. The user's groups are those that the system has for this user, and those groups of this process that `shared` names
 * (NULL-terminated); never the superuser's, nor this process's own group. ERR_NOTFOUND without such a user; ERR_DENIED for the superuser,
 * for this process's own user or group, for a process of the superuser; ERR_LIMIT for more than USER_GROUPS_MAX groups. */
ERR_MUST_USE enum err user_find(
    struct user *out, const char *name, const char *const *shared, struct why *why);
/* ERR_DENIED unless this process has all three rights. */
ERR_MUST_USE enum err user_check_rights(struct why *why);
/* This process keeps the three rights and no other capability; no program that it starts has any. */
ERR_MUST_USE enum err user_keep_rights(struct why *why);
/* This process gives up all capabilities; no program that it starts has any. */
ERR_MUST_USE enum err user_drop_rights(struct why *why);
/* For good, without any right, and in a process group of its own. What it makes is for itself, and its group may read it.
 * ERR_DENIED where it could come back. */
ERR_MUST_USE enum err user_become(const struct user *u, struct why *why);
/* Has a child of process number `process` the three rights and no other capability? processes: the path of /proc. */
bool user_child_has_rights(long process, const char *processes);

#endif
