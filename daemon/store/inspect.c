#include "inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault.h"
#include "file.h"
#include "store_inside.h"

#define COPY_PAGES 256

/* Closing the last connection would move the log into the database and remove the log, which a reader must not do. */
static void
keep_log(struct store_db *db, const char *path)
{
	char wal[4096];
	struct stat st;

	int n = snprintf(wal, sizeof(wal), "%s-wal", path);
	if (n > 0 && (size_t)n < sizeof(wal) && stat(wal, &st) == 0 && st.st_size > 0)
		sqlite3_db_config(db->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

enum err
store_inspect_open(
    struct store_db **out, const char *path, bool write, uint64_t *version, struct why *why)
{
	struct store_db *db = calloc(1, sizeof(*db));
	struct stat st;

	if (!db)
		return err_set(why, ERR_NOMEM, "no memory for %s", path);
	if (stat(path, &st) != 0) {
		free(db);
		return err_errno(why, "%s", path);
	}
	enum err e = store_schema_connect(db, path,
	    write ? "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL"
		  : "PRAGMA query_only = ON");
	if (db->sql && !write)
		keep_log(db, path);
	e = e ? e : store_schema_version(db, version);
	if (!e && write && *version == store_schema_known())
		e = store_sums_keep(db);
	db->unjudged = true;
	if (e) {
		err_set(why, e, "%s: %s", path, db->last.text);
		store_inspect_close(db);
		return e;
	}
	*out = db;
	return ERR_OK;
}

const char *
store_inspect_why(const struct store_db *db)
{
	return db->last.text;
}

uint64_t
store_inspect_known(void)
{
	return store_schema_known();
}

void
store_inspect_close(struct store_db *db)
{
	if (db)
		store_schema_close(db);
	free(db);
}

static enum err
run(struct store_db *db, const char *sql, struct why *why)
{
	enum err e = store_schema_execute(db, sql);

	return e ? err_set(why, e, "%s: %s", sql, db->last.text) : ERR_OK;
}

enum err
store_inspect_begin(struct store_db *db, bool write, struct why *why)
{
	if (write)
		return run(db, "BEGIN IMMEDIATE", why);
	/* A deferred transaction sees its state from the first read on. */
	enum err e = run(db, "BEGIN", why);
	return e ? e : run(db, "SELECT count(*) FROM sqlite_schema", why);
}

enum err
store_inspect_commit(struct store_db *db, struct why *why)
{
	return run(db, "COMMIT", why);
}

void
store_inspect_rollback(struct store_db *db)
{
	if (!sqlite3_get_autocommit(db->sql) && store_schema_execute(db, "ROLLBACK"))
		return;
}

bool
store_inspect_proved(const struct store_db *db)
{
	return db->proved;
}

enum err
store_inspect_schema(struct store_db *db, uint64_t version, struct why *why)
{
	enum err e = store_schema_compare(db, version);

	return e ? err_set(why, e, "%s", db->last.text) : ERR_OK;
}

/* Compares the bytes of the first 100 that are equal in all databases of a coordinator (SQLite's "Database File Format", 1.3). SQLite
 * itself ignores some of them, and with another byte there would read the file as read-only, or its texts as UTF-16. */
enum err
store_inspect_header(const char *path, struct why *why)
{
	static const struct {
		size_t at, len;
		const char *bytes;
	} fixed[] = {
	    {0, 16, "SQLite format 3"},
	    {20, 4, "\0\x40\x20\x20"},
	    {44, 16, "\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\1"},
	    {64, 4, "\0\0\0"},
	    {72, 20, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
	};
	uint8_t h[100];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(why, "open %s", path);
	enum err e = file_pread(fd, h, sizeof(h), 0);
	close(fd);
	if (e)
		return err_set(why, ERR_CORRUPT, "its header cannot be read");
	bool sound = h[18] == h[19] && (h[18] == 1 || h[18] == 2);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
		sound &= memcmp(h + fixed[i].at, fixed[i].bytes, fixed[i].len) == 0;
	return sound ? ERR_OK : err_set(why, ERR_CORRUPT, "its header is damaged");
}

struct faults {
	void (*fn)(void *ctx, const char *line);
	void *ctx;
};

static int
integrity_line(void *arg, int count, char **values, char **names)
{
	const struct faults *f = arg;

	(void)names;
	if (count > 0 && values[0] && strcmp(values[0], "ok") != 0)
		f->fn(f->ctx, values[0]);
	return 0;
}

static int
foreign_line(void *arg, int count, char **values, char **names)
{
	const struct faults *f = arg;
	char line[256];

	(void)names;
	snprintf(line, sizeof(line), "a row of table %s refers to a row of %s that is not there",
	    count > 0 && values[0] ? values[0] : "?", count > 2 && values[2] ? values[2] : "?");
	f->fn(f->ctx, line);
	return 0;
}

enum err
store_inspect_faults(
    struct store_db *db, void (*fn)(void *ctx, const char *line), void *ctx, struct why *why)
{
	struct faults f = {fn, ctx};

	int rc = sqlite3_exec(db->sql, "PRAGMA integrity_check(100)", integrity_line, &f, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db->sql, "SELECT * FROM pragma_foreign_key_check LIMIT 100",
		    foreign_line, &f, NULL);
	if (rc == SQLITE_OK)
		return ERR_OK;
	enum err e = store_schema_error(db, rc);
	return err_set(why, e, "%s", db->last.text);
}

/* --- copying */

static enum err
copy_pages(struct store_db *from, sqlite3 *to, void (*pause)(void *ctx, uint64_t bytes), void *ctx)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", from->sql, "main");
	int rc = SQLITE_OK, end = SQLITE_OK;

	if (!b)
		return err_set(&from->last, ERR_IO, "%s", sqlite3_errmsg(to));
	while (rc == SQLITE_OK) {
		rc = sqlite3_backup_step(b, COPY_PAGES);
		if (rc == SQLITE_OK && pause)
			pause(ctx, COPY_PAGES * 4096);
	}
	end = sqlite3_backup_finish(b);
	if (rc == SQLITE_DONE && end == SQLITE_OK)
		return ERR_OK;
	return store_schema_error(from, rc == SQLITE_DONE ? end : rc);
}

enum err
store_inspect_copy(struct store_db *db, const char *to, void (*pause)(void *ctx, uint64_t bytes),
    void *ctx, struct why *why)
{
	sqlite3 *copy = NULL;
	/* Made here, so that nobody else may read it from the first moment on. */
	int fd = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno(why, "create %s", to);
	int rc = sqlite3_open_v2(to, &copy, SQLITE_OPEN_READWRITE, NULL);
	enum err e = rc == SQLITE_OK ? copy_pages(db, copy, pause, ctx) : ERR_IO;
	if (e)
		err_set(why, e, "copying the database to %s: %s", to, db->last.text);
	sqlite3_close(copy);
	if (!e && fsync(fd) != 0)
		e = err_errno(why, "sync %s", to);
	close(fd);
	return e;
}

/* --- a new database */

/* What an earlier call left, and what of it is not in the database's own file. */
static enum err
remove_unfinished(const char *temp, struct why *why)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	char path[PATH_MAX + 8];

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", temp, ends[i]);
		if (unlink(path) != 0 && errno != ENOENT)
			return err_errno(why, "remove %s", path);
	}
	return ERR_OK;
}

