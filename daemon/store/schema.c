#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "num.h"
#include "store_inside.h"
#include "wal.h"

#define TO_TEXT(x) #x
#define QUOTE(x) TO_TEXT(x)

#define APPLICATION_ID 1381390420 /* "RVLT" */
#define BUSY_MS 10000
#define CHECKPOINT_PAGES 4000
/* A file of at most so many bytes is checked at opening, which takes well under a second. */
#define CHECK_BYTES_MAX (64 << 20)

/* Defaults of added columns must be constants. */
#define ZERO8 "0000000000000000"
#define ZERO32 ZERO8 ZERO8 ZERO8 ZERO8
#define ZERO91 ZERO32 ZERO32 ZERO8 ZERO8 ZERO8 "000000"

#define SUMMED(table, row) \
	"ALTER TABLE " #table " ADD COLUMN checksum INTEGER;" \
	"CREATE TRIGGER " #table "_changed AFTER UPDATE ON " #table \
	" WHEN NEW.checksum IS OLD.checksum BEGIN UPDATE " #table \
	" SET checksum = NULL WHERE " row "; END;"

/*
 * Each text leads from its index to the next user_version; texts that were ever released never change. Blobs of fixed
 * length are checked here once, so a row that does not fit its struct cannot come in by another way.
 */
