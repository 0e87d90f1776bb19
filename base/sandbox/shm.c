#include "shm.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "bytes.h"
#include "wild.h"

#define ENTRIES_MAX 65536 /* of a directory that are looked at */
#define TRIES 50
#define PAUSE_MS 20

/* An entry that may go. */
struct leftover {
	struct shm_entry entry;
	bool used;
	char name[256];
};

struct leftovers {
	char folder[256]; /* where they lie; empty: it has no name */
	struct leftover *items;
	size_t count, room;
};

static bool
is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *
list(int fd)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = own < 0 ? NULL : fdopendir(own);

	if (!d && own >= 0)
		close(own);
	return d;
}

/* --- what was there */

static bool
was_there(const struct shm *s, const struct stat *st)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->before[i].device == st->st_dev && s->before[i].inode == st->st_ino)
			return true;
	return false;
}

/* False: memory is short, and nothing may be removed. */
static bool
note(struct shm *s, const struct stat *st)
{
	struct shm_entry *items = bytes_grow(s->before, s->count, &s->room, sizeof(*items));

	if (!items)
		return false;
	s->before = items;
	s->before[s->count++] = (struct shm_entry){st->st_dev, st->st_ino};
	return true;
}

/* The directory itself is in it, so that an empty one is known, too. */
static bool
note_all(struct shm *s)
{
	struct dirent *entry;
	struct stat st;
	DIR *d = list(s->fd);
	bool done = d && fstat(s->fd, &st) == 0 && note(s, &st);

	while (done && (entry = readdir(d)))
		if (!is_dots(entry->d_name) &&
		    fstatat(s->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			done = s->count < ENTRIES_MAX && note(s, &st);
	if (d)
		closedir(d);
	return done;
}

void
shm_begin(struct shm *s, const char *directory)
{
	if (s->fd < 0)
		s->fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0)
		return;
	/* Somebody who cleans has done so soon; somebody who only holds it is not waited for. */
	for (unsigned i = 0; i < TRIES && flock(s->fd, LOCK_SH | LOCK_NB) != 0; i++)
		poll(NULL, 0, PAUSE_MS);
	if (!s->before && !note_all(s))
		shm_deinit(s);
}

/* --- what is in use */

/* Is the path in this entry of the folder? */
static bool
is_within(const char *path, const char *folder, const char *name)
{
	const size_t lead = strlen(folder), len = strlen(name);

	return lead > 0 && strncmp(path, folder, lead) == 0 && path[lead] == '/' &&
	    strncmp(path + lead + 1, name, len) == 0 && path[lead + 1 + len] == '/';
}

/* Who has a file open needs the directories above it. */
static void
mark(struct leftovers *l, dev_t device, ino_t inode, const char *path)
{
	for (size_t i = 0; i < l->count; i++) {
		struct leftover *o = &l->items[i];
		if ((o->entry.device == device && o->entry.inode == inode) ||
		    is_within(path, l->folder, o->name))
			o->used = true;
	}
}

/* What a link of /proc leads to. */
static void
mark_link(struct leftovers *l, int folder, const char *name)
{
	char path[4400];
	struct stat st;
	ssize_t len = readlinkat(folder, name, path, sizeof(path) - 1);

	path[len > 0 ? len : 0] = '\0';
	if (fstatat(folder, name, &st, 0) == 0)
		mark(l, st.st_dev, st.st_ino, path);
}

static void
mark_open(struct leftovers *l, int process)
{
	int fds = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fds < 0 ? NULL : fdopendir(fds);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (!is_dots(entry->d_name))
			mark_link(l, dirfd(d), entry->d_name);
	if (d)
		closedir(d);
	else if (fds >= 0)
		close(fds);
}

/* "BEGIN-END RIGHTS OFFSET MAJOR:MINOR INODE     PATH" */
static void
mark_mapped(struct leftovers *l, int process)
{
	char line[4400];
	unsigned long long inode;
	unsigned major_number, minor_number;
	int fd = openat(process, "maps", O_RDONLY | O_CLOEXEC), at = 0;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %*s %*s %x:%x %llu %n", &major_number, &minor_number, &inode,
			&at) == 3)
			mark(l, makedev(major_number, minor_number), (ino_t)inode, line + at);
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
}

/* Only processes of one's own show theirs, and only they can have what is one's own. */
static void
mark_used(struct leftovers *l)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		if (entry->d_name[strspn(entry->d_name, "0123456789")] != '\0')
			continue;
		int process = openat(dirfd(d), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (process < 0)
			continue;
		mark_link(l, process, "cwd");
		mark_open(l, process);
		mark_mapped(l, process);
		close(process);
	}
	if (d)
		closedir(d);
	/* Without it nobody knows. */
	for (size_t i = 0; !d && i < l->count; i++)
		l->items[i].used = true;
}

/* --- what may go */

static void
find_leftovers(const struct shm *s, struct leftovers *l)
{
	struct dirent *entry;
	struct stat st;
	DIR *d = list(s->fd);

	while (d && (entry = readdir(d)) && l->count < ENTRIES_MAX) {
		if (is_dots(entry->d_name) ||
		    fstatat(s->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    st.st_uid != geteuid() || was_there(s, &st))
			continue;
		struct leftover *items = bytes_grow(l->items, l->count, &l->room, sizeof(*items));
		if (!items)
			break;
		l->items = items;
		items[l->count] = (struct leftover){.entry = {st.st_dev, st.st_ino}};
		snprintf(items[l->count].name, sizeof(items->name), "%s", entry->d_name);
		l->count++;
	}
	if (d)
		closedir(d);
}

static void
clean(const struct shm *s)
{
	struct leftovers l = {.items = NULL};
	char own[64];

	snprintf(own, sizeof(own), "/proc/self/fd/%d", s->fd);
	ssize_t len = readlink(own, l.folder, sizeof(l.folder) - 1);
	l.folder[len > 0 ? len : 0] = '\0';
	find_leftovers(s, &l);
	if (l.count > 0)
		mark_used(&l);
	for (size_t i = 0; i < l.count; i++)
		if (!l.items[i].used)
			(void)!wild_remove(s->fd, l.items[i].name, NULL);
	free(l.items);
}

bool
shm_end(struct shm *s)
{
	if (s->fd < 0)
		return true;
	/* Whoever does not get it has none any more. */
	if (s->before && flock(s->fd, LOCK_EX | LOCK_NB) != 0)
		return false;
	if (s->before)
		clean(s);
	shm_deinit(s);
	return true;
}

void
shm_deinit(struct shm *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->before);
	*s = (struct shm){.fd = -1};
}
