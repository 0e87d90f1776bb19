#include "watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "config.h"
#include "drive.h"
#include "engine.h"
#include "file.h"
#include "health.h"
#include "keys.h"
#include "log.h"
#include "lost.h"
#include "orphan.h"
#include "reserve.h"
#include "services.h"
#include "shared.h"
#include "spool.h"
#include "store.h"
#include "usage.h"
#include "wake.h"

#define EVERY_S 2
#define FORECAST_EVERY 5 /* looks */
#define KEYS_EVERY 2
#define KEYS_FAULTS 2 /* in a row */
#define PROBE_BYTES 4096
#define PROBE_FILES 8
#define PROBE_MEMORY ((uint64_t)1 << 20)
#define FREE_MIN ((uint64_t)64 << 10) /* a disk with less is full */

struct watch {
	const struct services *services;
	pthread_t id;
	bool running;
	pthread_mutex_t lock; /* of stopping */
	pthread_cond_t wake;
	bool stopping;
	unsigned looks, keys_faults; /* used by the thread alone */
};

/* --- looking */

static void
folder_path(const struct watch *h, const char *name, char *out, size_t room)
{
	snprintf(out, room, "%s%s", h->services->fixed->state_dir, name);
}

/* Asks the file system whether it can be written and has so many bytes free, which is cheap enough for every look. */
static enum err
look_at(const char *path, uint64_t need, struct why *why)
{
	struct statvfs v;

	if (statvfs(path, &v) != 0)
		return err_errno(why, "%s", path);
	uint64_t room = (uint64_t)v.f_bavail * v.f_frsize;
	if (v.f_flag & ST_RDONLY)
		return err_set(why, ERR_READONLY, "%s is on a read-only file system", path);
	/* Some file systems, such as those of containers, do not tell. */
	if (v.f_blocks > 0 && room < need)
		return err_set(why, ERR_NOSPACE, "%s: %llu bytes are free, %llu are needed", path,
		    (unsigned long long)room, (unsigned long long)need);
	return ERR_OK;
}

/* Writes a test file in the folder; it is unlinked before it is written, so that no file stays whatever happens. */
static enum err
write_probe(const char *folder, struct why *why)
{
	static const uint8_t bytes[PROBE_BYTES];
	char path[CONFIG_PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/probe.tmp", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(why, "create %s", path);
	unlink(path);
	enum err e = file_pwrite(fd, bytes, sizeof(bytes), 0);
	if (e)
		err_errno(why, "write %s", path);
	else if (fdatasync(fd) != 0)
		e = err_errno(why, "sync %s", path);
	close(fd);
	return e;
}

static enum err
open_files(struct why *why)
{
	int fds[PROBE_FILES];
	unsigned n = 0;
	enum err e = ERR_OK;

	while (n < PROBE_FILES && !e) {
		fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fds[n] < 0)
			e = err_errno(why, "open /dev/null");
		else
			n++;
	}
	while (n > 0)
		close(fds[--n]);
	return e;
}

static enum err
take_memory(uint64_t need, struct why *why)
{
	uint64_t bytes = need > PROBE_MEMORY ? need : PROBE_MEMORY;
	/* volatile: a compiler may leave out an allocation that nobody uses. */
	char *volatile p = malloc(bytes);
	bool had = p != NULL;

	free(p);
	return had ? ERR_OK
		   : err_set(why, ERR_NOMEM, "%llu bytes of memory cannot be had",
			 (unsigned long long)bytes);
}

static enum err
write_row(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_meta_put(db, "probe", *(uint64_t *)arg);
}

/* Tries everything that a round needs: descriptors, memory, disk, database. */
static enum err
try_all(struct watch *h, uint64_t memory, uint64_t disk, struct why *why)
{
	static const char *const folders[] = {"", "/models", NULL};
	char path[CONFIG_PATH_MAX + 16];
	uint64_t now = clock_ms();
	enum err e = open_files(why);

	if (!e)
		e = take_memory(memory, why);
	for (unsigned i = 0; i < sizeof(folders) / sizeof(*folders) && !e; i++) {
		if (folders[i])
			folder_path(h, folders[i], path, sizeof(path));
		else
			snprintf(path, sizeof(path), "%s", spool_dir(h->services->spool));
		e = look_at(path, disk + FREE_MIN, why);
		if (!e)
			e = write_probe(path, why);
	}
	return e ? e : store_write(h->services->store, write_row, &now, why);
}

