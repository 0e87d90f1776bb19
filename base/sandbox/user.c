#include "user.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RIGHTS (1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL)
#define OTHERS_NOTHING 0027 /* umask */

/* --- who it is */

static void
add_group(struct user *u, gid_t group)
{
	bool has = group == 0 || group == u->gid || group == u->before_gid;

	for (size_t i = 0; i < u->count; i++)
		has = has || u->groups[i] == group;
	if (!has && u->count < USER_GROUPS_MAX)
		u->groups[u->count++] = group;
}

static void
add_shared(struct user *u, const char *const *shared)
{
	gid_t own[USER_GROUPS_MAX];
	int count = getgroups(USER_GROUPS_MAX, own);

	for (; *shared; shared++) {
		const struct group *g = getgrnam(*shared);
		for (int i = 0; g && i < count; i++)
			if (own[i] == g->gr_gid)
				add_group(u, g->gr_gid);
	}
}

enum err
user_find(struct user *out, const char *name, const char *const *shared, struct why *why)
{
	const struct passwd *entry = getpwnam(name);
	gid_t groups[USER_GROUPS_MAX];
	int count = USER_GROUPS_MAX;

	if (!entry)
		return err_set(why, ERR_NOTFOUND, "there is no user %s", name);
	*out = (struct user){
	    .uid = entry->pw_uid, .gid = entry->pw_gid, .before = getuid(), .before_gid = getgid()};
	if (out->before == 0 || geteuid() == 0)
		return err_set(why, ERR_DENIED, "this process is the superuser's");
	if (out->uid == 0 || out->gid == 0 || out->uid == out->before || out->uid == geteuid() ||
	    out->gid == out->before_gid || out->gid == getegid())
		return err_set(why, ERR_DENIED,
		    "user %s (%u:%u) is the superuser, or has the user or group of this process",
		    name, (unsigned)out->uid, (unsigned)out->gid);
	if (getgrouplist(name, out->gid, groups, &count) < 0)
		return err_set(
		    why, ERR_LIMIT, "user %s is in more than %d groups", name, USER_GROUPS_MAX);
	for (int i = 0; i < count; i++)
		add_group(out, groups[i]);
	add_shared(out, shared);
	return ERR_OK;
}

/* --- its rights */

static bool
get_rights(struct __user_cap_data_struct held[2])
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};

	return syscall(SYS_capget, &head, held) == 0;
}

/* What a right cannot be taken from (the bounding set, without one more right) is of no use to programs that gain none. */
static enum err
set_rights(uint32_t rights, struct why *why)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct held[2] = {{.effective = rights, .permitted = rights}};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_errno(why, "no_new_privs");
	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (syscall(SYS_capset, &head, held) != 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 || !get_rights(held))
		return err_errno(why, "set capabilities");
	if (held[0].permitted != rights || held[0].effective != rights || held[0].inheritable ||
	    held[1].permitted || held[1].effective || held[1].inheritable)
		return err_set(why, ERR_DENIED, "capabilities are not what they were set to");
	return ERR_OK;
}

enum err
user_check_rights(struct why *why)
{
	struct __user_cap_data_struct held[2];

	if (get_rights(held) && (held[0].effective & RIGHTS) == RIGHTS)
		return ERR_OK;
	return err_set(
	    why, ERR_DENIED, "the capabilities CAP_SETUID, CAP_SETGID and CAP_KILL were not given");
}

enum err
user_keep_rights(struct why *why)
{
	return set_rights(RIGHTS, why);
}

enum err
user_drop_rights(struct why *why)
{
	return set_rights(0, why);
}

/* --- to become it */

static bool
is_for_good(const struct user *u)
{
	uid_t real, effective, saved;
	gid_t real_gid, effective_gid, saved_gid;

	return getresuid(&real, &effective, &saved) == 0 && real == u->uid && effective == u->uid &&
	    saved == u->uid && getresgid(&real_gid, &effective_gid, &saved_gid) == 0 &&
	    real_gid == u->gid && effective_gid == u->gid && saved_gid == u->gid &&
	    setresuid((uid_t)-1, u->before, (uid_t)-1) != 0 && setuid(0) != 0 &&
	    setresgid((gid_t)-1, u->before_gid, (gid_t)-1) != 0 && setgroups(0, NULL) != 0;
}

enum err
user_become(const struct user *u, struct why *why)
{
	umask(OTHERS_NOTHING);
	/* A process of that user in the group of its parent would let that user signal the group. */
	if (setpgid(0, 0) != 0 && getpgrp() != getpid())
		return err_errno(why, "leave the process group");
	if (setgroups(u->count, u->groups) != 0 || setresgid(u->gid, u->gid, u->gid) != 0 ||
	    setresuid(u->uid, u->uid, u->uid) != 0)
		return err_errno(why, "become user %u", (unsigned)u->uid);
	enum err e = set_rights(0, why);
	/* Nobody of that user looks into it. */
	if (!e && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		e = err_errno(why, "PR_SET_DUMPABLE");
	if (!e && !is_for_good(u))
		e = err_set(why, ERR_DENIED, "user %u could become another", (unsigned)u->uid);
	return e;
}

/* --- of another process */

static bool
is_child_with_rights(const char *processes, const char *pid, long parent)
{
	char path[512], line[256];
	uint64_t held = 0;
	long above = 0;

	snprintf(path, sizeof(path), "%.200s/%.20s/status", processes, pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "PPid: %ld", &above) != 1)
			(void)sscanf(line, "CapPrm: %" SCNx64, &held);
	if (f)
		fclose(f);
	return above == parent && held == RIGHTS;
}

bool
user_child_has_rights(long process, const char *processes)
{
	DIR *d = opendir(processes);
	const struct dirent *entry;
	bool found = false;

	while (d && !found && (entry = readdir(d)))
		found = entry->d_name[strspn(entry->d_name, "0123456789")] == '\0' &&
		    is_child_with_rights(processes, entry->d_name, process);
	if (d)
		closedir(d);
	return found;
}
