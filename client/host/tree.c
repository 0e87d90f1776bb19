#include "tree.h"
#include "bytes.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

struct process {
	pid_t pid, parent;
	uint64_t resident; /* bytes */
	uint64_t ticks; /* of processors, with those of children that ended */
	unsigned long long started; /* with the pid, no other process has it */
	bool below; /* the root */
};

struct tree {
	struct process *items;
	size_t count, room;
};

/* /proc/PID/stat: "PID (NAME) STATE PARENT ..."; the name may hold anything, the 14th to 17th fields are ticks, the 22nd is when it
 * started, the 24th is resident pages. */
static bool
read_process(struct process *out, const char *pid)
{
	char path[64], text[1024];
	int parent;
	long pages;
	unsigned long long user, system, started;
	long long waited_user, waited_system;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	const char *p = strrchr(text, ')');
	if (!p ||
	    sscanf(p + 1,
		" %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %lld %lld %*s %*s %*s %*s "
		"%llu %*s %ld",
		&parent, &user, &system, &waited_user, &waited_system, &started, &pages) != 7)
		return false;
	*out = (struct process){.pid = (pid_t)strtol(pid, NULL, 10),
	    .parent = parent,
	    .started = started,
	    .ticks = user + system + (uint64_t)waited_user + (uint64_t)waited_system,
	    .resident = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE)};
	return true;
}

static bool
add(struct tree *t, const struct process *p)
{
	struct process *items = bytes_grow(t->items, t->count, &t->room, sizeof(*items));
	if (!items)
		return false;
	t->items = items;
	t->items[t->count++] = *p;
	return true;
}

static bool
is_marked(const struct tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].pid == pid)
			return t->items[i].below;
	return false;
}

static void
mark(struct tree *t, pid_t root)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < t->count; i++) {
			struct process *p = &t->items[i];
			if (!p->below && (p->parent == root || is_marked(t, p->parent)))
				p->below = more = true;
		}
	}
}

static struct tree
list(pid_t root)
{
	struct tree t = {.items = NULL};
	struct process p;
	struct dirent *entry;
	DIR *d = opendir("/proc");

	while (d && (entry = readdir(d)))
		if (entry->d_name[strspn(entry->d_name, "0123456789")] == '\0' &&
		    read_process(&p, entry->d_name) && !add(&t, &p))
			break;
	if (d)
		closedir(d);
	mark(&t, root);
	return t;
}

/* It, and nobody who has its number by now. */
static bool
kill_one(const struct process *p)
{
	char pid[24];
	struct process now;
	int fd = pidfd_open(p->pid, 0);

	if (fd < 0)
		return errno == ENOSYS && kill(p->pid, SIGKILL) == 0;
	snprintf(pid, sizeof(pid), "%d", (int)p->pid);
	bool done = read_process(&now, pid) && now.started == p->started &&
	    pidfd_send_signal(fd, SIGKILL, NULL, 0) == 0;
	close(fd);
	return done;
}

unsigned
tree_kill(pid_t root)
{
	struct tree t = list(root);
	unsigned n = 0;

	for (size_t i = 0; i < t.count; i++)
		if (t.items[i].below && kill_one(&t.items[i]))
			n++;
	free(t.items);
	return n;
}

/* Its share of what it has in memory: the resident bytes where the kernel does not say. */
static uint64_t
share(const struct process *p)
{
	char path[64], line[128];
	unsigned long long kib = 0;
	bool known = false;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)p->pid);
	FILE *f = fopen(path, "re");
	while (f && !known && fgets(line, sizeof(line), f))
		known = sscanf(line, "Pss: %llu kB", &kib) == 1;
	if (f)
		fclose(f);
	return known ? kib << 10 : p->resident;
}

/* Shares are dear to find, and their sum is never above that of the resident bytes. */
uint64_t
tree_memory_over(pid_t root, uint64_t cap)
{
	struct tree t = list(root);
	uint64_t resident = 0, held = 0;

	for (size_t i = 0; i < t.count; i++)
		resident += t.items[i].below ? t.items[i].resident : 0;
	for (size_t i = 0; resident > cap && i < t.count; i++)
		held += t.items[i].below ? share(&t.items[i]) : 0;
	free(t.items);
	return held > cap ? held : 0;
}

double
tree_seconds(pid_t root)
{
	struct tree t = list(root);
	uint64_t ticks = 0;

	for (size_t i = 0; i < t.count; i++)
		ticks += t.items[i].below || t.items[i].pid == root ? t.items[i].ticks : 0;
	free(t.items);
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}