static const char *const migrations[] = {
    "PRAGMA application_id = " QUOTE(
	APPLICATION_ID) ";"
			"CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, "
			"WITHOUT ROWID;"
			"CREATE TABLE device ("
			"	id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 32),"
			"	spki BLOB NOT NULL CHECK (length(spki) = 91),"
			"	name TEXT NOT NULL, role TEXT NOT NULL, state TEXT NOT NULL, "
			"labels TEXT NOT NULL,"
			"	joined_at REAL) STRICT;"
			"CREATE TABLE token ("
			"	id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 8),"
			"	secret_hash BLOB NOT NULL CHECK (length(secret_hash) = 32),"
			"	role TEXT NOT NULL, labels TEXT NOT NULL, uses INTEGER NOT NULL, "
			"uses_left INTEGER NOT NULL,"
			"	created_at REAL, expires_at REAL, revoked INTEGER NOT NULL) STRICT;"
			"CREATE TABLE joined ("
			"	token BLOB NOT NULL REFERENCES token, spki BLOB NOT NULL CHECK "
			"(length(spki) = 91),"
			"	device BLOB NOT NULL REFERENCES device, PRIMARY KEY (token, spki)) "
			"STRICT, WITHOUT ROWID;"
			"CREATE TABLE job ("
			"	id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16), document "
			"TEXT NOT NULL,"
			"	state TEXT NOT NULL, reason TEXT NOT NULL, created_at REAL) STRICT;"
			"CREATE TABLE round ("
			"	job BLOB NOT NULL REFERENCES job, round INTEGER NOT NULL, state "
			"TEXT NOT NULL,"
			"	base BLOB NOT NULL CHECK (length(base) = 32), model BLOB NOT NULL "
			"CHECK (length(model) = 32),"
			"	optimizer_state BLOB NOT NULL CHECK (length(optimizer_state) = 32),"
			"	reports INTEGER NOT NULL, invited INTEGER NOT NULL, aborted "
			"INTEGER NOT NULL,"
			"	reopened INTEGER NOT NULL, goal INTEGER NOT NULL, examples INTEGER "
			"NOT NULL,"
			"	bytes_up INTEGER NOT NULL, bytes_down INTEGER NOT NULL, loss REAL, "
			"accuracy REAL, norm REAL,"
			"	eval_known INTEGER NOT NULL, eval_examples INTEGER NOT NULL, "
			"eval_loss REAL, eval_accuracy REAL,"
			"	opened_at REAL, closed_at REAL, reason TEXT NOT NULL,"
			"	PRIMARY KEY (job, round)) STRICT;"
			"CREATE TABLE accept ("
			"	job BLOB NOT NULL, round INTEGER NOT NULL, device BLOB NOT NULL "
			"REFERENCES device,"
			"	task BLOB NOT NULL CHECK (length(task) = 16),"
			"	manifest BLOB NOT NULL CHECK (length(manifest) = 320),"
			"	receipt BLOB NOT NULL CHECK (length(receipt) = 160),"
			"	report TEXT, body_bytes INTEGER NOT NULL, accepted_at REAL,"
			"	PRIMARY KEY (job, round, device), FOREIGN KEY (job, round) "
			"REFERENCES round) STRICT;"
			"CREATE INDEX accept_device ON accept (device);"
			"CREATE TABLE model ("
			"	id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 32), bytes "
			"INTEGER NOT NULL,"
			"	job BLOB NOT NULL CHECK (length(job) = 16), round INTEGER NOT "
			"NULL, created_at REAL) STRICT;",
    "ALTER TABLE device ADD COLUMN previous BLOB NOT NULL DEFAULT x'" ZERO91 "';"
    "ALTER TABLE device ADD COLUMN ca_generation INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE token ADD COLUMN access INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN owner BLOB NOT NULL DEFAULT x'" ZERO32 "';"
    "ALTER TABLE model ADD COLUMN owner BLOB NOT NULL DEFAULT x'" ZERO32 "';"
    /* What a device was last heard to say; lost without harm. */
    "CREATE TABLE seen ("
    "	device BLOB NOT NULL PRIMARY KEY REFERENCES device, last_contact REAL, agent TEXT NOT NULL,"
    "	reason TEXT NOT NULL, refused TEXT NOT NULL, refused_at REAL, aborted TEXT NOT NULL,"
    "	aborted_at REAL, clock_offset REAL, disk_free REAL,"
    "	machine BLOB NOT NULL CHECK (length(machine) = 32),"
    "	other_machine BLOB NOT NULL CHECK (length(other_machine) = 32)) STRICT, WITHOUT ROWID;"
    /* Every key a device had after its first, by SHA-256 of its SPKI. */
    "CREATE TABLE device_key ("
    "	key BLOB NOT NULL PRIMARY KEY CHECK (length(key) = 32),"
    "	device BLOB NOT NULL REFERENCES device) STRICT, WITHOUT ROWID;"
    /* The audit chain: link is the signed entry, body the text it commits to; details lie beside and may be erased. */
    "CREATE TABLE audit ("
    "	seq INTEGER PRIMARY KEY, link BLOB NOT NULL, body TEXT NOT NULL,"
    "	job BLOB, round INTEGER) STRICT;"
    "CREATE INDEX audit_round ON audit (job, round) WHERE job IS NOT NULL;"
    "CREATE TABLE audit_detail ("
    "	seq INTEGER NOT NULL REFERENCES audit, place INTEGER NOT NULL, device BLOB,"
    "	salt BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (seq, place)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX audit_detail_device ON audit_detail (device) WHERE device IS NOT NULL;",
    /* What a rotation costs. */
    "ALTER TABLE device ADD COLUMN rotations_at REAL NOT NULL DEFAULT 0;"
    /* Tombstones of deleted jobs: their documents may never come again. */
    "CREATE TABLE deleted_job ("
    "	id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16), at REAL NOT NULL) STRICT, WITHOUT "
    "ROWID;"
    "ALTER TABLE job ADD COLUMN ended_at REAL;"
    "UPDATE job SET ended_at = max(created_at, coalesce("
    "	(SELECT max(closed_at) FROM round WHERE round.job = job.id), created_at))"
    "	WHERE state IN ('done', 'stopped');"
    /* Names that are one device's each, and tokens that give them. */
    "CREATE INDEX device_name ON device (name) WHERE state IN ('active', 'suspended');"
    "ALTER TABLE token ADD COLUMN name TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE token ADD COLUMN name_prefix TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE token ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
    /* Keys that no device may use any more; when they became that is not known of those of before. */
    "ALTER TABLE device_key ADD COLUMN retired_at REAL;"
    "UPDATE device_key SET retired_at = CAST(strftime('%s', 'now') AS REAL);"
    "CREATE INDEX device_key_device ON device_key (device);"
    /* What trainers report by names of their own. */
    "CREATE TABLE round_metric ("
    "	job BLOB NOT NULL, round INTEGER NOT NULL, name TEXT NOT NULL, mean REAL, "
    "	reports INTEGER NOT NULL, PRIMARY KEY (job, round, name),"
    "	FOREIGN KEY (job, round) REFERENCES round) STRICT, WITHOUT ROWID;"
    /* What is shown of jobs that are over; it follows from their documents and rounds. */
    "CREATE TABLE past_job ("
    "	id BLOB NOT NULL PRIMARY KEY REFERENCES job, owner BLOB NOT NULL CHECK (length(owner) = "
    "32),"
    "	name TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, priority INTEGER NOT NULL,"
    "	created_at REAL, ended_at REAL, round INTEGER NOT NULL, rounds_committed INTEGER NOT NULL,"
    "	base BLOB NOT NULL CHECK (length(base) = 32), model BLOB NOT NULL CHECK (length(model) = "
    "32),"
    "	model_bytes INTEGER NOT NULL, parameters INTEGER NOT NULL, metric_known INTEGER NOT NULL,"
    "	metric_examples INTEGER NOT NULL, metric_loss REAL, metric_accuracy REAL,"
    "	metric_round INTEGER NOT NULL, is_guarded INTEGER NOT NULL, has_best INTEGER NOT NULL,"
    "	bad INTEGER NOT NULL, rollbacks INTEGER NOT NULL, base_round INTEGER NOT NULL,"
    "	best_round INTEGER NOT NULL, best_model BLOB NOT NULL CHECK (length(best_model) = 32),"
    "	best_value REAL) STRICT, WITHOUT ROWID;"
    /* Lost without harm, but for the last seconds. */
    "ALTER TABLE token ADD COLUMN last_used REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE token ADD COLUMN last_address TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX job_brief ON job (created_at, id, state);"
    "CREATE INDEX job_owner ON job (owner, id);",
    /* Jobs that make no models. With them come states of rounds that older programs do not know. */
    "ALTER TABLE past_job ADD COLUMN only_evaluates INTEGER NOT NULL DEFAULT 0;"
    /* What rounds were measured by beyond loss and accuracy, and which models were best. */
    "ALTER TABLE round ADD COLUMN eval_own REAL;"
    "CREATE TABLE round_figures ("
    "	job BLOB NOT NULL, round INTEGER NOT NULL, figures TEXT NOT NULL, PRIMARY KEY (job, round),"
    "	FOREIGN KEY (job, round) REFERENCES round) STRICT;"
    "CREATE TABLE best_model ("
    "	job BLOB NOT NULL REFERENCES job, place INTEGER NOT NULL, round INTEGER NOT NULL,"
    "	model BLOB NOT NULL CHECK (length(model) = 32), value REAL NOT NULL,"
    "	PRIMARY KEY (job, place)) STRICT, WITHOUT ROWID;"
    "ALTER TABLE past_job ADD COLUMN monitor TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE past_job ADD COLUMN monitor_rises INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE past_job ADD COLUMN keep_last INTEGER NOT NULL DEFAULT 4294967295;"
    "ALTER TABLE past_job ADD COLUMN keep_every INTEGER NOT NULL DEFAULT 4294967295;",
    /* The round that a delta goes into, which need not be that of its task. */
    "ALTER TABLE accept ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;"
    "UPDATE accept SET folded = round;"
    "CREATE INDEX accept_folded ON accept (job, folded, device, round);"
    /* The round whose base was measured, where that is not this one's; 0: it is. */
    "ALTER TABLE round ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;"
    /* What was changed of jobs beside their documents, and what of it was in force in which rounds. */
    "CREATE TABLE job_override ("
    "	job BLOB NOT NULL PRIMARY KEY REFERENCES job, overrides TEXT NOT NULL) STRICT, "
    "WITHOUT ROWID;"
    "CREATE TABLE round_override ("
    "	job BLOB NOT NULL, round INTEGER NOT NULL, overrides TEXT NOT NULL, "
    "	PRIMARY KEY (job, round), FOREIGN KEY (job, round) REFERENCES round) STRICT, "
    "WITHOUT ROWID;"
    /* How fast devices were, and how many steps the tasks have that are sized by that. */
    "CREATE TABLE speed ("
    "	job BLOB NOT NULL REFERENCES job, device BLOB NOT NULL REFERENCES device,"
    "	slot INTEGER NOT NULL, serial INTEGER NOT NULL, steps INTEGER NOT NULL,"
    "	seconds REAL NOT NULL, samples REAL NOT NULL, up_bytes INTEGER NOT NULL,"
    "	up_seconds REAL NOT NULL, at REAL NOT NULL, PRIMARY KEY (job, device, slot)) STRICT, "
    "WITHOUT ROWID;"
    "CREATE INDEX speed_device ON speed (device);"
    "CREATE TABLE sized ("
    "	job BLOB NOT NULL REFERENCES job, round INTEGER NOT NULL,"
    "	device BLOB NOT NULL REFERENCES device, steps INTEGER NOT NULL,"
    "	PRIMARY KEY (job, round, device)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX sized_device ON sized (device);",
    /* Who has a task of a buffered job, which outlives rounds and restarts. */
    "CREATE TABLE task_out ("
    "	job BLOB NOT NULL REFERENCES job, device BLOB NOT NULL REFERENCES device,"
    "	round INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (job, device)) STRICT, "
    "WITHOUT ROWID;"
    "CREATE INDEX task_out_device ON task_out (device);",
    /* Whose a deleted job was; "": not known. */
    "ALTER TABLE deleted_job ADD COLUMN owner BLOB NOT NULL DEFAULT x'' "
    "	CHECK (length(owner) IN (0, 32));"
    /* Until when a device's key became its own (0: nobody knows), the same of the key that a backup had, and what came of newer keys
     * that were shown to the state restored from it. */
    "ALTER TABLE device ADD COLUMN key_at REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE device ADD COLUMN restored_key_at REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE device ADD COLUMN claim TEXT NOT NULL DEFAULT 'none';"
    "CREATE TABLE device_claim ("
    "	device BLOB NOT NULL REFERENCES device, spki BLOB NOT NULL CHECK (length(spki) = 91),"
    "	issued_at REAL NOT NULL, PRIMARY KEY (device, spki)) STRICT, WITHOUT ROWID;"
    /* What has no date yet is looked for every hour: nobody goes over all jobs for that, whose dates lie behind their documents. */
    "CREATE INDEX device_undated ON device (id) WHERE key_at = 0;"
    "CREATE INDEX job_undated ON job (id) WHERE ended_at IS NULL AND state IN ('done', "
    "'stopped');"
    /* Which reports came before a key was retired, by the order of rows, which no clock moves. */
    "ALTER TABLE device_key ADD COLUMN retired_after INTEGER;"
    "UPDATE device_key SET retired_after = (SELECT coalesce(max(rowid), 0) FROM accept) "
    "WHERE retired_at IS NOT NULL;"
    /* What identities have written, by the hour: what is bounded in a day. */
    "CREATE TABLE spent ("
    "	hour INTEGER NOT NULL, who BLOB NOT NULL CHECK (length(who) = 32), bytes INTEGER NOT NULL,"
    "	PRIMARY KEY (hour, who)) STRICT, WITHOUT ROWID;"
    /* Checksums of rows (sums.c); a row that a program changes which knows of none has none any more. */
    /* clang-format off */
    SUMMED(meta, "key = NEW.key")
    SUMMED(device, "rowid = NEW.rowid")
    SUMMED(token, "rowid = NEW.rowid")
    SUMMED(joined, "token = NEW.token AND spki = NEW.spki")
    SUMMED(device_key, "key = NEW.key")
    SUMMED(device_claim, "device = NEW.device AND spki = NEW.spki")
    SUMMED(job, "rowid = NEW.rowid")
    SUMMED(past_job, "id = NEW.id")
    SUMMED(deleted_job, "id = NEW.id")
    SUMMED(job_override, "job = NEW.job")
    SUMMED(round, "rowid = NEW.rowid")
    SUMMED(round_metric, "job = NEW.job AND round = NEW.round AND name = NEW.name")
    SUMMED(round_figures, "rowid = NEW.rowid")
    SUMMED(round_override, "job = NEW.job AND round = NEW.round")
    SUMMED(best_model, "job = NEW.job AND place = NEW.place")
    SUMMED(accept, "rowid = NEW.rowid")
    SUMMED(model, "rowid = NEW.rowid")
    SUMMED(audit_detail, "seq = NEW.seq AND place = NEW.place")
    SUMMED(speed, "job = NEW.job AND device = NEW.device AND slot = NEW.slot")
    SUMMED(sized, "job = NEW.job AND round = NEW.round AND device = NEW.device")
    SUMMED(task_out, "job = NEW.job AND device = NEW.device"),
    /* clang-format on */
    /* What a program of a named evaluator said of the model that a round makes: the first report alone. */
    "CREATE TABLE evaluation ("
    "	job BLOB NOT NULL REFERENCES job, round INTEGER NOT NULL,"
    "	device BLOB NOT NULL REFERENCES device, task BLOB NOT NULL CHECK (length(task) = 16),"
    "	manifest BLOB NOT NULL CHECK (length(manifest) = 320),"
    "	receipt BLOB NOT NULL CHECK (length(receipt) = 160), report TEXT NOT NULL,"
    "	accepted_at REAL NOT NULL, PRIMARY KEY (job, round)) STRICT;"
    "CREATE INDEX evaluation_device ON evaluation (device);"
    /* Defaults that a job was submitted under, where its document has no word of them. */
    "CREATE TABLE job_stamp ("
    "	job BLOB NOT NULL PRIMARY KEY REFERENCES job, stamp TEXT NOT NULL) STRICT, WITHOUT ROWID;"
    /* clang-format off */
    SUMMED(evaluation, "rowid = NEW.rowid")
    SUMMED(job_stamp, "job = NEW.job"),
    /* clang-format on */
    /* Tokens whose devices begin suspended, and the role "metrics". Only a row that matched its checksum matches it afterwards. */
    "ALTER TABLE token ADD COLUMN suspended INTEGER NOT NULL DEFAULT 0;"
    "UPDATE token SET checksum = row_checksum(" STORE_SUM_TOKEN_8 ", suspended) "
    "WHERE checksum = row_checksum(" STORE_SUM_TOKEN_8 ");",
};
enum { VERSION = sizeof(migrations) / sizeof(migrations[0]) };

