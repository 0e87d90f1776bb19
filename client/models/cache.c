#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "hash.h"
#include "hex.h"

#define SUFFIX ".safetensors"
#define PART ".part"
#define DIFFERENCE ".diff"
#define SCAN_MAX 4096
#define ID_LEN (CACHE_ID_HEX - 1)

struct item {
	char id[CACHE_ID_HEX];
	const char *suffix;
	uint64_t bytes;
	struct timespec used;
};

enum err
cache_init(
    struct cache *c, const char *home, const char *folder, uint64_t max_bytes, struct why *why)
{
	int n = snprintf(c->dir, sizeof(c->dir), "%s/%s", home, folder);

	if (n < 0 || (size_t)n >= sizeof(c->dir))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", home);
	c->max_bytes = max_bytes;
	return file_mkdirs(c->dir, 0755, why);
}

static void
path_of(const struct cache *c, const char *id, const char *suffix, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%.64s%s", c->dir, id, suffix);
}

enum err
cache_find(const struct cache *c, const char *id, uint64_t bytes, char path[PATH_MAX])
{
	struct stat st;

	path_of(c, id, SUFFIX, path);
	if (stat(path, &st) != 0)
		return ERR_NOTFOUND;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != bytes) {
		unlink(path);
		return ERR_NOTFOUND;
	}
	utimensat(AT_FDCWD, path, NULL, 0);
	return ERR_OK;
}

enum err
cache_held(const struct cache *c, const char *id, uint64_t *bytes, char path[PATH_MAX])
{
	struct stat st;

	path_of(c, id, SUFFIX, path);
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return ERR_NOTFOUND;
	*bytes = (uint64_t)st.st_size;
	utimensat(AT_FDCWD, path, NULL, 0);
	return ERR_OK;
}

enum err
cache_check(const struct cache *c, const char *id, struct why *why)
{
	char path[PATH_MAX], found[2 * HASH_LEN + 1];
	uint8_t hash[HASH_LEN];

	path_of(c, id, SUFFIX, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(why, "open %s", path);
	enum err e = hash_file(fd, hash);
	close(fd);
	if (e == ERR_NOMEM)
		return err_set(why, e, "no memory to check %s", path);
	/* What the disk cannot read any more is as good as changed. */
	hex_encode(found, hash, HASH_LEN);
	if (!e && strcmp(found, id) == 0)
		return ERR_OK;
	unlink(path);
	return err_set(why, ERR_CORRUPT, "%s: %s", path,
	    e ? "cannot be read" : "its hash does not match its name");
}

static enum err
open_file(const struct cache *c, const char *id, const char *suffix, int *fd, struct why *why)
{
	char path[PATH_MAX];

	path_of(c, id, suffix, path);
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	return *fd < 0 ? err_errno(why, "open %s", path) : ERR_OK;
}

enum err
cache_part(const struct cache *c, const char *id, int *fd, struct why *why)
{
	return open_file(c, id, PART, fd, why);
}

enum err
cache_difference(const struct cache *c, const char *id, int *fd, struct why *why)
{
	return open_file(c, id, DIFFERENCE, fd, why);
}

void
cache_drop_difference(const struct cache *c, const char *id)
{
	char path[PATH_MAX];

	path_of(c, id, DIFFERENCE, path);
	unlink(path);
}

uint64_t
cache_begun(const struct cache *c, const char *id)
{
	char path[PATH_MAX];
	struct stat st;

	path_of(c, id, PART, path);
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* Splits "ID.suffix"; false for anything else. */
static bool
parse_name(const char *name, struct item *out)
{
	if (strspn(name, "0123456789abcdef") != ID_LEN)
		return false;
	static const char *const suffixes[] = {SUFFIX, PART, DIFFERENCE};
	out->suffix = NULL;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (strcmp(name + ID_LEN, suffixes[i]) == 0)
			out->suffix = suffixes[i];
	if (!out->suffix)
		return false;
	memcpy(out->id, name, ID_LEN);
	out->id[ID_LEN] = '\0';
	return true;
}

static int
by_age(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	if (x->used.tv_nsec != y->used.tv_nsec)
		return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
	int order = strcmp(x->id, y->id);
	return order ? order : strcmp(x->suffix, y->suffix);
}

/* All files of the cache, longest unused first; the caller frees *items. */
static enum err
scan(const struct cache *c, struct item **items, size_t *count)
{
	DIR *d = opendir(c->dir);
	struct item *list = calloc(SCAN_MAX, sizeof(*list));
	struct dirent *ent;
	struct stat st;
	size_t n = 0;

	if (!d || !list) {
		free(list);
		if (d)
			closedir(d);
		return list ? ERR_IO : ERR_NOMEM;
	}
	while (n < SCAN_MAX && (ent = readdir(d))) {
		struct item *item = &list[n];
		if (!parse_name(ent->d_name, item) || fstatat(dirfd(d), ent->d_name, &st, 0) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		item->bytes = (uint64_t)st.st_size;
		item->used = st.st_mtim;
		n++;
	}
	closedir(d);
	qsort(list, n, sizeof(*list), by_age);
	*items = list;
	*count = n;
	return ERR_OK;
}

enum err
cache_make_room(const struct cache *c, const char *id, uint64_t bytes, struct why *why)
{
	struct item *items;
	size_t count, others = 0;
	uint64_t total = 0;
	char path[PATH_MAX];

	if (bytes > c->max_bytes)
		return err_set(why, ERR_LIMIT,
		    "a model of %llu bytes does not fit into cache_bytes",
		    (unsigned long long)bytes);
	enum err e = scan(c, &items, &count);
	if (e)
		return err_set(why, e, "cannot read %.200s", c->dir);
	for (size_t i = 0; i < count; i++)
		if (strcmp(items[i].id, id) != 0) {
			total += items[i].bytes;
			others++;
		}
	for (size_t i = 0; i < count && (total > c->max_bytes - bytes || others >= CACHE_FILES_MAX);
	     i++) {
		if (strcmp(items[i].id, id) == 0)
			continue;
		path_of(c, items[i].id, items[i].suffix, path);
		if (unlink(path) == 0 || errno == ENOENT) {
			total -= items[i].bytes;
			others--;
		}
	}
	free(items);
	if (total > c->max_bytes - bytes)
		return err_set(why, ERR_NOSPACE, "cannot make room in %.200s", c->dir);
	return ERR_OK;
}

enum err
cache_commit(const struct cache *c, const char *id, int fd, char path[PATH_MAX], struct why *why)
{
	char part[PATH_MAX];

	path_of(c, id, PART, part);
	path_of(c, id, SUFFIX, path);
	return file_commit(fd, part, path, why);
}

size_t
cache_list(const struct cache *c, char (*ids)[CACHE_ID_HEX], size_t max)
{
	struct item *items;
	size_t count, n = 0;

	if (scan(c, &items, &count))
		return 0;
	for (size_t i = count; i > 0 && n < max; i--)
		if (strcmp(items[i - 1].suffix, SUFFIX) == 0)
			memcpy(ids[n++], items[i - 1].id, CACHE_ID_HEX);
	free(items);
	return n;
}
