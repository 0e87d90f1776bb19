#include "spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault.h"
#include "file.h"
#include "hex.h"

struct spool {
	char dir[1024];
	uint64_t quota;
	atomic_uint_least64_t used;
	atomic_uint next;
	atomic_bool dirty; /* names changed since the last directory sync */
	pthread_mutex_t lock; /* guards parts */
	struct spool_part *parts; /* under construction */
};

static void
path_of(const struct spool *s, const uint8_t task[16], char *out, size_t room)
{
	char hex[33];

	hex_encode(hex, task, 16);
	snprintf(out, room, "%s/%s.delta", s->dir, hex);
}

enum err
spool_open(struct spool **out, const char *dir, uint64_t quota, struct why *why)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(why, ERR_NOMEM, "no memory");
	s->quota = quota;
	pthread_mutex_init(&s->lock, NULL);
	enum err e = ERR_OK;
	if (snprintf(s->dir, sizeof(s->dir), "%s", dir) >= (int)sizeof(s->dir))
		e = err_set(why, ERR_LIMIT, "path too long: %s", dir);
	if (e == ERR_OK)
		e = file_mkdirs(dir, 0700, why);
	if (e) {
		spool_close(s);
		return e;
	}
	*out = s;
	return ERR_OK;
}

void
spool_close(struct spool *s)
{
	if (s)
		pthread_mutex_destroy(&s->lock);
	free(s);
}

static void
release(struct spool *s, struct spool_part *part)
{
	atomic_fetch_sub(&s->used, part->reserved);
	part->reserved = 0;
}

/* Ends incomplete transfers of the task: their room and quota are the newer one's. */
static void
supersede(struct spool *s, const uint8_t task[16])
{
	pthread_mutex_lock(&s->lock);
	for (struct spool_part *p = s->parts; p; p = p->next) {
		if (p->complete || p->superseded || memcmp(p->task, task, 16) != 0)
			continue;
		p->superseded = true;
		release(s, p);
		/* A piece being written just now may remain until the part is dropped. */
		if (ftruncate(p->fd, 0) != 0)
			continue;
	}
	pthread_mutex_unlock(&s->lock);
}

static void
link_part(struct spool *s, struct spool_part *part)
{
	pthread_mutex_lock(&s->lock);
	part->next = s->parts;
	s->parts = part;
	pthread_mutex_unlock(&s->lock);
}

/* Takes the part off the list, if it is on it. */
static void
unlink_part(struct spool *s, struct spool_part *part)
{
	pthread_mutex_lock(&s->lock);
	for (struct spool_part **at = &s->parts; *at; at = &(*at)->next)
		if (*at == part) {
			*at = part->next;
			break;
		}
	pthread_mutex_unlock(&s->lock);
}

static bool
reserve(struct spool *s, uint64_t bytes)
{
	uint64_t used = atomic_load(&s->used);

	do {
		if (s->quota > 0 && (used > s->quota || bytes > s->quota - used))
			return false;
	} while (!atomic_compare_exchange_weak(&s->used, &used, used + bytes));
	return true;
}

enum err
spool_begin(struct spool *s, const uint8_t task[16], uint64_t bytes, struct spool_part *part,
    struct why *why)
{
	char hex[33];