/* Renames the new database. Closing has moved the log into the file; a log that is still there holds commits that would be lost. */
static enum err
adopt(const char *temp, const char *path, struct why *why)
{
	char wal[PATH_MAX + 8];

	snprintf(wal, sizeof(wal), "%s-wal", temp);
	if (access(wal, F_OK) == 0)
		return err_set(why, ERR_IO, "%s could not be moved into its database", wal);
	int fd = open(temp, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_errno(why, "open %s", temp);
	enum err e = file_commit(fd, temp, path, why);
	close(fd);
	return e;
}

enum err
store_create(const char *path, store_work first, void *arg, struct why *why)
{
	char temp[PATH_MAX];
	struct store *s = NULL;

	if (snprintf(temp, sizeof(temp), "%s" STORE_UNFINISHED, path) >= PATH_MAX)
		return err_set(why, ERR_LIMIT, "path too long: %s", path);
	if (access(path, F_OK) == 0)
		return err_set(why, ERR_EXISTS, "%s is there already", path);
	enum err e = remove_unfinished(temp, why);
	if (!e)
		e = store_open_fresh(&s, temp, why);
	if (!e && first)
		e = store_write(s, first, arg, why);
	store_close(s);
	FAULT("store.created");
	return e ? e : adopt(temp, path, why);
}