static void
recovered(struct watch *h)
{
	enum wait_reason reason;
	double seconds = health_clear(h->services->health, &reason);

	log_event(LOG_LEVEL_INFO, "health.recovered", LOG_S("reason", wait_reason_name(reason)),
	    LOG_D("seconds", seconds));
	spool_orphan_release(h->services->spool, h->services->store);
	rounds_retry(h->services->engine);
	wake_ring(&h->services->wake);
}

/* What the disk holds is told during a fault, too: then more than ever. */
static void
look_now_and_then(struct watch *h, bool ready)
{
	if (h->looks++ % FORECAST_EVERY != 0)
		return;
	usage_watch_look(h->services->usage, h->services);
	if (ready)
		engine_delete_old(h->services->engine);
}

static void
keep_reserve(const struct services *s)
{
	const struct config *c = shared_take(s->config);
	uint64_t bytes = c->reserve;

	shared_give(s->config, c);
	if (s->reserve)
		reserve_keep(s->reserve, bytes);
}

/* Warns if keys/ has become unusable: a running coordinator has its keys in memory, but its next start or reload would fail. Only when
 * found twice, as somebody may be replacing the keys. */
static void
look_at_keys(struct watch *h)
{
	struct services_ca *ca = NULL;
	struct why why = {""};

	enum err e = keys_check(h->services->fixed->state_dir, &ca, &why);
	keys_free_ca(ca);
	if (!e && h->keys_faults >= KEYS_FAULTS)
		log_event(LOG_LEVEL_INFO, "keys.mended", LOG_S("why", "all are there and fit"));
	if (!e)
		h->keys_faults = 0;
	else if (e == ERR_NOMEM || e == ERR_FILES)
		return;
	else if (h->keys_faults < KEYS_FAULTS && ++h->keys_faults == KEYS_FAULTS)
		log_event(LOG_LEVEL_ERROR, "keys.damaged", LOG_S("why", why.text),
		    LOG_S("todo",
			"put it back (\"rivuletd keys import FILE\"): this coordinator "
			"goes on, and would not start again"));
}

static void
look(struct watch *h)
{
	char path[CONFIG_PATH_MAX + 16];
	struct why why = {""}, gone = {""};

	folder_path(h, "", path, sizeof(path));
	enum wait_reason reason = health_reason(h->services->health);
	if (!reason) {
		health_note(h->services->health, look_at(path, FREE_MIN, &why), 0, why.text);
		health_note(
		    h->services->health, store_is_there(h->services->store, &gone), 0, gone.text);
		spool_lost_count(h->services->spool);
		look_now_and_then(h, true);
		if (h->looks % KEYS_EVERY == 0)
			look_at_keys(h);
		keep_reserve(h->services);
		store_fill(h->services->store);
		rounds_look_after(h->services->engine);
		return;
	}
	look_now_and_then(h, false);
	uint64_t need = health_need(h->services->health);
	bool memory = reason == WAIT_NO_MEMORY;
	enum err e = try_all(h, memory ? need : 0, memory ? 0 : need, &why);
	if (!e)
		recovered(h);
	else if (e != ERR_CLOSED)
		health_set(h->services->health, health_reason_of(e), 0, why.text);
}

/* Waits for the next look. False: the thread is to end. */
static bool
wait_a_while(struct watch *h)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += EVERY_S;
	pthread_mutex_lock(&h->lock);
	/* A wall clock that is set back would put off the next look by as much. */
	while (!h->stopping &&
	    pthread_cond_clockwait(&h->wake, &h->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	bool stopping = h->stopping;
	pthread_mutex_unlock(&h->lock);
	return !stopping;
}

static void *
run(void *arg)
{
	while (wait_a_while(arg))
		look(arg);
	return NULL;
}

enum err
watch_new(struct watch **out, const struct services *services, struct why *why)
{
	struct watch *h = calloc(1, sizeof(*h));

	if (!h)
		return err_set(why, ERR_NOMEM, "no memory");
	h->services = services;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->wake, NULL);
	h->running = pthread_create(&h->id, NULL, run, h) == 0;
	if (!h->running) {
		watch_free(h);
		return err_set(why, ERR_NOMEM, "cannot start a thread");
	}
	*out = h;
	return ERR_OK;
}

void
watch_stop(struct watch *h)
{
	if (!h || !h->running)
		return;
	pthread_mutex_lock(&h->lock);
	h->stopping = true;
	pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->id, NULL);
	h->running = false;
}

void
watch_free(struct watch *h)
{
	if (!h)
		return;
	watch_stop(h);
	pthread_cond_destroy(&h->wake);
	pthread_mutex_destroy(&h->lock);
	free(h);
}
