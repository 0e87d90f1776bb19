#include "keys_archive.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "num.h"

static const char *const names[] = {
    "ca.crt", "ca.key", "server.crt", "server.key", "sign.crt", "sign.key", "task.key"};
static const char *const generation_suffixes[] = {".crt", ".key", ".cross.crt"};

/* ca-N.crt and the like, N without leading zeros. */
static bool
is_generation(const char *name)
{
	char digits[8] = "";
	uint64_t n;

	if (strncmp(name, "ca-", 3) != 0 || name[3] == '0')
		return false;
	size_t len = strspn(name + 3, "0123456789");
	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, name + 3, len);
	for (size_t i = 0; i < sizeof(generation_suffixes) / sizeof(generation_suffixes[0]); i++)
		if (strcmp(name + 3 + len, generation_suffixes[i]) == 0)
			return num_u64(digits, KEYS_GENERATIONS_MAX, &n);
	return false;
}

static bool
is_known(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return is_generation(name);
}

static int
is_key_file(const struct dirent *ent)
{
	return is_known(ent->d_name);
}

enum err
keys_archive_each(const char *state_dir,
    enum err (*fn)(void *ctx, const char *name, struct why *why), void *ctx, struct why *why)
{
	struct dirent **list = NULL;
	char dir[KEYS_PATH_MAX];
	enum err e = ERR_OK;

	keys_path(state_dir, "", dir);
	int count = scandir(dir, &list, is_key_file, alphasort);
	if (count < 0)
		return err_errno(why, "open %s", dir);
	for (int i = 0; i < count; i++) {
		if (!e)
			e = fn(ctx, list[i]->d_name, why);
		free(list[i]);
	}
	free(list);
	return e;
}

/* --- there */

static void
wipe(char *data, size_t len)
{
	if (data)
		hash_wipe(data, len);
	free(data);
}

struct packing {
	const char *state_dir;
	struct buf *out;
};

static bool
is_secret(const char *name)
{
	size_t len = strlen(name);

	return len < 4 || strcmp(name + len - 4, ".crt") != 0;
}

static enum err
pack_one(void *ctx, const char *name, struct why *why)
{
	const struct packing *p = ctx;
	struct ustar_file file = {.mode = is_secret(name) ? 0600 : 0644};
	char path[KEYS_PATH_MAX];
	char *data = NULL;
	size_t len = 0;

	keys_path(p->state_dir, name, path);
	enum err e = file_read(path, KEYS_FILE_MAX, &data, &len, why);
	if (e)
		return e;
	snprintf(file.name, sizeof(file.name), "%s", name);
	file.data = data;
	file.len = len;
	e = ustar_put(p->out, &file);
	wipe(data, len);
	return e ? err_set(why, e, "%s/keys holds too much", p->state_dir) : ERR_OK;
}

enum err
keys_archive_pack(const char *state_dir, struct buf *out, struct why *why)
{
	struct packing p = {state_dir, out};
	struct services_ca *ca = NULL;
	void *room;

	enum err e = keys_check(state_dir, &ca, why);
	if (e)
		return e;
	keys_free_ca(ca);
	/* The whole buffer is allocated at once: a buffer that grows leaves copies of the keys in memory. */
	if (buf_extend(out, KEYS_ARCHIVE_MAX, &room))
		return err_set(why, ERR_NOMEM, "no memory");
	buf_reset(out);
	e = keys_archive_each(state_dir, pack_one, &p, why);
	return e ? e : ustar_end(out);
}

void
keys_archive_wipe(struct buf *archive)
{
	if (archive->data)
		hash_wipe(archive->data, archive->room);
	buf_deinit(archive);
}

/* --- and back */