/* The error behind SQLite's I/O error by the system's error number; ERR_IO if the number says no more. */
static enum err
system_error(int number)
{
	enum err e = err_number(number);

	return e == ERR_NOSPACE || e == ERR_READONLY || e == ERR_FILES || e == ERR_NOMEM ? e
											 : ERR_IO;
}

static enum err
base_error(sqlite3 *sql, int rc)
{
	int number = sql ? sqlite3_system_errno(sql) : 0;

	switch (rc & 0xff) {
	case SQLITE_CONSTRAINT:
		if (rc == SQLITE_CONSTRAINT_FOREIGNKEY)
			return ERR_NOTFOUND;
		return rc == SQLITE_CONSTRAINT_UNIQUE || rc == SQLITE_CONSTRAINT_PRIMARYKEY
		    ? ERR_EXISTS
		    : ERR_INVALID;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return ERR_CORRUPT;
	case SQLITE_FULL:
		return ERR_NOSPACE;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		return system_error(number);
	case SQLITE_NOMEM:
		return ERR_NOMEM;
	case SQLITE_TOOBIG:
		return ERR_LIMIT;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_TIMEOUT;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return ERR_DENIED;
	default:
		return ERR_IO;
	}
}

enum err
store_schema_error(struct store_db *db, int rc)
{
	return err_set(&db->last, base_error(db->sql, rc), "%s",
	    db->sql ? sqlite3_errmsg(db->sql) : sqlite3_errstr(rc));
}

