#include "backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "clock.h"
#include "copy.h"
#include "err.h"
#include "file.h"
#include "hex.h"
#include "inspect.h"
#include "json.h"
#include "keys_archive.h"
#include "models.h"
#include "rate_control.h"
#include "rate_control_rows.h"
#include "row.h"
#include "store.h"

#define TRIES_MAX 100
#define NAME_ROOM 88 /* models/, 64 digits, .state */

struct names {
	char (*items)[NAME_ROOM];
	size_t count, room;
};

struct copying {
	struct backup *b;
	/* Inside one transaction while the files are listed and the database copied. */
	struct store_db *db;
	struct names names;
	char links[PATH_MAX]; /* the folder of links */
	int links_fd; /* locked */
	struct backup_pace pace;
	struct json *list;
};

/* --- which files */

static enum err
add_name(struct names *n, const char *folder, const void *id, size_t len, const char *suffix)
{
	char hex[65];

	void *items = bytes_grow(n->items, n->count, &n->room, sizeof(*n->items));
	if (!items)
		return ERR_NOMEM;
	n->items = items;
	hex_encode(hex, id, len);
	snprintf(n->items[n->count++], NAME_ROOM, "%s/%s%s", folder, hex, suffix);
	return ERR_OK;
}

static enum err
add_delta(void *ctx, const struct store_accept *a)
{
	return add_name(&((struct copying *)ctx)->names, "spool", a->task, 16, ".delta");
}

/* Adds the optimizer states that the job's guard may go back to, now or later. */
static enum err
add_held(struct copying *w, const struct store_job *j, const uint8_t present[32])
{
	static const uint8_t none[32];
	struct rate_control c;

	const uint8_t *state;

	enum err e = rate_control_rows_of(w->db, j, &c);
	for (uint32_t i = 0; !e && (state = rate_control_held(&c, i)); i++)
		if (memcmp(state, none, 32) != 0 && memcmp(state, present, 32) != 0)
			e = add_name(&w->names, "models", state, 32, ".state");
	return e;
}

static enum err
add_job(void *ctx, const struct store_job *j)
{
	static const uint8_t none[32];
	struct copying *w = ctx;
	struct store_round r;

	if (!states_job_lives(j->state))
		return ERR_OK;
	enum err e = store_round_last(w->db, j->id, &r);
	if (e || !states_round_is_open(r.state))
		return e == ERR_NOTFOUND ? ERR_OK : e;
	if (memcmp(r.optimizer_state, none, 32) != 0)
		e = add_name(&w->names, "models", r.optimizer_state, 32, ".state");
	if (!e)
		e = add_held(w, j, r.optimizer_state);
	if (e || r.state == OUTCOME_EVALUATING)
		return e;
	return store_accept_waiting(w->db, j->id, r.round, add_delta, w);
}

static enum err
add_model(void *ctx, const struct store_model *m)
{
	struct copying *w = ctx;
	char path[PATH_MAX];

	enum err e = add_name(&w->names, "models", m->id, 32, MODELS_DIFFERENCE);
	if (e)
		return e;
	/* Not every model has one. */
	snprintf(path, sizeof(path), "%s/%s", w->b->state_dir, w->names.items[w->names.count - 1]);
	if (access(path, F_OK) != 0)
		w->names.count--;
	return add_name(&w->names, "models", m->id, 32, "");
}

static enum err
list_files(struct copying *w, struct why *why)
{
	w->names.count = 0;
	enum err e = store_job_each(w->db, add_job, w);
	if (!e)
		e = store_model_each(w->db, add_model, w);
	return e ? err_set(why, e, "reading the database: %s", store_inspect_why(w->db)) : ERR_OK;
}

/* --- holding them */

static void
link_path(const struct copying *w, size_t i, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%.4000s/%zu", w->links, i);
}

/* Makes a hard link to each file. ERR_NOTFOUND if a file was removed since the transaction began: its round ended, or by retention. */
static enum err
hold_files(struct copying *w, struct why *why)
{
	char from[PATH_MAX], to[PATH_MAX];

	for (size_t i = 0; i < w->names.count; i++) {
		snprintf(from, sizeof(from), "%s/%s", w->b->state_dir, w->names.items[i]);
		link_path(w, i, to);
		if (link(from, to) == 0)
			continue;
		if (errno == ENOENT)
			return err_set(
			    why, ERR_NOTFOUND, "%s is missing: rivuletd check says more", from);
		/* The spool may lie on a file system of its own. */
		struct backup_copy copy = {
		    w->b->state_dir, w->b->dir, w->names.items[i], NULL, NULL};
		struct backup_list_entry entry = {.bytes = 0};
		struct backup_pace fast = {.rate = 0};
		enum err e = backup_copy_file(&copy, &fast, &entry, why);
		if (e)
			return e;
		backup_list_add(w->list, &entry);
		w->names.items[i][0] = '\0';
	}
	return ERR_OK;
}

