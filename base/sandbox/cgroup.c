#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "num.h"

#define TEXT_MAX (64u << 10)
#define OWN "agent" /* the group of the processes that were there before */
#define TRIES 50
#define PAUSE_MS 20

/* --- files of the kernel's */

static bool
put(const char *group, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	size_t len = strlen(text);

	snprintf(path, sizeof(path), "%s/%s", group, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool done = write(fd, text, len) == (ssize_t)len;
	close(fd);
	return done;
}

static bool
put_number(const char *group, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return put(group, name, text);
}

/* At most room - 1 bytes, NUL-terminated; "" where there is nothing. */
static void
get(char *out, size_t room, const char *group, const char *name)
{
	char path[PATH_MAX + 64];
	size_t len = 0;
	ssize_t n = 0;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && len + 1 < room && (n = read(fd, out + len, room - 1 - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	out[len] = '\0';
}

/* The number on the first line, or, with a key, behind that and a blank; false for anything else. */
static bool
get_number(uint64_t *out, const char *group, const char *name, const char *key)
{
	char text[4096] = "", *at = text;
	size_t len = strlen(key);

	get(text, sizeof(text), group, name);
	while (len > 0 && at && (strncmp(at, key, len) != 0 || at[len] != ' ')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return false;
	at += len > 0 ? len + 1 : 0;
	at[strcspn(at, "\n")] = '\0';
	return num_u64(at, UINT64_MAX, out);
}

/* --- */

/* The group of a process; "" without. */
static void
find_group(char out[PATH_MAX], const char *processes, const char *process, const char *folder)
{
	char text[4096], name[64];

	out[0] = '\0';
	snprintf(name, sizeof(name), "%.20s/cgroup", process);
	get(text, sizeof(text), processes, name);
	const char *own = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
	if (!own)
		return;
	own = strchr(own, '/');
	int n = snprintf(out, PATH_MAX, "%s%.*s", folder, (int)strcspn(own, "\n"), own);
	if (n < 0 || n >= PATH_MAX - 64)
		out[0] = '\0';
}

/* systemd says so by an attribute; that this process may write there says nothing where it is the superuser's. */
static bool
is_given_away(const char *group)
{
	char mark = '\0';

	return getxattr(group, "user.delegate", &mark, 1) == 1 && mark == '1' &&
	    access(group, W_OK) == 0;
}

/* What comes meanwhile is found in the next turn. */
static bool
move_processes(const char *from, const char *to)
{
	char *text = malloc(TEXT_MAX), *save = NULL;
	bool moved = text != NULL, some = moved;

	for (unsigned turn = 0; moved && some && turn < TRIES; turn++) {
		some = false;
		get(text, TEXT_MAX, from, "cgroup.procs");
		for (char *pid = strtok_r(text, "\n", &save); pid;
		     pid = strtok_r(NULL, "\n", &save)) {
			some = true;
			if (!put(to, "cgroup.procs", pid) && errno != ESRCH)
				moved = false;
		}
	}
	free(text);
	return moved && !some;
}

enum err
cgroup_prepare(struct cgroup_place *out, const char *processes, const char *folder, struct why *why)
{
	char own[PATH_MAX], below[PATH_MAX + 64];

	out->path[0] = '\0';
	find_group(own, processes, "self", folder);
	if (!*own || !is_given_away(own))
		return err_set(why, ERR_UNSUPPORTED, "no control group was given away");
	snprintf(below, sizeof(below), "%s/" OWN, own);
	if (mkdir(below, 0755) != 0 && errno != EEXIST)
		return err_errno(why, "create %s", below);
	if (!move_processes(own, below))
		return err_set(why, ERR_IO, "processes cannot be moved to %s", below);
	if (!put(own, "cgroup.subtree_control", "+memory +pids"))
		return err_errno(why, "write cgroup.subtree_control in %s", own);
	memcpy(out->path, own, sizeof(own));
	return ERR_OK;
}

bool
cgroup_is_prepared(long process, const char *processes, const char *folder)
{
	char group[PATH_MAX], number[24], controllers[256];

	snprintf(number, sizeof(number), "%ld", process);
	find_group(group, processes, number, folder);
	char *last = strrchr(group, '/');
	if (!last || strcmp(last + 1, OWN) != 0)
		return false;
	*last = '\0';
	get(controllers, sizeof(controllers), group, "cgroup.subtree_control");
	return strstr(controllers, "memory") && strstr(controllers, "pids");
}

/* The agent must be able to start processes, whatever the program does: of the tasks that all may have, an eighth stays. */
static uint64_t
most_tasks(const struct cgroup_place *place)
{
	uint64_t all = 0;

	return get_number(&all, place->path, "pids.max", "") ? all - all / 8 : 0;
}

enum err
cgroup_make(struct cgroup *out, const struct cgroup_place *place, uint64_t memory, struct why *why)
{
	uint64_t tasks = 0;
	int n = 0;

	out->path[0] = '\0';
	if (!*place->path)
		return err_set(why, ERR_UNSUPPORTED, "no control group was given away");
	n = snprintf(out->path, sizeof(out->path), "%s/program-%d", place->path, (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(out->path)) {
		out->path[0] = '\0';
		return err_set(why, ERR_LIMIT, "path too long: %.200s", place->path);
	}
	tasks = most_tasks(place);
	enum err e = mkdir(out->path, 0755) != 0 && errno != EEXIST
	    ? err_errno(why, "create %s", out->path)
	    : ERR_OK;
	if (!e && memory > 0 && !put_number(out->path, "memory.max", memory))
		e = err_errno(why, "write memory.max in %s", out->path);
	if (!e && !put(out->path, "memory.oom.group", "1"))
		e = err_errno(why, "write memory.oom.group in %s", out->path);
	if (!e && tasks > 0 && !put_number(out->path, "pids.max", tasks))
		e = err_errno(why, "write pids.max in %s", out->path);
	if (e)
		cgroup_end(out);
	return e;
}

bool
cgroup_enter(const struct cgroup *c)
{
	return put(c->path, "cgroup.procs", "0");
}

uint64_t
cgroup_memory_over(const struct cgroup *c)
{
	uint64_t ended = 0, most = 0;

	if (!*c->path || !get_number(&ended, c->path, "memory.events", "oom_kill") || ended == 0)
		return 0;
	/* Linux 5.19 and later knows how much it was. */
	if (!get_number(&most, c->path, "memory.peak", ""))
		(void)get_number(&most, c->path, "memory.max", "");
	return most > 0 ? most : 1;
}

void
cgroup_end(struct cgroup *c)
{
	if (!*c->path)
		return;
	for (unsigned i = 0; i < TRIES && rmdir(c->path) != 0 && errno == EBUSY; i++) {
		(void)put(c->path, "cgroup.kill", "1");
		poll(NULL, 0, PAUSE_MS);
	}
	c->path[0] = '\0';
}
