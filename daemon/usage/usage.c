#include "usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "archive.h"
#include "config.h"
#include "engine.h"
#include "log.h"
#include "lost.h"
#include "report.h"
#include "services.h"
#include "shared.h"
#include "spool.h"
#include "view.h"

/* Bytes and number of the files in a folder; 0 for a missing folder. */
static uint64_t
folder_bytes(const char *dir, const char *name, uint64_t *count)
{
	char path[CONFIG_PATH_MAX + 16];
	struct dirent *ent;
	struct stat st;
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	DIR *d = opendir(path);
	*count = 0;
	while (d && (ent = readdir(d))) {
		if (fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		bytes += (uint64_t)st.st_size;
		++*count;
	}
	if (d)
		closedir(d);
	return bytes;
}

static uint64_t
database_bytes(const char *dir)
{
	static const char *const names[] = {"rivulet.db", "rivulet.db-wal", "rivulet.db-shm"};
	char path[CONFIG_PATH_MAX + 32];
	struct stat st;
	uint64_t bytes = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (stat(path, &st) == 0)
			bytes += (uint64_t)st.st_size;
	}
	return bytes;
}

static uint64_t
may_keep(const struct services *s, uint64_t kept)
{
	const struct config *c = shared_take(s->config);
	uint64_t most = c->keep_deltas_bytes ? c->keep_deltas_bytes : UINT64_MAX;
	bool keeps = c->keep_deltas;

	shared_give(s->config, c);
	if (!keeps || most <= kept)
		return 0;
	return most == UINT64_MAX ? most : most - kept;
}

struct job_forecast
usage_forecast(const struct usage *u, const struct job_view *job)
{
	struct job_forecast f = job->forecast;

	if (!u->spool_on_disk)
		f.spool_bytes = 0;
	if (f.deltas_bytes > u->keep_bytes)
		f.deltas_bytes = u->keep_bytes;
	return f;
}

uint64_t
usage_bytes(const struct job_forecast *f)
{
	return f->models_bytes + f->spool_bytes + f->deltas_bytes + f->database_bytes;
}

/* Bytes that all jobs will still take. Kept deltas of all jobs have one limit. */
static uint64_t
needed(const struct services *s, const struct usage *u)
{
	struct engine_slice slice = {.device = NULL};
	uint64_t sum = 0, deltas = 0;

	while (engine_jobs(s->engine, &slice))
		for (size_t i = 0; i < slice.count; i++) {
			struct job_forecast f = usage_forecast(u, &slice.jobs[i]);
			deltas += f.deltas_bytes;
			sum += usage_bytes(&f) - f.deltas_bytes;
		}
	return sum + (deltas < u->keep_bytes ? deltas : u->keep_bytes);
}

enum err
usage_read(const struct services *s, struct usage *out, struct why *why)
{
	const char *dir = s->fixed->state_dir;
	struct archive_report kept;
	struct statvfs v;

	*out = (struct usage){.spool_bytes = spool_used(s->spool)};
	if (statvfs(dir, &v) != 0)
		return err_errno(why, "%s", dir);
	out->total_bytes = (uint64_t)v.f_blocks * v.f_frsize;
	out->free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
	out->models_bytes = folder_bytes(dir, "models", &out->model_files);
	archive_report(s->archive, &kept);
	out->kept_bytes = kept.used_bytes;
	out->database_bytes = database_bytes(dir);
	out->keep_bytes = may_keep(s, kept.used_bytes);
	out->spool_on_disk = !spool_in_memory(s->spool);
	spool_lost_report(s->fixed, &out->lost);
	out->need_bytes = needed(s, out);
	return ERR_OK;
}

bool
usage_fits(const struct usage *u, uint64_t bytes)
{
	return u->total_bytes == 0 || bytes <= u->free_bytes;
}

struct usage_watch {
	pthread_mutex_t lock;
	bool known, tight;
	struct usage last;
};

enum err
usage_watch_new(struct usage_watch **out)
{
	struct usage_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return ERR_NOMEM;
	pthread_mutex_init(&w->lock, NULL);
	*out = w;
	return ERR_OK;
}

void
usage_watch_free(struct usage_watch *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void
usage_watch_look(struct usage_watch *w, const struct services *s)
{
	struct usage u;

	if (!w || usage_read(s, &u, NULL))
		return;
	const bool tight = !usage_fits(&u, u.need_bytes);
	pthread_mutex_lock(&w->lock);
	const bool turned = tight != w->tight;
	w->last = u;
	w->known = true;
	w->tight = tight;
	pthread_mutex_unlock(&w->lock);
	if (turned)
		log_event(tight ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
		    tight ? "disk.forecast" : "disk.fits", LOG_U("need", u.need_bytes),
		    LOG_U("free", u.free_bytes),
		    LOG_S("why",
			tight ? "the jobs need more than is free; rivulet status says which" : ""));
}

bool
usage_watch_last(struct usage_watch *w, struct usage *out)
{
	*out = (struct usage){.total_bytes = 0};
	if (!w)
		return false;
	pthread_mutex_lock(&w->lock);
	*out = w->last;
	const bool known = w->known;
	pthread_mutex_unlock(&w->lock);
	return known;
}
