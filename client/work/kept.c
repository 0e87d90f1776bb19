#include "kept.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec_elements.h"
#include "file.h"
#include "hash.h"

#define BLOCK ((size_t)64 << 10)
#define TILE (BLOCK / sizeof(float))

/* --- reading */

/* Is the hash right that stands at the end? */
static enum err
check_hash(const struct kept *k, uint64_t len)
{
	uint8_t found[HASH_LEN], want[HASH_LEN], *block = malloc(BLOCK);
	uint64_t hashed = len - DEVICEFILE_HASH;
	struct hash *hash = hash_new();
	enum err e = block && hash ? ERR_OK : ERR_NOMEM;

	if (!e)
		hash_start(hash);
	for (uint64_t at = 0; !e && at < hashed; at += BLOCK) {
		size_t n = hashed - at < BLOCK ? (size_t)(hashed - at) : BLOCK;
		e = file_pread(k->fd, block, n, at);
		if (!e)
			hash_update(hash, block, n);
	}
	if (!e) {
		hash_finish(hash, found);
		e = file_pread(k->fd, want, sizeof(want), hashed);
	}
	if (!e && memcmp(found, want, sizeof(want)) != 0)
		e = ERR_CORRUPT;
	hash_free(hash);
	free(block);
	return e;
}

static enum err
check(struct kept *k, enum devicefile_kind kind)
{
	uint8_t head[DEVICEFILE_HEAD_MAX] = {0};
	struct stat st;

	if (fstat(k->fd, &st) != 0 || !S_ISREG(st.st_mode))
		return ERR_CORRUPT;
	uint64_t len = (uint64_t)st.st_size;
	enum err e = file_pread(k->fd, head, len < sizeof(head) ? (size_t)len : sizeof(head), 0);
	if (!e)
		e = devicefile_decode(&k->file, head, len, NULL);
	if (!e && k->file.kind != kind)
		e = ERR_CORRUPT;
	return e || k->file.unhashed ? e : check_hash(k, len);
}

enum err
kept_open(struct kept *k, enum devicefile_kind kind, const char *path, struct why *why)
{
	*k = (struct kept){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	if (k->fd < 0)
		return err_errno(why, "open %s", path);
	enum err e = check(k, kind);
	if (!e)
		return ERR_OK;
	kept_close(k);
	return e == ERR_CORRUPT ? err_set(why, e, "%s is damaged", path)
				: err_set(why, e, "%s: %s", path, err_name(e));
}

enum err
kept_read(const struct kept *k, void *out, size_t len, uint64_t at)
{
	return file_pread(k->fd, out, len, devicefile_head(k->file.kind) + at);
}

static enum err
read_floats(void *context, uint64_t first, size_t count, float *out)
{
	return kept_read(context, out, count * sizeof(*out), first * sizeof(*out));
}

struct codec_elements
kept_values(const struct kept *k)
{
	return (struct codec_elements){read_floats, (void *)(uintptr_t)k};
}

void
kept_close(struct kept *k)
{
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}

/* --- writing */

enum err
kept_new_add(struct kept_new *k, const void *data, size_t len, struct why *why)
{
	if (file_pwrite(k->fd, data, len, k->at))
		return err_errno(why, "write %s", k->temp);
	hash_update(k->hash, data, len);
	k->at += len;
	return ERR_OK;
}

enum err
kept_new(struct kept_new *k, const struct devicefile *file, const char *path, struct why *why)
{
	uint8_t head[DEVICEFILE_HEAD_MAX];

	*k = (struct kept_new){.file = *file, .fd = -1, .hash = hash_new()};
	int n = snprintf(k->path, sizeof(k->path), "%s", path);
	int m = snprintf(k->temp, sizeof(k->temp), "%s.XXXXXX", path);
	if (n < 0 || (size_t)n >= sizeof(k->path) || m < 0 || (size_t)m >= sizeof(k->temp)) {
		k->temp[0] = '\0';
		return err_set(why, ERR_LIMIT, "path too long: %.80s", path);
	}
	if (!k->hash) {
		k->temp[0] = '\0';
		return err_set(why, ERR_NOMEM, "no memory for a hash");
	}
	k->fd = mkostemp(k->temp, O_CLOEXEC);
	if (k->fd < 0) {
		enum err e = err_errno(why, "create %s", k->temp);
		k->temp[0] = '\0';
		return e;
	}
	hash_start(k->hash);
	devicefile_encode(file, head);
	return kept_new_add(k, head, devicefile_head(file->kind), why);
}

enum err
kept_new_finish(struct kept_new *k, struct why *why)
{
	uint8_t hash[HASH_LEN];

	hash_finish(k->hash, hash);
	enum err e = file_pwrite(k->fd, hash, sizeof(hash), k->at);
	if (e)
		return err_errno(why, "write %s", k->temp);
	e = file_commit(k->fd, k->temp, k->path, why);
	if (!e)
		k->temp[0] = '\0';
	return e;
}

void
kept_new_deinit(struct kept_new *k)
{
	if (k->fd >= 0)
		close(k->fd);
	if (k->temp[0])
		unlink(k->temp);
	hash_free(k->hash);
	k->fd = -1;
	k->hash = NULL;
	k->temp[0] = '\0';
}

enum err
kept_write(const struct devicefile *file, const struct codec_elements *values, const char *path,
    struct why *why)
{
	float *tile = malloc(TILE * sizeof(*tile));
	struct kept_new k;
	enum err e = kept_new(&k, file, path, why);

	if (!e && !tile)
		e = err_set(why, ERR_NOMEM, "no memory for a tile");
	for (uint64_t first = 0; !e && first < file->count; first += TILE) {
		size_t n = file->count - first < TILE ? (size_t)(file->count - first) : TILE;
		e = values->read(values->context, first, n, tile);
		if (!e)
			e = kept_new_add(&k, tile, n * sizeof(*tile), why);
		else
			err_set(why, e, "%s: %s", path, err_name(e));
	}
	if (!e)
		e = kept_new_finish(&k, why);
	kept_new_deinit(&k);
	free(tile);
	return e;
}