static enum err
empty_folders(const char *dir, struct why *why)
{
	static const char *const folders[] = {"models", "spool", "keys", "."};
	char path[PATH_MAX];
	enum err e = ERR_OK;

	for (size_t i = 0; i < 4 && !e; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, folders[i]);
		e = file_empty_dir(path, why);
		if (i < 3)
			rmdir(path);
	}
	return e;
}

static enum err
make_folders(struct copying *w, struct why *why)
{
	static const char *const folders[] = {"models", "spool", "keys"};
	char path[PATH_MAX];
	enum err e = file_mkdirs(w->b->dir, 0700, why);

	for (size_t i = 0; i < (w->b->keys ? 3 : 2) && !e; i++) {
		snprintf(path, sizeof(path), "%s/%s", w->b->dir, folders[i]);
		e = file_mkdirs(path, 0700, why);
	}
	return e;
}

/* Gets rows and hard links of one state, and leaves the transaction open. */
static enum err
freeze(struct copying *w, struct why *why)
{
	const struct timespec pause = {0, 20000000};
	enum err e = ERR_NOTFOUND;

	for (w->b->tries = 1; e == ERR_NOTFOUND && w->b->tries <= TRIES_MAX; w->b->tries++) {
		json_free(w->list);
		w->list = NULL;
		e = file_empty_dir(w->links, why);
		if (!e)
			e = empty_folders(w->b->dir, why);
		if (!e)
			e = make_folders(w, why);
		if (!e)
			e = store_inspect_begin(w->db, false, why);
		if (e)
			return e;
		if (store_meta_get(w->db, "incarnation", &w->b->incarnation))
			w->b->incarnation = 1;
		w->list = backup_list_new(w->b->incarnation, w->b->keys);
		e = list_files(w, why);
		if (!e)
			e = hold_files(w, why);
		if (e)
			store_inspect_rollback(w->db);
		if (e == ERR_NOTFOUND)
			nanosleep(&pause, NULL);
	}
	w->b->tries--;
	return e;
}

/* --- copying */

/* Files in models/ are named by their hash: a damaged one is found here at the latest. */
static enum err
check_name(const struct backup_list_entry *entry, struct why *why)
{
	uint8_t id[HASH_LEN];

	/* A difference's hash stands in its head: nothing rests on it. */
	if (strncmp(entry->name, "models/", 7) != 0 ||
	    strcmp(entry->name + strlen(entry->name) - 5, MODELS_DIFFERENCE) == 0 ||
	    !hex_decode(id, HASH_LEN, entry->name + 7, 64) ||
	    memcmp(id, entry->sha256, HASH_LEN) == 0)
		return ERR_OK;
	return err_set(
	    why, ERR_CORRUPT, "%s does not match its name: rivuletd check says more", entry->name);
}

static enum err
copy_held(struct copying *w, struct why *why)
{
	char from[PATH_MAX];
	enum err e = ERR_OK;

	for (size_t i = 0; i < w->names.count && !e; i++) {
		struct backup_copy copy = {NULL, w->b->dir, w->names.items[i], from, NULL};
		struct backup_list_entry entry = {.bytes = 0};
		if (!w->names.items[i][0])
			continue;
		link_path(w, i, from);
		copy.from_dir = w->links;
		e = backup_copy_file(&copy, &w->pace, &entry, why);
		if (!e)
			e = check_name(&entry, why);
		if (!e)
			backup_list_add(w->list, &entry);
		unlink(from);
	}
	return e;
}

static enum err
copy_key(void *ctx, const char *base, struct why *why)
{
	struct copying *w = ctx;
	char name[NAME_ROOM];
	struct backup_copy copy = {w->b->state_dir, w->b->dir, name, NULL, NULL};
	struct backup_list_entry entry = {.bytes = 0};

	snprintf(name, sizeof(name), "keys/%.64s", base);
	enum err e = backup_copy_file(&copy, &w->pace, &entry, why);
	if (!e)
		backup_list_add(w->list, &entry);
	return e;
}

/* Copies keys/, and checks that a coordinator could start with them: at a restore it would be too late. */
static enum err
copy_keys(struct copying *w, struct why *why)
{
	struct services_ca *ca = NULL;

	if (!w->b->keys)
		return ERR_OK;
	enum err e = keys_archive_each(w->b->state_dir, copy_key, w, why);
	if (!e)
		e = keys_check(w->b->dir, &ca, why);
	if (!e)
		e = keys_compare_database(w->db, ca, false, why);
	keys_free_ca(ca);
	return e;
}

/* Marks the copied database as a backup. */
static enum err
mark(const char *path, struct why *why)
{
	struct store_db *db = NULL;
	uint64_t version;

	enum err e = store_inspect_open(&db, path, true, &version, why);
	if (e)
		return e;
	e = store_meta_put(db, "backup", (uint64_t)clock_wall());
	if (e)
		err_set(why, e, "mark %s: %s", path, store_inspect_why(db));
	store_inspect_close(db);
	return e;
}