enum err
store_schema_execute(struct store_db *db, const char *sql)
{
	int rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? ERR_OK : store_schema_error(db, rc);
}

/* The first column of the first row as text. */
static enum err
ask(struct store_db *db, const char *sql, char out[64])
{
	sqlite3_stmt *st;
	int rc = sqlite3_prepare_v2(db->sql, sql, -1, &st, NULL);

	out[0] = '\0';
	if (rc == SQLITE_OK) {
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			snprintf(out, 64, "%s", (const char *)sqlite3_column_text(st, 0));
	}
	enum err e = rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : store_schema_error(db, rc);
	sqlite3_finalize(st);
	return e;
}

static enum err
ask_number(struct store_db *db, const char *sql, uint64_t *out)
{
	char text[64];
	enum err e = ask(db, sql, text);

	if (!e && !num_u64(text, UINT64_MAX, out))
		e = err_set(&db->last, ERR_CORRUPT, "%s gives \"%s\"", sql, text);
	return e;
}

enum err
store_schema_connect(struct store_db *db, const char *path, const char *pragmas)
{
	memset(db, 0, sizeof(*db));
	int rc = sqlite3_open_v2(path, &db->sql,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
	if (rc != SQLITE_OK)
		return store_schema_error(db, rc);
	sqlite3_extended_result_codes(db->sql, 1);
	sqlite3_busy_timeout(db->sql, BUSY_MS);
	enum err e = store_sums_register(db);
	return e ? e : store_schema_execute(db, pragmas);
}

/* Creates the file with mode 0600, which the log takes over; SQLite's own mode would depend on the umask. */
static enum err
create(const char *path, struct why *why)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno(why, "open %s", path);
	close(fd);
	return ERR_OK;
}

