#include "restore.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "copy.h"
#include "file.h"
#include "inspect.h"
#include "json.h"
#include "keys.h"
#include "store.h"

#define DATABASE "rivulet.db"
#define UNFINISHED DATABASE STORE_UNFINISHED

struct restore {
	struct backup *b;
	struct backup_pace pace;
	bool database; /* this pass copies the database, else all other files */
	int lock_fd;
};

static bool
is_empty(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct dirent *ent;
	bool empty = true;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	DIR *d = opendir(path);
	if (!d)
		return errno == ENOENT;
	while ((ent = readdir(d)))
		empty &= strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0;
	closedir(d);
	return empty;
}

static bool
is_there(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lstat(path, &st) == 0;
}

/* Gives a file that root has copied to the owner of the state directory. */
static enum err
give(const struct restore *r, const char *name, struct why *why)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", r->b->state_dir, name);
	return file_give(path, r->b->state_dir, why);
}

/* ERR_DENIED if the keys are another coordinator's, or older than the last replacement of the CA: devices would be locked out. Without keys
 * nothing is compared: keys may come later. */
static enum err
compare_keys(const struct restore *r, const char *database, struct why *why)
{
	struct services_ca *ca = NULL;
	struct store_db *db = NULL;
	uint64_t version;

	if (backup_restore_missing_key(r->b->state_dir))
		return ERR_OK;
	enum err e = keys_check(r->b->state_dir, &ca, why);
	if (!e)
		e = store_inspect_open(&db, database, false, &version, why);
	if (!e)
		e = keys_compare_database(db, ca, false, why);
	store_inspect_close(db);
	keys_free_ca(ca);
	return e;
}

/* Migrates the database and renames it, so that after a crash before that no coordinator can start from the rest. */
static enum err
adopt_database(const struct restore *r, struct why *why)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct store *s = NULL;

	snprintf(from, sizeof(from), "%s/" UNFINISHED, r->b->state_dir);
	snprintf(to, sizeof(to), "%s/" DATABASE, r->b->state_dir);
	enum err e = store_open(&s, from, why);
	store_close(s);
	if (!e)
		e = compare_keys(r, from, why);
	if (!e)
		e = give(r, UNFINISHED, why);
	if (!e && rename(from, to) != 0)
		e = err_errno(why, "rename %s", from);
	return e;
}

static enum err
restore_file(void *ctx, const struct backup_list_entry *listed, struct why *why)
{
	struct restore *r = ctx;
	struct backup_copy copy = {
	    r->b->dir, r->b->state_dir, listed->name, NULL, r->database ? UNFINISHED : NULL};
	struct backup_list_entry found = {.bytes = 0};

	if ((strcmp(listed->name, DATABASE) == 0) != r->database ||
	    (r->b->kept_keys && strncmp(listed->name, "keys/", 5) == 0))
		return ERR_OK;
	enum err e = backup_copy_file(&copy, &r->pace, &found, why);
	if (e)
		return e;
	r->b->files++;
	if (found.bytes != listed->bytes || memcmp(found.sha256, listed->sha256, HASH_LEN) != 0)
		return err_set(why, ERR_CORRUPT,
		    "%s/%s is not as it was copied: use another backup", r->b->dir, listed->name);
	return r->database ? adopt_database(r, why) : give(r, listed->name, why);
}

static enum err
prepare(struct restore *r, struct why *why)
{
	static const char *const folders[] = {"models", "spool", "keys"};
	const char *state = r->b->state_dir;
	char path[PATH_MAX];

	enum err e = file_mkdirs(state, 0700, why);
	if (e)
		return e;
	snprintf(path, sizeof(path), "%s/lock", state);
	e = file_lock(path, &r->lock_fd, why);
	if (e)
		return e == ERR_EXISTS ? err_set(why, ERR_STATE, "a coordinator uses %s", state)
				       : e;
	if (is_there(state, DATABASE) || is_there(state, DATABASE "-wal") ||
	    !is_empty(state, "models") || !is_empty(state, "spool"))
		return err_set(
		    why, ERR_EXISTS, "%s holds a coordinator's state: move it away first", state);
	r->b->kept_keys = !is_empty(state, "keys");
	e = give(r, "lock", why);
	for (size_t i = 0; i < 3 && !e; i++) {
		bool made = !is_there(state, folders[i]);
		snprintf(path, sizeof(path), "%s/%s", state, folders[i]);
		e = file_mkdirs(path, 0700, why);
		if (!e && made)
			e = give(r, folders[i], why);
	}
	return e;
}

static enum err
sync_all(const struct restore *r, struct why *why)
{
	static const char *const folders[] = {"models", "spool", "keys", "."};
	char path[PATH_MAX];
	enum err e = ERR_OK;

	for (size_t i = 0; i < 4 && !e; i++) {
		snprintf(path, sizeof(path), "%s/%s", r->b->state_dir, folders[i]);
		e = file_sync_dir(path, why);
	}
	return e;
}

static enum err
copy_all(struct restore *r, const struct json *list, struct why *why)
{
	char path[PATH_MAX];

	enum err e = backup_list_each(list, restore_file, r, why);
	if (!e)
		e = sync_all(r, why);
	r->database = true;
	if (!e)
		e = backup_list_each(list, restore_file, r, why);
	if (!e && !is_there(r->b->state_dir, DATABASE))
		e = err_set(
		    why, ERR_CORRUPT, "%s/%s names no database", r->b->dir, BACKUP_LIST_NAME);
	if (!e)
		e = sync_all(r, why);
	r->b->bytes = r->pace.bytes;
	if (!e)
		return e;
	static const char *const databases[] = {DATABASE, UNFINISHED};
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", r->b->state_dir, databases[i]);
		unlink(path);
	}
	static const char *const folders[] = {"models", "spool", "keys"};
	for (size_t i = 0; i < (r->b->kept_keys ? 2 : 3); i++) {
		snprintf(path, sizeof(path), "%s/%s", r->b->state_dir, folders[i]);
		if (file_empty_dir(path, NULL))
			break;
	}
	return e;
}

enum err
backup_restore_run(struct backup *b, struct why *why)
{
	struct restore r = {.b = b, .pace = {b->rate, clock_ms(), 0}, .lock_fd = -1};
	struct json *list = NULL;

	enum err e = backup_list_load(&list, b->dir, why);
	if (e == ERR_NOTFOUND)
		return err_set(
		    why, e, "%s has no %s: it is not a whole backup", b->dir, BACKUP_LIST_NAME);
	if (e)
		return e;
	if (!json_u64(json_get(list, "incarnation"), &b->incarnation))
		b->incarnation = 1;
	e = prepare(&r, why);
	if (!e)
		e = copy_all(&r, list, why);
	json_free(list);
	if (r.lock_fd >= 0)
		close(r.lock_fd);
	return e;
}

const char *
backup_restore_missing_key(const char *state_dir)
{
	static const char *const needed[] = {"keys/ca.key", "keys/ca.crt", "keys/server.key",
	    "keys/server.crt", "keys/sign.key", "keys/sign.crt", "keys/task.key"};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!is_there(state_dir, needed[i]))
			return needed[i];
	return NULL;
}
