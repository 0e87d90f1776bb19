#include "list.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "clock.h"
#include "file.h"
#include "hex.h"
#include "json.h"
#include "version.h"

#define VERSION 1

struct json *
backup_list_new(uint64_t incarnation, bool keys)
{
	struct json *list = json_object();

	json_add_string(list, "rivulet", "backup");
	json_add_u64(list, "version", VERSION);
	json_add_string(list, "made_by", version_text());
	json_add_u64(list, "made_at", (uint64_t)clock_wall());
	json_add_u64(list, "incarnation", incarnation);
	json_add_bool(list, "keys", keys);
	json_add(list, "files", json_array());
	return list;
}

void
backup_list_add(struct json *list, const struct backup_list_entry *entry)
{
	/* The getters read; the list is ours to change. */
	struct json *files = (struct json *)(uintptr_t)json_get(list, "files");
	struct json *f = json_object();
	char hex[2 * HASH_LEN + 1];

	hex_encode(hex, entry->sha256, HASH_LEN);
	json_add_string(f, "name", entry->name);
	json_add_u64(f, "bytes", entry->bytes);
	json_add_string(f, "sha256", hex);
	json_push(files, f);
}

enum err
backup_list_room(const char *dir, struct why *why)
{
	const size_t most = PATH_MAX - sizeof(((struct backup_list_entry *)0)->name) - 16;

	return strlen(dir) <= most ? ERR_OK
				   : err_set(why, ERR_LIMIT, "path too long: %.100s...", dir);
}

enum err
backup_list_save(const struct json *list, const char *dir, struct why *why)
{
	char path[PATH_MAX];
	struct buf text;

	snprintf(path, sizeof(path), "%s/%s", dir, BACKUP_LIST_NAME);
	buf_init(&text, BACKUP_LIST_MAX);
	enum err e = json_print(&text, list, true);
	if (e)
		err_set(why, e, "%s: %s", path, err_name(e));
	else
		e = file_write(path, text.data, text.len, 0600, why);
	buf_deinit(&text);
	return e;
}

enum err
backup_list_load(struct json **out, const char *dir, struct why *why)
{
	char path[PATH_MAX];
	struct why detail = {""};
	struct json *list = NULL;
	char *text = NULL;
	uint64_t version;
	size_t len;

	enum err e = backup_list_room(dir, why);
	if (e)
		return e;
	snprintf(path, sizeof(path), "%s/%s", dir, BACKUP_LIST_NAME);
	e = file_read(path, BACKUP_LIST_MAX, &text, &len, why);
	if (e)
		return e;
	if (json_parse(&list, text, len, &detail))
		e = err_set(why, ERR_CORRUPT, "%s: %s", path, detail.text);
	else if (!json_u64(json_get(list, "version"), &version) ||
	    json_kind(json_get(list, "files")) != JSON_ARRAY)
		e = err_set(why, ERR_CORRUPT, "%s is not a list of a backup", path);
	else if (version > VERSION)
		e = err_set(why, ERR_UNSUPPORTED, "%s is of a newer rivuletd", path);
	free(text);
	if (e)
		json_free(list);
	else
		*out = list;
	return e;
}

/* Does the name stay inside the directory? Anyone may have changed the list of a copy. */
static bool
is_inside(const char *name)
{
	static const char *const folders[] = {"keys/", "models/", "spool/"};
	const char *base = NULL;

	if (strcmp(name, "rivulet.db") == 0)
		return true;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (strncmp(name, folders[i], strlen(folders[i])) == 0)
			base = name + strlen(folders[i]);
	return base && base[0] != '\0' && base[0] != '.' && !strchr(base, '/');
}

static bool
read_entry(const struct json *f, struct backup_list_entry *out)
{
	const char *name = json_string(json_get(f, "name"));
	const char *hex = json_string(json_get(f, "sha256"));

	if (!name || !hex || strlen(name) >= sizeof(out->name) || !is_inside(name))
		return false;
	strcpy(out->name, name);
	return json_u64(json_get(f, "bytes"), &out->bytes) &&
	    hex_decode(out->sha256, HASH_LEN, hex, strlen(hex));
}

enum err
backup_list_each(const struct json *list,
    enum err (*fn)(void *ctx, const struct backup_list_entry *entry, struct why *why), void *ctx,
    struct why *why)
{
	const struct json *f = json_first(json_get(list, "files"));
	enum err e = ERR_OK;

	for (; f && !e; f = json_next(f)) {
		struct backup_list_entry entry;
		e = read_entry(f, &entry)
		    ? fn(ctx, &entry, why)
		    : err_set(
			  why, ERR_CORRUPT, "%s has an entry that no backup has", BACKUP_LIST_NAME);
	}
	return e;
}

struct verify {
	const char *dir;
	void (*differs)(void *ctx, const char *name, const char *what);
	void *ctx;
};

static enum err
verify_entry(void *arg, const struct backup_list_entry *entry, struct why *why)
{
	const struct verify *v = arg;
	const char *what = NULL;
	uint8_t hash[HASH_LEN];
	char path[PATH_MAX];
	struct stat st;

	(void)why;
	snprintf(path, sizeof(path), "%s/%s", v->dir, entry->name);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0)
		what = "it is missing";
	else if ((uint64_t)st.st_size != entry->bytes)
		what = "it has another length than when it was copied";
	else if (hash_file(fd, hash) || memcmp(hash, entry->sha256, HASH_LEN) != 0)
		what = "it has other bytes than when it was copied";
	if (fd >= 0)
		close(fd);
	if (what)
		v->differs(v->ctx, entry->name, what);
	return ERR_OK;
}

enum err
backup_list_verify(const char *dir, void (*differs)(void *ctx, const char *name, const char *what),
    void *ctx, struct why *why)
{
	struct verify v = {dir, differs, ctx};
	struct json *list = NULL;

	enum err e = backup_list_load(&list, dir, why);
	if (e)
		return e;
	e = backup_list_each(list, verify_entry, &v, why);
	json_free(list);
	return e;
}
