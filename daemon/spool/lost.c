#include "lost.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "past_rows.h"
#include "report.h"
#include "row.h"
#include "spool_inside.h"
#include "store.h"

void
spool_lost_dir(const struct config *c, char *out)
{
	snprintf(
	    out, CONFIG_PATH_MAX + 16, "%s/lost", c->spool_path[0] ? c->spool_path : c->state_dir);
}

/* Calls fn with the path of each plain file. */
static void
each_file(const char *dir, void (*fn)(void *ctx, const char *path, uint64_t bytes), void *ctx)
{
	char path[PATH_MAX];
	struct dirent *ent;
	struct stat st;
	DIR *d = opendir(dir);

	while (d && (ent = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, ent->d_name);
		if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
			fn(ctx, path, (uint64_t)st.st_size);
	}
	if (d)
		closedir(d);
}

static void
add_file(void *ctx, const char *path, uint64_t bytes)
{
	struct lost_report *r = ctx;

	(void)path;
	r->files++;
	r->bytes += bytes;
}

void
spool_lost_report(const struct config *c, struct lost_report *out)
{
	char dir[CONFIG_PATH_MAX + 16];

	*out = (struct lost_report){.files = 0};
	spool_lost_dir(c, dir);
	each_file(dir, add_file, out);
	if (!c->spool_path[0])
		return;
	snprintf(dir, sizeof(dir), "%s/lost", c->state_dir);
	each_file(dir, add_file, out);
}

static bool
is_delta(const char *path)
{
	return strstr(strrchr(path, '/'), SUFFIX_DELTA ".") != NULL;
}

static void
add_delta(void *ctx, const char *path, uint64_t bytes)
{
	*(uint64_t *)ctx += is_delta(path) ? bytes : 0;
}

uint64_t
spool_lost_found(const struct spool *s)
{
	return s->lost_found;
}

void
spool_lost_count(struct spool *s)
{
	uint64_t now = 0;

	each_file(s->lost, add_delta, &now);
	uint64_t before = atomic_exchange(&s->lost_bytes, now);
	/* Modulo 2^64: what went is subtracted. */
	atomic_fetch_add(&s->used, now - before);
}

/* --- erasure */

struct removal {
	struct spool *s;
	const uint8_t *device;
	uint64_t *count;
	enum err e;
	struct why *why;
};

static enum err
is_of(const struct removal *r, const char *path, bool *is)
{
	struct delta_file f;
	struct manifest m;

	*is = false;
	enum err e = delta_file_open(&f, path, O_RDONLY, spool_key(r->s), r->why);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	e = manifest_decode(&m, f.manifest, MANIFEST_LEN, r->why);
	*is = !e && memcmp(m.device, r->device, sizeof(m.device)) == 0;
	delta_file_close(&f);
	return e;
}

static void
remove_if(void *ctx, const char *path, uint64_t bytes)
{
	struct removal *r = ctx;
	bool is = false;

	(void)bytes;
	if (!is_delta(path))
		return;
	enum err e = is_of(r, path, &is);
	if (!e && is && unlink(path) != 0)
		e = err_errno(r->why, "remove %s", path);
	*r->count += !e && is;
	r->e = r->e ? r->e : e;
}

enum err
spool_lost_remove_device(
    struct spool *s, const uint8_t device[32], uint64_t *count, struct why *why)
{
	struct removal r = {s, device, count, ERR_OK, why};

	each_file(s->lost, remove_if, &r);
	return r.e;
}

/* --- what the database explains */

struct question {
	const struct manifest *m;
	bool found;
};

static enum err
find_row(struct store_db *db, void *arg, struct why *why)
{
	struct store_accept row = {.report = NULL};
	struct question *q = arg;

	(void)why;
	enum err e = store_accept_get(db, q->m->job, q->m->round, q->m->device, &row);
	q->found = !e && memcmp(row.task, q->m->task, sizeof(row.task)) == 0;
	/* A job that was deleted took its rows along first. */
	q->found |= e == ERR_NOTFOUND && store_delete_known(db, q->m->job) == ERR_OK;
	free(row.report);
	return ERR_OK;
}

bool
spool_lost_has_row(struct store *store, const struct manifest *m)
{
	struct question q = {.m = m};

	return !store_read(store, find_row, &q, NULL) && q.found;
}