/* Checks the log before SQLite reads it. A commit that a power cut tore off was never acknowledged, so opening goes on. */
static enum err
check_log(const char *path, bool *torn, struct why *why)
{
	char wal[4096];

	int n = snprintf(wal, sizeof(wal), "%s-wal", path);
	if (n < 0 || (size_t)n >= sizeof(wal))
		return err_set(why, ERR_LIMIT, "path too long: %s", path);
	return store_wal_check(wal, torn, why);
}

static bool
is_small(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_size <= CHECK_BYTES_MAX;
}

static enum err
quick_check(struct store_db *db)
{
	char text[64];
	enum err e = ask(db, "PRAGMA quick_check(1)", text);

	if (!e && strcmp(text, "ok") != 0)
		e = err_set(&db->last, ERR_CORRUPT, "%s", text);
	return e;
}

enum err
store_schema_version(struct store_db *db, uint64_t *version)
{
	uint64_t id, objects;
	enum err e = ask_number(db, "PRAGMA user_version", version);

	e = e ? e : ask_number(db, "PRAGMA application_id", &id);
	e = e ? e : ask_number(db, "SELECT count(*) FROM sqlite_schema", &objects);
	if (e)
		return e;
	if (objects > 0 && id != APPLICATION_ID)
		return err_set(&db->last, ERR_CORRUPT, "is a database of another program");
	if (*version > VERSION)
		return err_set(&db->last, ERR_UNSUPPORTED,
		    "is of version %llu, and this program knows %d: it was used with a newer one",
		    (unsigned long long)*version, (int)VERSION);
	return ERR_OK;
}

