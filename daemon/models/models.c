#include "models.h"
#include "models_inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "cut.h"
#include "fault.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "modelfile.h"
#include "stop.h"

#define TEMP_PREFIX "tmp."
#define AHEAD ((uint64_t)8 << 20)
#define PAGE 4096

void
models_path(const struct models *m, const uint8_t id[32], const char *suffix, char *out)
{
	char hex[65];

	hex_encode(hex, id, 32);
	snprintf(out, PATH_MAX, "%s/%s%s", m->dir, hex, suffix);
}

/* Files under construction that a crash left behind: their names would be in the way of new ones. */
static enum err
remove_leftovers(const struct models *m, struct why *why)
{
	DIR *d = opendir(m->dir);
	struct dirent *ent;
	enum err e = ERR_OK;

	if (!d)
		return err_errno(why, "open %s", m->dir);
	while (!e && (ent = readdir(d)))
		if (strncmp(ent->d_name, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0 &&
		    unlinkat(dirfd(d), ent->d_name, 0) != 0)
			e = err_errno(why, "remove %s/%s", m->dir, ent->d_name);
	closedir(d);
	return e;
}

enum err
models_open(struct models **out, const char *dir, struct why *why)
{
	struct models *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(why, ERR_NOMEM, "no memory");
	if (strlen(dir) >= sizeof(m->dir)) {
		free(m);
		return err_set(why, ERR_LIMIT, "path too long: %s", dir);
	}
	strcpy(m->dir, dir);
	m->joined_max = MODELS_JOINED_MAX;
	pthread_mutex_init(&m->lock, NULL);
	enum err e = file_mkdirs(dir, 0700, why);
	if (!e)
		e = remove_leftovers(m, why);
	if (e) {
		models_close(m);
		return e;
	}
	*out = m;
	return ERR_OK;
}

void
models_until(struct models *m, struct stop *stop)
{
	m->stop = stop;
}

void
models_close(struct models *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	models_sound_free(m);
	free(m);
}

bool
models_map_whole(const struct models_map *map)
{
	return map->joined || !map->data || !cut_hit(map->data, map->bytes, map->cuts);
}

static void
touch(const struct models_map *map, uint64_t from, uint64_t to)
{
	volatile uint8_t seen = 0;

	for (uint64_t at = from - from % PAGE; at < to; at += PAGE)
		seen = (uint8_t)(seen ^ map->data[at]);
}

bool
models_map_reads(const struct models_map *map, uint64_t at, uint64_t len)
{
	touch(map, at, at + len);
	return models_map_whole(map);
}

enum err
models_unread(const char *path, struct why *why)
{
	return err_set(why, ERR_IO, "%s cannot be read whole: its disk fails, or it was cut", path);
}

/* Checks the bytes of a mapped model, unless this process has hashed the file and nobody has written to it since: a file may be cut, or
 * bits may flip. */
static enum err
check_bytes(struct models *m, struct models_map *map, const uint8_t id[32], const char *path,
    struct why *why)
{
	uint8_t hash[HASH_LEN];
	struct stamp after;

	const enum models_verdict known = models_judged(m, id, "", &map->stamp);
	if (known == MODELS_SOUND)
		return ERR_OK;
	if (known == MODELS_DAMAGED)
		return err_set(why, ERR_CORRUPT, "%s does not match its name", path);
	enum err e = hash_bytes(hash, map->data, map->bytes, m->stop);
	if (e)
		return err_set(why, e, e == ERR_CLOSED ? "the coordinator stops" : "no memory");
	/* A disk that fails says nothing about what is on it. */
	if (!models_map_whole(map))
		return models_unread(path, why);
	bool sound = memcmp(hash, id, HASH_LEN) == 0;
	e = stamp_of(path, &after, why);
	if (!e && !stamp_same(&after, &map->stamp))
		e = err_set(why, ERR_CORRUPT, "%s changed while it was hashed", path);
	if (!e)
		models_found(m, id, "", &after, sound);
	if (!e && !sound)
		e = err_set(why, ERR_CORRUPT, "%s does not match its name", path);
	return e;
}

/* --- maps */

void
models_unmap(struct models_map *map)
{
	file_unmap(&(struct file_map){map->data, map->bytes});
	if (map->joined)
		atomic_fetch_sub(&map->joined->joined, map->bytes);
	tensor_table_deinit(&map->table);
	free(map);
}

/* Reads the whole map now, so that no thread that must not wait has to; piece by piece, so that `stop` can end it on a slow disk. */
static enum err
read_ahead(const struct models_map *map, struct stop *stop, struct why *why)
{
	for (uint64_t at = 0; at < map->bytes; at += AHEAD) {
		uint64_t end = map->bytes - at < AHEAD ? map->bytes : at + AHEAD;
		(void)madvise(
		    (void *)(uintptr_t)(map->data + at), (size_t)(end - at), MADV_WILLNEED);
		touch(map, at, end);
		if (stop_asked(stop))
			return err_set(why, ERR_CLOSED, "the coordinator stops");
	}
	return ERR_OK;
}

enum err
models_map_file(struct models_map *map, const char *path, struct stop *stop, struct why *why)
{
	struct file_map file = {0};

	map->cuts = cut_count();
	enum err e = file_map(&file, path, UINT64_MAX, false, why);
	map->data = file.data;
	map->bytes = file.len;
	if (!e)
		e = read_ahead(map, stop, why);
	if (!e && !models_map_whole(map))
		e = models_unread(path, why);
	return e == ERR_INVALID ? ERR_CORRUPT : e;
}

/* Opens and maps the file; the map is not yet shared. */
static enum err
map_model(struct models *m, const uint8_t id[32], struct models_map **out, struct why *why)
{
	char path[PATH_MAX];
	struct models_map *map = calloc(1, sizeof(*map));

	if (!map)
		return ERR_NOMEM;
	models_path(m, id, "", path);
	enum err e = stamp_of(path, &map->stamp, why);
	if (!e)
		e = models_map_file(map, path, m->stop, why);
	if (e == ERR_NOTFOUND)
		err_set(why, e, "model %.16s: %s", path + strlen(m->dir) + 1, strerror(ENOENT));
	else if (!e && map->bytes < MODELFILE_PREFIX)
		e = err_set(why, ERR_CORRUPT, "model file %s is too short", path);
	if (!e)
		e = check_bytes(m, map, id, path, why);
	if (!e)
		e = modelfile_data_at(map->data, map->bytes, &map->data_at, why);
	if (!e)
		e = modelfile_parse(&map->table, NULL, map->data, map->data_at, map->bytes, why);
	/* What was sound has to show that it can be read again. */
	if (e == ERR_IO)
		models_forget(m, id, "");
	if (e) {
		models_unmap(map);
		return e == ERR_INVALID ? ERR_CORRUPT : e;
	}
	memcpy(map->id, id, 32);
	*out = map;
	return ERR_OK;
}

/* models_find_map with the lock held. A map whose file has changed, or that could not be read, is left to those who hold it. */
static struct models_map *
find_map(struct models *m, const uint8_t id[32], const uint8_t from[32], const struct stamp *now)
{
	struct models_map *map = m->maps;

	while (map &&
	    (memcmp(map->id, id, 32) != 0 || memcmp(map->from, from, 32) != 0 ||
		(now && !stamp_same(&map->stamp, now)) || !models_map_whole(map)))
		map = map->next;
	if (map)
		map->refs++;
	return map;
}

struct models_map *
models_find_map(
    struct models *m, const uint8_t id[32], const uint8_t from[32], const struct stamp *now)
{
	pthread_mutex_lock(&m->lock);
	struct models_map *map = find_map(m, id, from, now);
	pthread_mutex_unlock(&m->lock);
	return map;
}

struct models_map *
models_link_map(struct models *m, struct models_map *fresh)
{
	pthread_mutex_lock(&m->lock);
	struct models_map *map = find_map(m, fresh->id, fresh->from, &fresh->stamp);
	if (!map) {
		fresh->owner = m;
		fresh->refs = 1;
		fresh->next = m->maps;
		m->maps = map = fresh;
		fresh = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	if (fresh)
		models_unmap(fresh);
	return map;
}

enum err
models_get(struct models *m, const uint8_t id[32], struct models_map **out, struct why *why)
{
	static const uint8_t whole[32];
	struct models_map *fresh = NULL;
	struct stamp now;
	char path[PATH_MAX];

	models_path(m, id, "", path);
	if (stamp_of(path, &now, NULL) == ERR_OK &&
	    models_judged(m, id, "", &now) == MODELS_SOUND &&
	    (*out = models_find_map(m, id, whole, &now)))
		return ERR_OK;
	/* Without the lock: reading a large file takes long, and I/O threads release maps. */
	enum err e = map_model(m, id, &fresh, why);
	if (!e)
		*out = models_link_map(m, fresh);
	return e;
}

enum err
models_unchanged(struct models *m, const struct models_map *map, struct why *why)
{
	struct models_map *again = NULL;
	struct stamp now;
	char path[PATH_MAX];

	models_path(m, map->id, "", path);
	enum err e = stamp_of(path, &now, why);
	if (!e && !models_map_whole(map)) {
		models_forget(m, map->id, "");
		e = models_unread(path, why);
	}
	if (e || stamp_same(&now, &map->stamp))
		return e;
	/* What has changed may have been a second name that a backup gave it. What was cut and put back is another file. */
	e = now.inode == map->stamp.inode ? models_get(m, map->id, &again, why)
					  : err_set(why, ERR_CORRUPT, "%s was changed", path);
	models_map_release(again);
	return e;
}

void
models_map_release(struct models_map *map)
{
	if (!map)
		return;
	struct models *m = map->owner;
	pthread_mutex_lock(&m->lock);
	if (--map->refs > 0) {
		map = NULL;
	} else {
		struct models_map **at = &m->maps;
		while (*at != map)
			at = &(*at)->next;
		*at = map->next;
	}
	pthread_mutex_unlock(&m->lock);
	if (map)
		models_unmap(map);
}

void
models_temp_path(struct models *m, char *out, size_t room)
{
	snprintf(out, room, "%s/" TEMP_PREFIX "%u", m->dir, atomic_fetch_add(&m->temp, 1));
}

enum err
models_adopt(struct models *m, int fd, const char *temp, const uint8_t id[32], struct why *why)
{
	char path[PATH_MAX];

	models_path(m, id, "", path);
	enum err e = file_commit(fd, temp, path, why);
	if (!e)
		models_wrote(m, id, "");
	return e;
}

/* Writes a file of two pieces, of which one may be empty. */
static enum err
put_pieces(struct models *m, const void *const piece[2], const uint64_t len[2],
    enum models_kind kind, uint8_t id[32], struct why *why)
{
	struct models_file *f = NULL;

	enum err e = models_file_begin(m, &f, why);
	for (int i = 0; i < 2 && !e; i++)
		e = models_file_add(f, piece[i], len[i], why);
	if (!e)
		e = models_file_end(f, id, why);
	if (!e)
		e = models_file_keep(f, kind, id, why);
	models_file_drop(f);
	return e;
}

enum err
models_put(struct models *m, const void *header, size_t header_len, const void *data,
    uint64_t data_len, uint8_t id[32], struct why *why)
{
	const void *const piece[2] = {header, data};
	const uint64_t len[2] = {header_len, data_len};

	return put_pieces(m, piece, len, MODELS_KIND_MODEL, id, why);
}

static enum err
remove_file(struct models *m, const uint8_t id[32], const char *suffix)
{
	char path[PATH_MAX];

	models_path(m, id, suffix, path);
	return unlink(path) == 0 || errno == ENOENT ? ERR_OK : err_errno(NULL, "remove");
}

enum err
models_still(struct models *m, const uint8_t id[32], struct why *why)
{
	char path[PATH_MAX];

	models_path(m, id, "", path);
	return access(path, F_OK) == 0
	    ? ERR_OK
	    : err_set(why, ERR_CLOSED, "the model was removed at this moment: try again");
}

enum err
models_delete(struct models *m, const uint8_t id[32])
{
	models_forget(m, id, "");
	enum err e = remove_file(m, id, "");
	enum err d = models_difference_delete(m, id);
	return e ? e : d;
}

enum err
models_state_put(
    struct models *m, const float *state, uint64_t count, uint8_t hash[32], struct why *why)
{
	const void *const piece[2] = {state, NULL};
	const uint64_t len[2] = {count * sizeof(float), 0};

	return put_pieces(m, piece, len, MODELS_KIND_STATE, hash, why);
}

/* Reads and hashes a file piece by piece. */
static enum err
read_hashed(int fd, void *to, uint64_t len, uint8_t hash[HASH_LEN], struct stop *stop)
{
	struct hash *h = hash_new();
	enum err e = h ? ERR_OK : ERR_NOMEM;

	if (!e)
		hash_start(h);
	for (uint64_t at = 0; at < len && !e; at += AHEAD) {
		size_t n = len - at < AHEAD ? (size_t)(len - at) : (size_t)AHEAD;
		e = file_pread(fd, (uint8_t *)to + at, n, at);
		if (!e)
			hash_update(h, (uint8_t *)to + at, n);
		if (!e && stop_asked(stop))
			e = ERR_CLOSED;
	}
	if (!e)
		hash_finish(h, hash);
	hash_free(h);
	return e;
}

enum err
models_state_get(
    struct models *m, const uint8_t hash[32], float *state, uint64_t count, struct why *why)
{
	char path[PATH_MAX];
	uint8_t found[HASH_LEN];
	struct stat st;

	models_path(m, hash, MODELS_STATE, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(why, "open %s", path);
	enum err e = ERR_OK;
	if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != count * sizeof(float))
		e = err_set(why, ERR_CORRUPT, "%s has the wrong length", path);
	if (!e)
		e = read_hashed(fd, state, count * sizeof(float), found, m->stop);
	close(fd);
	if (e)
		return why->text[0] ? e : err_set(why, e, "read %s: %s", path, err_name(e));
	return memcmp(found, hash, HASH_LEN) == 0
	    ? ERR_OK
	    : err_set(why, ERR_CORRUPT, "%s does not match its hash", path);
}

enum err
models_state_check(struct models *m, const uint8_t hash[32], struct why *why)
{
	static const uint8_t none[HASH_LEN];
	enum err e =
	    memcmp(hash, none, HASH_LEN) == 0 ? ERR_OK : models_check(m, hash, MODELS_STATE, why);

	/* What cannot be read is no better than what is not there: its job waits, and nobody else. */
	return e == ERR_IO ? ERR_CORRUPT : e;
}

enum err
models_state_delete(struct models *m, const uint8_t hash[32])
{
	models_forget(m, hash, MODELS_STATE);
	return remove_file(m, hash, MODELS_STATE);
}

static enum models_sent
source_of(const struct models_map *map, uint64_t bytes)
{
	static const uint8_t none[32];

	if (bytes < map->bytes)
		return SENT_RANGE;
	if (memcmp(map->from, none, sizeof(none)) == 0)
		return SENT_WHOLE;
	return memcmp(map->from, map->id, sizeof(map->id)) == 0 ? SENT_STATE : SENT_DIFFERENCE;
}

void
models_note_sent(struct models *m, const struct models_map *map, uint64_t bytes)
{
	const enum models_sent s = source_of(map, bytes);

	m->downloads[s]++;
	m->download_bytes[s] += bytes;
}

void
models_report(const struct models *m, struct models_report *out)
{
	for (unsigned i = 0; i < SENT_KINDS; i++) {
		out->downloads_total[i] = m->downloads[i];
		out->download_bytes_total[i] = m->download_bytes[i];
	}
}
