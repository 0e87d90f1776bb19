#include "confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rights that newer kernels know than the header may. */
#define REFER (1ULL << 13) /* version 2 */
#define TRUNCATE (1ULL << 14) /* version 3 */
#define IOCTL_DEVICE (1ULL << 15) /* version 5 */
#define SCOPE_ABSTRACT_SOCKETS (1ULL << 0) /* version 6 */
#define SCOPE_SIGNALS (1ULL << 1) /* so too */

#define OF_READING \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define OF_DIRECTORIES \
	(LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | \
	    LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | \
	    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
	    LANDLOCK_ACCESS_FS_MAKE_SYM | REFER)
#define OF_WRITING (LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE | OF_DIRECTORIES)
#define OF_DEVICES \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | \
	    LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE | IOCTL_DEVICE)
/* What a rule for a file may name. */
#define OF_FILES \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
	    LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE | IOCTL_DEVICE)

/* The kernel takes as much of it as its version knows, if the rest is zero. */
struct attributes {
	uint64_t files, network, scoped;
};

int
confine_version(void)
{
	long version =
	    syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);

	return version > 0 ? (int)version : 0;
}

/* Without a right, the first version refuses renames between directories always. */
static uint64_t
known_to(int version)
{
	uint64_t known = OF_READING | OF_WRITING | IOCTL_DEVICE;

	if (version < 5)
		known &= ~IOCTL_DEVICE;
	if (version < 3)
		known &= ~TRUNCATE;
	return version < 2 ? known & ~REFER : known;
}

enum err
confine_init(struct confine *out, enum confine_kind kind, const char *but, struct why *why)
{
	int version = confine_version();
	struct attributes a = {.files = OF_WRITING};

	*out = (struct confine){.fd = -1, .but = but};
	if (version == 0)
		return err_set(why, ERR_UNSUPPORTED, "this kernel has no Landlock");
	if (kind == CONFINE_FILES)
		a = (struct attributes){.files = OF_READING | OF_WRITING | IOCTL_DEVICE,
		    .scoped = version >= 6 ? SCOPE_SIGNALS | SCOPE_ABSTRACT_SOCKETS : 0};
	a.files &= known_to(version);
	out->handled = a.files;
	out->fd = (int)syscall(SYS_landlock_create_ruleset, &a, sizeof(a), 0);
	return out->fd < 0 ? err_errno(why, "landlock_create_ruleset") : ERR_OK;
}

void
confine_deinit(struct confine *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static uint64_t
rights(unsigned access)
{
	uint64_t writing = OF_WRITING;

	if (access & CONFINE_NO_LINKS)
		writing &= ~LANDLOCK_ACCESS_FS_MAKE_SYM;
	if (access & CONFINE_NO_MOVES)
		writing &= ~REFER;

	return (access & CONFINE_READ ? OF_READING : 0) | (access & CONFINE_WRITE ? writing : 0) |
	    (access & CONFINE_DEVICES ? OF_DEVICES : 0) |
	    (access & CONFINE_SOCKETS
		    ? LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE
		    : 0);
}

static enum err
add_rule(const struct confine *c, const char *path, unsigned access, struct why *why)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights(access) & c->handled};
	struct stat st;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return err_errno(why, "open %s", path);
	if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed_access &= OF_FILES;
	enum err e = ERR_OK;
	if (rule.allowed_access &&
	    syscall(SYS_landlock_add_rule, c->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
		e = err_errno(why, "landlock_add_rule %s", path);
	close(rule.parent_fd);
	return e;
}

/* Is `path` the same as `directory`, or below it? Both are resolved. */
static bool
is_below(const char *path, const char *directory)
{
	size_t len = strlen(directory);

	if (len == 1)
		return true;
	return strncmp(path, directory, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* A rule cannot leave anything out, so that each entry beside the way to c->but gets one. */
static enum err
allow_entries(const struct confine *c, const char *path, unsigned access, struct why *why)
{
	struct dirent *entry;
	enum err e = ERR_OK;
	DIR *d = opendir(path);

	if (!d)
		return err_errno(why, "open %s", path);
	while (!e && (entry = readdir(d))) {
		char below[PATH_MAX];
		int n = snprintf(below, sizeof(below), "%s/%s", path[1] ? path : "", entry->d_name);
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || n < 0 ||
		    (size_t)n >= sizeof(below))
			continue;
		/* A link is allowed where it leads, if that is. */
		if (entry->d_type == DT_LNK || strcmp(below, c->but) == 0)
			continue;
		e = is_below(c->but, below) ? allow_entries(c, below, access, why)
					    : add_rule(c, below, access, why);
		/* What this process may not look up is not for it either. */
		if (e == ERR_NOTFOUND || e == ERR_DENIED)
			e = ERR_OK;
	}
	closedir(d);
	return e;
}

enum err
confine_allow(const struct confine *c, const char *path, unsigned access, struct why *why)
{
	char *full = realpath(path, NULL);

	if (!full)
		return err_errno(why, "find %s", path);
	enum err e;
	if (c->but && strcmp(c->but, full) == 0)
		e = err_set(why, ERR_DENIED, "%s is never allowed", path);
	else if (c->but && is_below(c->but, full))
		e = allow_entries(c, full, access, why);
	else
		e = add_rule(c, full, access, why);
	free(full);
	return e;
}

enum err
confine_enter(const struct confine *c, struct why *why)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_errno(why, "no_new_privs");
	if (syscall(SYS_landlock_restrict_self, c->fd, 0) != 0)
		return err_errno(why, "landlock_restrict_self");
	return ERR_OK;
}