	*part = (struct spool_part){.fd = -1};
	memcpy(part->task, task, 16);
	supersede(s, task);
	if (!reserve(s, bytes))
		return err_set(why, ERR_NOSPACE, "the spool's quota is used up");
	part->reserved = bytes;
	hex_encode(hex, task, 16);
	snprintf(part->path, sizeof(part->path), "%s/%s.%u.part", s->dir, hex,
	    atomic_fetch_add(&s->next, 1));
	part->fd = open(part->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (part->fd >= 0) {
		link_part(s, part);
		return ERR_OK;
	}
	enum err e = err_errno(why, "create %s", part->path);
	release(s, part);
	return e;
}

enum err
spool_sync(struct spool *s, struct spool_part *part, struct why *why)
{
	pthread_mutex_lock(&s->lock);
	part->complete = !part->superseded;
	pthread_mutex_unlock(&s->lock);
	if (!part->complete)
		return err_set(why, ERR_AGAIN, "a newer transfer of this task has begun");
	return fdatasync(part->fd) == 0 ? ERR_OK : err_errno(why, "sync %s", part->path);
}

enum err
spool_accept(struct spool *s, struct spool_part *part, const uint8_t task[16], struct why *why)
{
	char path[1100];
	struct stat st;

	path_of(s, task, path, sizeof(path));
	/* Left by a commit that failed; no accepted row owns it, for this one's row came first. */
	bool left = stat(path, &st) == 0;
	if (rename(part->path, path) != 0)
		return err_errno(why, "rename %s", part->path);
	if (left)
		atomic_fetch_sub(&s->used, (uint64_t)st.st_size);
	atomic_store(&s->dirty, true);
	FAULT("spool.renamed");
	unlink_part(s, part);
	close(part->fd);
	part->fd = -1;
	part->reserved = 0;
	return ERR_OK;
}

void
spool_drop(struct spool *s, struct spool_part *part)
{
	unlink_part(s, part);
	if (part->fd >= 0) {
		close(part->fd);
		unlink(part->path);
		part->fd = -1;
	}
	release(s, part);
}

enum err
spool_sync_names(void *spool, struct why *why)
{
	struct spool *s = spool;

	if (!atomic_exchange(&s->dirty, false))
		return ERR_OK;
	FAULT("spool.names");
	enum err e = file_sync_dir(s->dir, why);
	if (e)
		atomic_store(&s->dirty, true);
	return e;
}

enum err
spool_read(struct spool *s, const uint8_t task[16], uint64_t bytes, int *fd, struct why *why)
{
	char path[1100];
	struct stat st;

	path_of(s, task, path, sizeof(path));
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return err_errno(why, "open %s", path);
	if (fstat(*fd, &st) == 0 && (uint64_t)st.st_size == bytes)
		return ERR_OK;
	close(*fd);
	*fd = -1;
	return err_set(
	    why, ERR_CORRUPT, "%s is not %llu bytes long", path, (unsigned long long)bytes);
}

void
spool_remove(struct spool *s, const uint8_t task[16], uint64_t bytes)
{
	char path[1100];

	path_of(s, task, path, sizeof(path));
	if (unlink(path) == 0)
		atomic_fetch_sub(&s->used, bytes);
}

/* Task id of an accepted file's name; false for any other name. */
static bool
accepted_name(const char *name, uint8_t task[16])
{
	return strlen(name) == 38 && strcmp(name + 32, ".delta") == 0 &&
	    hex_decode(task, 16, name, 32);
}

enum err
spool_recover(
    struct spool *s, bool (*keep)(void *ctx, const uint8_t task[16]), void *ctx, struct why *why)
{
	DIR *d = opendir(s->dir);
	struct dirent *ent;
	enum err e = ERR_OK;

	if (!d)
		return err_errno(why, "open %s", s->dir);
	while ((ent = readdir(d)) && e == ERR_OK) {
		uint8_t task[16];
		struct stat st;
		if (ent->d_name[0] == '.' || fstatat(dirfd(d), ent->d_name, &st, 0) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (accepted_name(ent->d_name, task) && keep(ctx, task))
			atomic_fetch_add(&s->used, (uint64_t)st.st_size);
		else if (unlinkat(dirfd(d), ent->d_name, 0) != 0)
			e = err_errno(why, "remove %s/%s", s->dir, ent->d_name);
	}
	closedir(d);
	return e;
}

uint64_t
spool_used(struct spool *s)
{
	return atomic_load(&s->used);
}

bool
spool_full(struct spool *s, uint64_t bytes)
{
	uint64_t used = atomic_load(&s->used);

	return s->quota > 0 && (bytes > s->quota || used > s->quota - bytes);
}
