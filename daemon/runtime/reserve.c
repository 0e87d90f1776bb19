#include "reserve.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "log.h"

#define SLICES 16

struct reserve {
	pthread_mutex_t lock; /* of all below */
	char path[1100];
	uint64_t held, wanted;
};

enum err
reserve_new(struct reserve **out, const char *path)
{
	struct reserve *r = calloc(1, sizeof(*r));
	struct stat st;

	if (!r)
		return ERR_NOMEM;
	if (strlen(path) >= sizeof(r->path)) {
		free(r);
		return ERR_LIMIT;
	}
	pthread_mutex_init(&r->lock, NULL);
	strcpy(r->path, path);
	/* What a crash left half made holds less than its size. */
	if (stat(path, &st) == 0)
		r->held =
		    (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size ? 0 : (uint64_t)st.st_size;
	r->wanted = r->held;
	*out = r;
	return ERR_OK;
}

void
reserve_free(struct reserve *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* Makes the file smaller, for which nothing has to be written. Lock held. */
static bool
shrink(struct reserve *r, uint64_t to)
{
	bool done = to ? truncate(r->path, (off_t)to) == 0 : unlink(r->path) == 0;

	if (done)
		r->held = to;
	return done;
}

bool
reserve_give(void *reserve)
{
	struct reserve *r = reserve;

	pthread_mutex_lock(&r->lock);
	uint64_t slice = r->wanted / SLICES + 1;
	bool whole = r->held == r->wanted;
	bool given = r->held > 0 && shrink(r, r->held > slice ? r->held - slice : 0);
	uint64_t left = r->held;
	pthread_mutex_unlock(&r->lock);
	if (given && (whole || left == 0))
		log_event(LOG_LEVEL_WARN, "reserve.used", LOG_U("left", left),
		    LOG_S("why", "the disk is full, and an administrator frees room"));
	return given;
}

static bool
has_room(const struct reserve *r, uint64_t more)
{
	char dir[sizeof(r->path)];
	struct statvfs v;

	strcpy(dir, r->path);
	*strrchr(dir, '/') = '\0';
	/* Without blocks it does not tell, as in some containers: then it need not be asked for either. */
	return statvfs(dir, &v) == 0 && v.f_blocks > 0 &&
	    (uint64_t)v.f_bavail * v.f_frsize >= more + r->wanted;
}

/* Lock held. */
static void
grow(struct reserve *r)
{
	int fd = open(r->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool made = fd >= 0 && posix_fallocate(fd, 0, (off_t)r->wanted) == 0;

	if (fd >= 0)
		close(fd);
	if (made)
		r->held = r->wanted;
	else if (fd >= 0)
		(void)shrink(r, r->held);
}

void
reserve_keep(struct reserve *r, uint64_t bytes)
{
	pthread_mutex_lock(&r->lock);
	r->wanted = bytes;
	if (r->held > bytes)
		(void)shrink(r, bytes);
	else if (r->held < bytes && has_room(r, bytes - r->held))
		grow(r);
	pthread_mutex_unlock(&r->lock);
}

uint64_t
reserve_held(struct reserve *r)
{
	pthread_mutex_lock(&r->lock);
	uint64_t held = r->held;
	pthread_mutex_unlock(&r->lock);
	return held;
}
