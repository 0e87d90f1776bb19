#ifndef USER_H
#define USER_H
#include <stdbool.h>
#include <sys/types.h>

#include "err.h"

/*
 * A user of their own for programs. A process that is not the superuser's becomes another user by three capabilities
 * (capabilities(7)): CAP_SETUID and CAP_SETGID, and CAP_KILL to end what it started so. They are its rights here.
 */
#define USER_GROUPS_MAX 64

struct user {
	uid_t uid, before; /* before: of whoever looked it up */
	gid_t gid, before_gid;
	gid_t groups[USER_GROUPS_MAX]; /* beside gid */
	size_t count;
};

/* Its groups are those that the system gives it, and of this process's those that `shared` names (NULL-terminated); never the
 * superuser's, nor the own one of this process. ERR_NOTFOUND without such a user; ERR_DENIED for the superuser, for this process's
 * own user or group, for a process of the superuser; ERR_LIMIT. */
ERR_MUST_USE enum err user_find(
    struct user *out, const char *name, const char *const *shared, struct why *why);
/* ERR_DENIED: this process has not all three. */
ERR_MUST_USE enum err user_check_rights(struct why *why);
/* This process keeps these three and no other, and no program that it starts has any. */
ERR_MUST_USE enum err user_keep_rights(struct why *why);
/* This process has none any more, nor has any program that it starts. */
ERR_MUST_USE enum err user_drop_rights(struct why *why);
/* For good, without any right, and in a process group of its own. What it makes is for itself, and its group may read it.
 * ERR_DENIED where it could come back. */
ERR_MUST_USE enum err user_become(const struct user *u, struct why *why);
/* Has a child of that process these three rights and no other? processes: the folder /proc. */
bool user_child_has_rights(long process, const char *processes);

#endif