uint64_t
store_schema_known(void)
{
	return VERSION;
}

static enum err
migrate(struct store_db *db, uint64_t version)
{
	char sql[64];

	for (; version < VERSION; version++) {
		snprintf(sql, sizeof(sql), "PRAGMA user_version = %d; COMMIT", (int)version + 1);
		enum err e = store_schema_execute(db, "BEGIN IMMEDIATE");
		e = e ? e : store_schema_execute(db, migrations[version]);
		e = e ? e : store_schema_execute(db, sql);
		if (e)
			return e;
	}
	return ERR_OK;
}

#define OBJECTS \
	"SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema " \
	"WHERE name NOT IN ('sqlite_sequence', 'sqlite_stat1', 'sqlite_stat4') " \
	"ORDER BY type, name, tbl_name, sql"

/* name: the first table, index or trigger that differs; "" if none does. */
static enum err
compare_objects(struct store_db *db, sqlite3_stmt *is, sqlite3_stmt *should, char name[64])
{
	int a, b;

	name[0] = '\0';
	do {
		a = sqlite3_step(is);
		b = sqlite3_step(should);
		for (int i = 0; i < 4 && a == SQLITE_ROW && b == SQLITE_ROW && !name[0]; i++)
			if (strcmp((const char *)sqlite3_column_text(is, i),
				(const char *)sqlite3_column_text(should, i)) != 0)
				snprintf(name, 64, "%s", sqlite3_column_text(should, 1));
	} while (a == SQLITE_ROW && b == SQLITE_ROW && !name[0]);
	if (!name[0] && a != b)
		snprintf(name, 64, "one object");
	return a == SQLITE_ROW || a == SQLITE_DONE ? ERR_OK : store_schema_error(db, a);
}

