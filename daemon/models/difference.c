#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "difference.h"
#include "err.h"
#include "fault.h"
#include "file.h"
#include "hash.h"
#include "models_inside.h"

/* As many as a task offers: ENGINE_DIFFERENCES. */
#define STEPS_MAX 16

enum err
models_difference_write(struct models *m, struct difference *d, const void *payload,
    struct models_file **out, struct why *why)
{
	uint8_t head[DIFFERENCE_HEAD], hash[HASH_LEN];
	struct models_file *f = NULL;

	enum err e = hash_bytes(d->payload_hash, payload, d->payload_bytes, m->stop);
	if (e)
		return err_set(why, e, "hash of a difference: %s", err_name(e));
	difference_encode(head, d);
	hash_sha256(d->tag, head, DIFFERENCE_TAGGED);
	difference_encode(head, d);
	e = models_file_begin(m, &f, why);
	if (!e)
		e = models_file_add(f, head, sizeof(head), why);
	if (!e)
		e = models_file_add(f, payload, d->payload_bytes, why);
	if (!e)
		e = models_file_end(f, hash, why);
	if (e)
		models_file_drop(f);
	else
		*out = f;
	return e;
}

enum err
models_difference_put(struct models *m, struct difference *d, const void *payload, struct why *why)
{
	struct models_file *f = NULL;

	enum err e = models_difference_write(m, d, payload, &f, why);
	if (!e)
		e = models_file_keep(f, MODELS_KIND_DIFFERENCE, d->to, why);
	models_file_drop(f);
	return e;
}

/* Checks the head of a file of `bytes` bytes, which must lead to the model `to`. */
static enum err
check_head(const uint8_t head[DIFFERENCE_HEAD], uint64_t bytes, const uint8_t to[32],
    struct difference *out, struct why *why)
{
	uint8_t tag[HASH_LEN];

	if (bytes < DIFFERENCE_HEAD || difference_decode(out, head, DIFFERENCE_HEAD, why))
		return err_set(why, ERR_CORRUPT, "it is not a difference");
	hash_sha256(tag, head, DIFFERENCE_TAGGED);
	if (memcmp(tag, out->tag, sizeof(tag)) != 0 || memcmp(out->to, to, 32) != 0 ||
	    bytes != DIFFERENCE_HEAD + out->payload_bytes)
		return err_set(why, ERR_CORRUPT, "its head, length or model does not fit");
	return ERR_OK;
}

/* Reads and checks head and length of an open file. */
static enum err
read_head(int fd, const uint8_t to[32], struct difference *out, struct why *why)
{
	uint8_t head[DIFFERENCE_HEAD];
	struct stat st;

	if (fstat(fd, &st) != 0 || file_pread(fd, head, sizeof(head), 0))
		return err_set(why, ERR_CORRUPT, "it is not a difference");
	return check_head(head, (uint64_t)st.st_size, to, out, why);
}

static enum err
open_step(struct models *m, const uint8_t to[32], int *fd, struct difference *out, struct why *why)
{
	char path[PATH_MAX];

	models_path(m, to, MODELS_DIFFERENCE, path);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return err_errno(why, "open %s", path);
	enum err e = read_head(*fd, to, out, why);
	if (e)
		close(*fd);
	return e;
}

enum err
models_difference_head(
    struct models *m, const uint8_t to[32], struct difference *out, struct why *why)
{
	int fd;

	enum err e = open_step(m, to, &fd, out, why);
	if (!e)
		close(fd);
	return e;
}

/* A payload is hashed the first time in a process, and when somebody has written to its file since. */
static enum err
check_payload(struct models *m, const struct difference *d, const uint8_t *payload,
    const struct stamp *stamp, struct why *why)
{
	uint8_t hash[HASH_LEN];

	if (models_judged(m, d->to, MODELS_DIFFERENCE, stamp) == MODELS_SOUND)
		return ERR_OK;
	enum err e = hash_bytes(hash, payload, d->payload_bytes, m->stop);
	if (e)
		return err_set(why, e, "hash of a difference: %s", err_name(e));
	if (memcmp(hash, d->payload_hash, sizeof(hash)) != 0)
		return err_set(why, ERR_CORRUPT, "a difference does not match its hash");
	models_found(m, d->to, MODELS_DIFFERENCE, stamp, true);
	return ERR_OK;
}

/* Reads a whole difference to `at`, where `room` bytes are; *bytes is its length. */
static enum err
read_step(struct models *m, const uint8_t to[32], uint8_t *at, uint64_t room, uint64_t *bytes,
    struct why *why)
{
	struct stamp stamp;
	struct difference d;
	char path[PATH_MAX];
	int fd;

	models_path(m, to, MODELS_DIFFERENCE, path);
	enum err e = stamp_of(path, &stamp, why);
	e = e ? e : open_step(m, to, &fd, &d, why);
	if (e)
		return e;
	*bytes = DIFFERENCE_HEAD + d.payload_bytes;
	e = *bytes <= room ? file_pread(fd, at, *bytes, 0)
			   : err_set(why, ERR_CORRUPT, "a difference has changed");
	close(fd);
	return e ? e : check_payload(m, &d, at + DIFFERENCE_HEAD, &stamp, why);
}