static enum err
copy_database(struct copying *w, struct why *why)
{
	struct backup_list_entry entry = {.name = "rivulet.db"};
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/rivulet.db", w->b->dir);
	enum err e = store_inspect_copy(w->db, path, backup_copy_wait, &w->pace, why);
	store_inspect_rollback(w->db);
	if (!e)
		e = mark(path, why);
	if (e)
		return e;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		e = err_errno(why, "open %s", path);
	if (!e && (e = hash_file(fd, entry.sha256)))
		err_set(why, e, "read %s", path);
	if (!e && fsync(fd) != 0)
		e = err_errno(why, "sync %s", path);
	if (fd >= 0)
		close(fd);
	entry.bytes = e ? 0 : (uint64_t)st.st_size;
	if (!e)
		backup_list_add(w->list, &entry);
	return e;
}

static enum err
sync_all(const struct backup *b, struct why *why)
{
	static const char *const folders[] = {"models", "spool", "keys"};
	char path[PATH_MAX];
	enum err e = ERR_OK;

	for (size_t i = 0; i < (b->keys ? 3 : 2) && !e; i++) {
		snprintf(path, sizeof(path), "%s/%s", b->dir, folders[i]);
		e = file_sync_dir(path, why);
	}
	return e ? e : file_sync_dir(b->dir, why);
}

static enum err
add_bytes(void *ctx, const struct backup_list_entry *entry, struct why *why)
{
	uint64_t *sum = ctx;

	(void)why;
	*sum += entry->bytes;
	return ERR_OK;
}

static enum err
copy_all(struct copying *w, struct why *why)
{
	enum err e = freeze(w, why);

	if (!e)
		e = copy_database(w, why);
	if (!e)
		e = copy_held(w, why);
	if (!e)
		e = copy_keys(w, why);
	if (!e)
		e = sync_all(w->b, why);
	if (!e)
		e = backup_list_save(w->list, w->b->dir, why);
	w->b->files = json_count(json_get(w->list, "files"));
	w->b->bytes = 0;
	return e ? e : backup_list_each(w->list, add_bytes, &w->b->bytes, why);
}

/* --- beginning and end */

static enum err
check_target(const struct backup *b, struct why *why)
{
	char state[PATH_MAX], target[PATH_MAX];
	struct dirent *ent;
	bool empty = true;

	enum err e = backup_list_room(b->dir, why);
	if (!e)
		e = file_mkdirs(b->dir, 0700, why);
	if (e)
		return e;
	DIR *d = opendir(b->dir);
	if (!d)
		return err_errno(why, "open %s", b->dir);
	while ((ent = readdir(d)))
		empty &= strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0;
	closedir(d);
	if (!empty)
		return err_set(why, ERR_EXISTS, "%s is not empty", b->dir);
	if (!realpath(b->state_dir, state) || !realpath(b->dir, target))
		return err_errno(why, "%s", b->state_dir);
	size_t len = strlen(state);
	if (strncmp(state, target, len) == 0 && (target[len] == '/' || target[len] == '\0'))
		return err_set(why, ERR_INVALID, "%s is inside the state directory", b->dir);
	return ERR_OK;
}

/* Makes and locks the folder of links, so that one backup runs at a time; freeze empties it of what a killed backup left. */
static enum err
open_links(struct copying *w, struct why *why)
{
	snprintf(w->links, sizeof(w->links), "%s/backup.links", w->b->state_dir);
	enum err e = file_mkdirs(w->links, 0700, why);
	if (e)
		return e;
	w->links_fd = open(w->links, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->links_fd < 0)
		return err_errno(why, "open %s", w->links);
	if (flock(w->links_fd, LOCK_EX | LOCK_NB) != 0)
		return err_set(why, ERR_STATE, "another backup of %s is running", w->b->state_dir);
	return ERR_OK;
}

static enum err
open_database(struct copying *w, struct why *why)
{
	char path[PATH_MAX];
	uint64_t version = 0;

	snprintf(path, sizeof(path), "%s/rivulet.db", w->b->state_dir);
	enum err e = store_inspect_open(&w->db, path, false, &version, why);
	if (!e && version != store_inspect_known())
		e = err_set(why, ERR_UNSUPPORTED,
		    "%s is of an older version: start rivuletd once first", path);
	return e;
}

/* Empties the directory of an unfinished backup. */
static void
take_away(const struct backup *b, enum err e, struct why *why)
{
	struct why first = *why;

	if (empty_folders(b->dir, NULL))
		err_set(why, e, "%.120s; and %.100s could not be emptied", first.text, b->dir);
}

enum err
backup_make(struct backup *b, struct why *why)
{
	struct copying *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(why, ERR_NOMEM, "no memory");
	*w = (struct copying){.b = b, .links_fd = -1, .pace = {b->rate, clock_ms(), 0}};
	enum err e = check_target(b, why);
	if (!e)
		e = open_database(w, why);
	if (!e)
		e = open_links(w, why);
	if (!e) {
		e = copy_all(w, why);
		if (file_empty_dir(w->links, NULL) == ERR_OK)
			rmdir(w->links);
		if (e)
			take_away(b, e, why);
	}
	store_inspect_close(w->db);
	if (w->links_fd >= 0)
		close(w->links_fd);
	json_free(w->list);
	free(w->names.items);
	free(w);
	return e;
}