enum err
keys_archive_next(struct ustar_reader *r, struct ustar_file *out, struct why *why)
{
	enum err e = ustar_next(r, out, why);

	if (!e && !is_known(out->name))
		e = err_set(why, ERR_INVALID, "%s in it is no file of keys/", out->name);
	if (!e && out->len > KEYS_FILE_MAX)
		e = err_set(
		    why, ERR_LIMIT, "%s in it is larger than %d bytes", out->name, KEYS_FILE_MAX);
	return e;
}

static enum err
unpack_one(const char *dir, const struct ustar_file *file, struct why *why)
{
	char path[KEYS_PATH_MAX];

	keys_path(dir, file->name, path);
	if (access(path, F_OK) == 0)
		return err_set(why, ERR_INVALID, "%s is in it twice", file->name);
	return file_write(path, file->data, file->len, is_secret(file->name) ? 0600 : 0644, why);
}

enum err
keys_archive_unpack(
    const char *dir, const struct buf *archive, struct services_ca **ca, struct why *why)
{
	struct ustar_reader r = {(const uint8_t *)archive->data, archive->len};
	char path[KEYS_PATH_MAX];
	struct ustar_file file;

	keys_path(dir, "", path);
	enum err e = file_mkdirs(path, 0700, why);
	while (!e) {
		e = keys_archive_next(&r, &file, why);
		if (!e)
			e = unpack_one(dir, &file, why);
	}
	return e == ERR_NOTFOUND ? keys_check(dir, ca, why) : e;
}

/* --- against those that are there */

struct comparison {
	const char *dir, *state_dir;
	size_t moved;
};

/* *same: have the file `at`, which exists, and `other`, which may be missing, the same bytes? */
static enum err
same_bytes(const char *at, const char *other, bool *same, struct why *why)
{
	char *a = NULL, *b = NULL;
	size_t a_len = 0, b_len = 0;

	enum err e = file_read(at, KEYS_FILE_MAX, &a, &a_len, why);
	if (!e)
		e = file_read(other, KEYS_FILE_MAX, &b, &b_len, why);
	*same = !e && a_len == b_len && hash_equal(a, b, a_len);
	wipe(a, a_len);
	wipe(b, b_len);
	return a && e == ERR_NOTFOUND ? ERR_OK : e;
}

static enum err
compare_one(void *ctx, const char *name, struct why *why)
{
	const struct comparison *c = ctx;
	char here[KEYS_PATH_MAX], there[KEYS_PATH_MAX];
	bool same = false;

	keys_path(c->state_dir, name, here);
	keys_path(c->dir, name, there);
	enum err e = same_bytes(here, there, &same, why);
	if (e || same)
		return e;
	return err_set(why, ERR_EXISTS, "%.140s is there, and is another one", here);
}

enum err
keys_archive_compare(const char *dir, const char *state_dir, struct why *why)
{
	struct comparison c = {.dir = dir, .state_dir = state_dir};

	enum err e = keys_archive_each(state_dir, compare_one, &c, why);
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

static enum err
move_one(void *ctx, const char *name, struct why *why)
{
	struct comparison *c = ctx;
	char from[KEYS_PATH_MAX], to[KEYS_PATH_MAX];

	keys_path(c->dir, name, from);
	keys_path(c->state_dir, name, to);
	if (access(to, F_OK) == 0)
		return ERR_OK;
	if (rename(from, to) != 0)
		return err_errno(why, "rename %s", from);
	c->moved++;
	return file_give(to, c->state_dir, why);
}

enum err
keys_archive_adopt(const char *dir, const char *state_dir, size_t *moved, struct why *why)
{
	struct comparison c = {.dir = dir, .state_dir = state_dir};
	char keys[KEYS_PATH_MAX];

	keys_path(state_dir, "", keys);
	enum err e = keys_archive_compare(dir, state_dir, why);
	if (!e)
		e = file_mkdirs(keys, 0700, why);
	if (!e)
		e = file_give(keys, state_dir, why);
	if (!e)
		e = keys_archive_each(dir, move_one, &c, why);
	if (!e)
		e = file_sync_dir(keys, why);
	*moved = c.moved;
	return e;
}