/* The way back from `to` to `from`: ids[0] is `to`, ids[i] the model that difference i - 1 begins with; *bytes: all *count differences. */
static enum err
find_way(struct models *m, const uint8_t to[32], const uint8_t from[32], uint8_t (*ids)[32],
    size_t *count, uint64_t *bytes)
{
	char path[PATH_MAX];
	struct difference d;
	uint8_t job[sizeof(d.job)];
	struct stat st;

	models_path(m, to, "", path);
	if (stat(path, &st) != 0)
		return err_errno(NULL, "stat");
	memcpy(ids[0], to, 32);
	for (*count = 0, *bytes = 0; *count <= STEPS_MAX; ++*count) {
		if (*count > 0 && memcmp(ids[*count], from, 32) == 0)
			return ERR_OK;
		if (*count == STEPS_MAX)
			break;
		enum err e = models_difference_head(m, ids[*count], &d, NULL);
		if (e)
			return e;
		/* Who may read a model of one job need not read those of another that it began with. */
		if (*count == 0)
			memcpy(job, d.job, sizeof(job));
		else if (memcmp(job, d.job, sizeof(job)) != 0)
			return ERR_NOTFOUND;
		*bytes += DIFFERENCE_HEAD + d.payload_bytes;
		if (*bytes >= (uint64_t)st.st_size)
			return ERR_NOTFOUND;
		memcpy(ids[*count + 1], d.from, 32);
	}
	return ERR_NOTFOUND;
}

/* Counts the bytes of a map before they are allocated. If there is no room, the device fetches the whole model from its file. */
static bool
take_room(struct models *m, struct models_map *map)
{
	uint64_t before = atomic_fetch_add(&m->joined, map->bytes);

	if (before > m->joined_max || map->bytes > m->joined_max - before) {
		atomic_fetch_sub(&m->joined, map->bytes);
		return false;
	}
	map->joined = m;
	return true;
}

/* Concatenates several differences, which are as many files, in memory. */
static enum err
read_way(
    struct models *m, uint8_t (*ids)[32], size_t count, struct models_map *map, struct why *why)
{
	uint64_t at = 0, bytes = 0;
	enum err e = ERR_OK;

	if (!take_room(m, map))
		return err_set(why, ERR_NOTFOUND, "too many differences are put together at once");
	uint8_t *data =
	    mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		return err_set(why, ERR_NOMEM, "no memory for a difference");
	map->data = data;
	for (size_t i = count; i-- > 0 && !e; at += bytes)
		e = read_step(m, ids[i], data + at, map->bytes - at, &bytes, why);
	return e;
}

/* Maps one difference, the usual case. */
static enum err
map_step(struct models *m, struct models_map *map, struct why *why)
{
	char path[PATH_MAX];
	struct difference d;

	models_path(m, map->id, MODELS_DIFFERENCE, path);
	enum err e = stamp_of(path, &map->stamp, why);
	if (!e)
		e = models_map_file(map, path, m->stop, why);
	if (!e)
		e = check_head(map->data, map->bytes, map->id, &d, why);
	if (!e && !models_map_whole(map))
		e = models_unread(path, why);
	if (e)
		return e;
	return check_payload(m, &d, map->data + DIFFERENCE_HEAD, &map->stamp, why);
}

enum err
models_difference_get(struct models *m, const uint8_t to[32], const uint8_t from[32],
    struct models_map **out, struct why *why)
{
	static const uint8_t whole[32];
	uint8_t ids[STEPS_MAX + 1][32];
	struct stamp now = {.device = 0};
	uint64_t bytes = 0;
	size_t count = 0;
	char path[PATH_MAX];

	if (memcmp(from, whole, sizeof(whole)) == 0)
		return ERR_NOTFOUND;
	enum err e = find_way(m, to, from, ids, &count, &bytes);
	if (e)
		return err_set(why, e, "%s", err_name(e));
	/* One that was put together in memory is as it was checked. */
	models_path(m, to, MODELS_DIFFERENCE, path);
	e = count == 1 ? stamp_of(path, &now, why) : ERR_OK;
	if (e)
		return e;
	*out = models_find_map(m, to, from, &now);
	if (*out)
		return ERR_OK;
	struct models_map *map = calloc(1, sizeof(*map));
	if (!map)
		return err_set(why, ERR_NOMEM, "no memory");
	map->bytes = bytes;
	memcpy(map->id, to, 32);
	memcpy(map->from, from, 32);
	e = count == 1 ? map_step(m, map, why) : read_way(m, ids, count, map, why);
	if (e)
		models_unmap(map);
	else
		*out = models_link_map(m, map);
	return e;
}

enum err
models_difference_delete(struct models *m, const uint8_t to[32])
{
	char path[PATH_MAX];

	models_forget(m, to, MODELS_DIFFERENCE);
	models_path(m, to, MODELS_DIFFERENCE, path);
	return unlink(path) == 0 || errno == ENOENT ? ERR_OK : err_errno(NULL, "remove");
}

enum err
models_difference_check(int fd, const uint8_t to[32], struct why *why)
{
	uint8_t block[16384], hash[HASH_LEN];
	struct difference d;
	struct hash *h = hash_new();

	if (!h)
		return err_set(why, ERR_NOMEM, "no memory");
	enum err e = read_head(fd, to, &d, why);
	hash_start(h);
	for (uint64_t at = 0; !e && at < d.payload_bytes; at += sizeof(block)) {
		uint64_t left = d.payload_bytes - at;
		size_t n = left < sizeof(block) ? (size_t)left : sizeof(block);
		e = file_pread(fd, block, n, DIFFERENCE_HEAD + at);
		hash_update(h, block, n);
	}
	hash_finish(h, hash);
	hash_free(h);
	if (!e && memcmp(hash, d.payload_hash, sizeof(hash)) != 0)
		e = err_set(why, ERR_CORRUPT, "its bytes do not match its head");
	return e;
}
