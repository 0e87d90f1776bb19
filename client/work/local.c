#include "local.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disuse.h"
#include "file.h"
#include "kept.h"

#define JOB_HEX 32
#define DAYS_KEPT 365
#define BLOCK (16u << 10)

enum err
local_init(const char *home, struct why *why)
{
	char path[PATH_MAX];
	struct dirent *ent;
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/local", home);

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", home);
	DIR *d = opendir(path);
	while (d && (ent = readdir(d))) {
		bool weights = strspn(ent->d_name, "0123456789abcdef") == JOB_HEX &&
		    strcmp(ent->d_name + JOB_HEX, ".weights") == 0;
		if (fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) &&
		    (!weights ||
			(!disuse_is_within(&st, DAYS_KEPT) &&
			    disuse_is_over(dirfd(d), ent->d_name, DAYS_KEPT))))
			unlinkat(dirfd(d), ent->d_name, 0);
	}
	if (d)
		closedir(d);
	return ERR_OK;
}

static uint64_t
bytes_of(const struct work *w)
{
	uint64_t n = 0;

	for (size_t i = 0; i < w->table.count; i++)
		if (w->table.items[i].role == TENSOR_LOCAL)
			n += w->table.items[i].end - w->table.items[i].begin;
	return n;
}

static bool
path_of(char out[PATH_MAX], const struct work *w, const char *home)
{
	int n = snprintf(out, PATH_MAX, "%s/local/%.32s.weights", home, w->task.job);

	return n > 0 && n < PATH_MAX;
}

/* Into the weights; where there are none, the file is where they are read from then. */
static enum err
take(struct work *w, struct kept *k)
{
	enum err e = ERR_OK;
	uint64_t at = 0;

	if (w->files) {
		w->files->local = k->fd;
		w->files->local_at = devicefile_head(DEVICEFILE_LOCAL);
		k->fd = -1;
		return ERR_OK;
	}
	for (size_t i = 0; !e && i < w->table.count; i++) {
		const struct tensor *t = &w->table.items[i];
		if (t->role != TENSOR_LOCAL)
			continue;
		e = kept_read(k, w->weights + t->begin, (size_t)(t->end - t->begin), at);
		at += t->end - t->begin;
	}
	return e;
}

enum err
local_load(struct work *w, const char *home, struct why *why)
{
	char path[PATH_MAX];
	uint64_t bytes = bytes_of(w);
	struct kept k;

	if (bytes == 0)
		return ERR_OK;
	if (!path_of(path, w, home))
		return err_set(why, ERR_LIMIT, "path too long");
	enum err e = kept_open(&k, DEVICEFILE_LOCAL, path, why);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	if (k.file.count != bytes)
		e = err_set(why, ERR_CORRUPT, "%s is of another model", path);
	else if (take(w, &k))
		e = err_set(why, ERR_IO, "%s cannot be read", path);
	/* Should that fail, the next save does it. */
	if (!e && k.file.unhashed)
		(void)!local_save(w, home, NULL);
	kept_close(&k);
	return e;
}

static enum err
add_tensor(struct kept_new *k, const struct work *w, const struct tensor *t, uint8_t *block,
    struct why *why)
{
	uint64_t bytes = t->end - t->begin;
	enum err e = ERR_OK;

	for (uint64_t at = 0; !e && at < bytes; at += BLOCK) {
		size_t n = bytes - at < BLOCK ? (size_t)(bytes - at) : BLOCK;
		if (work_read(w, t, at, n, block))
			e = err_set(why, ERR_IO, "tensor \"%.180s\" cannot be read", t->name);
		else
			e = kept_new_add(k, block, n, why);
	}
	return e;
}

enum err
local_save(const struct work *w, const char *home, struct why *why)
{
	const struct devicefile file = {.kind = DEVICEFILE_LOCAL, .count = bytes_of(w)};
	char path[PATH_MAX], dir[PATH_MAX];
	uint8_t block[BLOCK];
	struct kept_new k;

	if (file.count == 0)
		return ERR_OK;
	int n = snprintf(dir, sizeof(dir), "%s/local", home);
	if (n < 0 || (size_t)n >= sizeof(dir) || !path_of(path, w, home))
		return err_set(why, ERR_LIMIT, "path too long");
	enum err e = file_mkdirs(dir, 0700, why);
	if (e)
		return e;
	e = kept_new(&k, &file, path, why);
	for (size_t i = 0; !e && i < w->table.count; i++)
		if (w->table.items[i].role == TENSOR_LOCAL)
			e = add_tensor(&k, w, &w->table.items[i], block, why);
	if (!e)
		e = kept_new_finish(&k, why);
	kept_new_deinit(&k);
	return e;
}