/* The expected schema is made in a database in memory. */
enum err
store_schema_compare(struct store_db *db, uint64_t version)
{
	sqlite3_stmt *is = NULL, *should = NULL;
	struct store_db model = {.sql = NULL};
	char name[64] = "";
	enum err e = ERR_OK;

	int rc = sqlite3_open(":memory:", &model.sql) || store_sums_register(&model);
	for (uint64_t i = 0; i < version && i < VERSION && rc == SQLITE_OK; i++)
		rc = sqlite3_exec(model.sql, migrations[i], NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(model.sql, OBJECTS, -1, &should, NULL);
	if (rc != SQLITE_OK)
		e = err_set(&db->last, ERR_NOMEM, "no schema to compare with");
	if (!e && sqlite3_prepare_v2(db->sql, OBJECTS, -1, &is, NULL) != SQLITE_OK)
		e = store_schema_error(db, sqlite3_errcode(db->sql));
	e = e ? e : compare_objects(db, is, should, name);
	if (!e && name[0])
		e = err_set(&db->last, ERR_CORRUPT,
		    "its schema is not that of version %llu: %s differs",
		    (unsigned long long)version, name);
	sqlite3_finalize(is);
	sqlite3_finalize(should);
	sqlite3_close(model.sql);
	return e;
}

/* A file without a version was never finished, or something has emptied it. */
static enum err
check_version(struct store_db *db, bool fresh, uint64_t *version)
{
	enum err e = store_schema_version(db, version);

	if (!e && *version == 0 && !fresh)
		e = err_set(&db->last, ERR_NOTFOUND, "the database is empty");
	return e;
}

/* Opens the writing connection. A full group must fit the page cache, and its savepoints must not go through a file. */
static enum err
connect_writer(struct store_db *db, const char *path, bool fresh, uint64_t *version)
{
	enum err e = store_schema_connect(db, path,
	    "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;"
	    "PRAGMA secure_delete = ON;"
	    "PRAGMA cache_size = -8192");

	e = e ? e : check_version(db, fresh, version);
	return !e && is_small(path) ? quick_check(db) : e;
}

static enum err
use_log(struct store_db *db)
{
	char mode[64];
	enum err e = ask(db, "PRAGMA journal_mode = WAL", mode);

	if (!e && strcmp(mode, "wal") != 0)
		e = err_set(&db->last, ERR_UNSUPPORTED,
		    "this file system does not allow a write-ahead log");
	e = e ? e
	      : store_schema_execute(db, "PRAGMA wal_autocheckpoint = " QUOTE(CHECKPOINT_PAGES));
	return e ? e : store_schema_execute(db, "PRAGMA journal_size_limit = 67108864");
}

enum err
store_schema_open(struct store_db *db, const char *path, bool fresh, struct why *why)
{
	uint64_t version = 0;
	bool torn = false;
	enum err e = ERR_OK;

	memset(db, 0, sizeof(*db));
	if (fresh)
		e = create(path, why);
	else if (access(path, F_OK) != 0)
		e = err_errno(why, "%s", path);
	e = e ? e : check_log(path, &torn, why);
	if (e)
		return e;
	e = connect_writer(db, path, fresh, &version);
	db->torn = torn;
	e = e ? e : use_log(db);
	e = e ? e : migrate(db, version);
	e = e ? e : store_sums_keep(db);
	return e ? err_set(why, e, "%s: %s", path, db->last.text) : ERR_OK;
}

/* Temporary files would lie where the coordinator may not write. */
enum err
store_schema_open_reader(struct store_db *db, const char *path, struct why *why)
{
	enum err e =
	    store_schema_connect(db, path, "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY");

	return e ? err_set(why, e, "%s: %s", path, db->last.text) : ERR_OK;
}

void
store_schema_close(struct store_db *db)
{
	for (size_t i = 0; i < db->statement_count; i++)
		sqlite3_finalize(db->statements[i].st);
	free(db->statements);
	sqlite3_close(db->sql);
	memset(db, 0, sizeof(*db));
}
