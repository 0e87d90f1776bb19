#include "archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "fault.h"
#include "file.h"
#include "hex.h"
#include "log.h"
#include "report.h"

#define SUFFIX ".delta"

struct item {
	uint8_t task[16];
	uint64_t bytes;
	int64_t at; /* the file's date, nanoseconds; ascending in the order in which deltas came */
};

struct archive {
	char dir[PATH_MAX - 64];
	struct spool *spool;
	pthread_mutex_t lock; /* of all below */
	struct item *items; /* [first, end), oldest first */
	size_t first, end, room;
	uint64_t bytes;
	uint64_t dropped, dropped_bytes; /* deltas removed since that was last logged */
};

static void
path_of(const struct archive *k, const uint8_t task[16], char out[PATH_MAX])
{
	char hex[33];

	hex_encode(hex, task, 16);
	snprintf(out, PATH_MAX, "%s/%s" SUFFIX, k->dir, hex);
}

static int64_t
time_of(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Adds an item for a file. Lock held, except at the start. */
static enum err
add_item(struct archive *k, const uint8_t task[16], const struct stat *st)
{
	/* What was removed at the front makes room first, if it is worth moving the others. */
	if (k->end == k->room && k->first > k->room / 2) {
		memmove(k->items, k->items + k->first, (k->end - k->first) * sizeof(*k->items));
		k->end -= k->first;
		k->first = 0;
	}
	struct item *grown = bytes_grow(k->items, k->end, &k->room, sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	k->items = grown;
	struct item *n = &k->items[k->end++];
	*n = (struct item){.bytes = (uint64_t)st->st_size, .at = time_of(st)};
	memcpy(n->task, task, 16);
	k->bytes += n->bytes;
	return ERR_OK;
}

/* --- at start */

static int
compare_age(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return memcmp(x->task, y->task, sizeof(x->task));
}

static enum err
scan(struct archive *k, DIR *d)
{
	const struct dirent *ent;
	uint8_t task[16];
	struct stat st;
	enum err e = ERR_OK;

	while (!e && (ent = readdir(d)))
		if (strlen(ent->d_name) == 32 + sizeof(SUFFIX) - 1 &&
		    strcmp(ent->d_name + 32, SUFFIX) == 0 &&
		    hex_decode(task, sizeof(task), ent->d_name, 32) &&
		    fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			e = add_item(k, task, &st);
	if (k->end > 0)
		qsort(k->items, k->end, sizeof(*k->items), compare_age);
	return e;
}

enum err
archive_open(struct archive **out, const char *dir, struct spool *spool, struct why *why)
{
	struct archive *k = calloc(1, sizeof(*k));

	if (!k || strlen(dir) >= sizeof(k->dir)) {
		free(k);
		return err_set(why, ERR_NOMEM, "no memory, or the path %.60s is too long", dir);
	}
	memcpy(k->dir, dir, strlen(dir) + 1);
	k->spool = spool;
	pthread_mutex_init(&k->lock, NULL);
	enum err e = file_mkdirs(dir, 0700, why);
	DIR *d = e ? NULL : opendir(dir);
	if (!e)
		e = d ? scan(k, d) : err_errno(why, "open %s", dir);
	if (d)
		closedir(d);
	if (e)
		archive_close(k);
	else
		*out = k;
	return e;
}

void
archive_close(struct archive *k)
{
	if (!k)
		return;
	pthread_mutex_destroy(&k->lock);
	free(k->items);
	free(k);
}

/* --- at work */

/* Removes the oldest deltas until there is room for so many bytes more. Lock held. */
static void
drop_oldest(struct archive *k, uint64_t limit, uint64_t more)
{
	char path[PATH_MAX];

	while (limit > 0 && k->bytes + more > limit && k->first < k->end) {
		const struct item *n = &k->items[k->first++];
		path_of(k, n->task, path);
		unlink(path);
		k->bytes -= n->bytes;
		k->dropped++;
		k->dropped_bytes += n->bytes;
	}
}

/* If the file's date is not after that of the file before, as the clock was changed, sets it so: otherwise the next start would take the
 * file for older, as it does if the date cannot be set. Lock held. */
static void
keep_order(const struct archive *k, const char *path, struct stat *st)
{
	if (k->first == k->end || time_of(st) > k->items[k->end - 1].at)
		return;
	const int64_t at = k->items[k->end - 1].at + 1;
	st->st_mtim =
	    (struct timespec){.tv_sec = (time_t)(at / 1000000000), .tv_nsec = at % 1000000000};
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
	(void)!utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

enum err
archive_add(struct archive *k, const uint8_t task[16], uint64_t limit, struct why *why)
{
	char path[PATH_MAX];
	uint64_t bytes;
	struct stat st;

	path_of(k, task, path);
	enum err e = spool_size(k->spool, task, &bytes, why);
	/* One that alone is too long is not kept, and drives nobody out. */
	if (e || (limit > 0 && bytes > limit))
		return e;
	pthread_mutex_lock(&k->lock);
	drop_oldest(k, limit, bytes);
	pthread_mutex_unlock(&k->lock);
	e = spool_move(k->spool, task, path, why);
	FAULT("keep.moved");
	if (e)
		return e;
	pthread_mutex_lock(&k->lock);
	e = stat(path, &st) == 0 ? ERR_OK : ERR_NOTFOUND;
	if (!e)
		keep_order(k, path, &st);
	if (!e)
		e = add_item(k, task, &st);
	pthread_mutex_unlock(&k->lock);
	return e;
}

enum err
archive_sync(struct archive *k, struct why *why)
{
	pthread_mutex_lock(&k->lock);
	const uint64_t dropped = k->dropped, bytes = k->dropped_bytes;
	k->dropped = k->dropped_bytes = 0;
	pthread_mutex_unlock(&k->lock);
	if (dropped > 0)
		log_event(LOG_LEVEL_INFO, "deltas.deleted", LOG_U("deltas", dropped),
		    LOG_U("bytes", bytes),
		    LOG_S("why", "kept/ was above [retention] keep_deltas_bytes"));
	return file_sync_dir(k->dir, why);
}

enum err
archive_read(struct archive *k, const uint8_t task[16], struct delta_file *file, struct why *why)
{
	char path[PATH_MAX];

	path_of(k, task, path);
	return delta_file_open(file, path, O_RDONLY, spool_key(k->spool), why);
}

/* Removes item i and its file; the item also if the file is missing. Lock held. */
static enum err
remove_at(struct archive *k, size_t i)
{
	char path[PATH_MAX];
	enum err e = ERR_OK;

	path_of(k, k->items[i].task, path);
	if (unlink(path) != 0)
		e = err_errno(NULL, "unlink %s", path);
	if (!e || e == ERR_NOTFOUND) {
		k->bytes -= k->items[i].bytes;
		memmove(&k->items[i], &k->items[i + 1], (k->end - i - 1) * sizeof(*k->items));
		k->end--;
	}
	return e;
}

/* The index of the task's item; k->end if there is none. Lock held. */
static size_t
place_of(const struct archive *k, const uint8_t task[16])
{
	size_t i = k->first;

	while (i < k->end && memcmp(k->items[i].task, task, 16) != 0)
		i++;
	return i;
}

enum err
archive_find(struct archive *k, const uint8_t task[16])
{
	pthread_mutex_lock(&k->lock);
	bool found = place_of(k, task) < k->end;
	pthread_mutex_unlock(&k->lock);
	return found ? ERR_OK : ERR_NOTFOUND;
}

enum err
archive_remove(struct archive *k, const uint8_t task[16])
{
	pthread_mutex_lock(&k->lock);
	size_t i = place_of(k, task);
	enum err e = i == k->end ? ERR_NOTFOUND : remove_at(k, i);
	pthread_mutex_unlock(&k->lock);
	return e;
}

/* Is the kept delta this device's? */
static enum err
is_of(
    struct archive *k, const uint8_t task[16], const uint8_t device[32], bool *is, struct why *why)
{
	struct delta_file f;
	struct manifest m;

	*is = false;
	enum err e = archive_read(k, task, &f, why);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	e = manifest_decode(&m, f.manifest, MANIFEST_LEN, why);
	*is = !e && memcmp(m.device, device, sizeof(m.device)) == 0;
	delta_file_close(&f);
	return e;
}

enum err
archive_remove_device(struct archive *k, const uint8_t device[32], uint64_t *count, struct why *why)
{
	enum err first = ERR_OK;
	struct why said = {""};
	bool is;

	*count = 0;
	pthread_mutex_lock(&k->lock);
	for (size_t i = k->end; i-- > k->first;) {
		enum err e = is_of(k, k->items[i].task, device, &is, &said);
		if (!e && is) {
			e = remove_at(k, i);
			*count += !e;
		}
		if (e && e != ERR_NOTFOUND && !first)
			first = err_set(
			    why, e, "a kept delta: %.200s", said.text[0] ? said.text : err_name(e));
	}
	pthread_mutex_unlock(&k->lock);
	return first;
}

void
archive_report(struct archive *k, struct archive_report *out)
{
	pthread_mutex_lock(&k->lock);
	*out = (struct archive_report){.deltas = k->end - k->first, .used_bytes = k->bytes};
	pthread_mutex_unlock(&k->lock);
}
