#ifndef CHECK_H
#define CHECK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "best.h"
#include "config.h"
#include "err.h"
#include "manifest.h"
#include "rate_control.h"
#include "row.h"

/*
 * `rivuletd check`: examines a state directory, says what is wrong and repairs what can be repaired without losing anything
 * that was acknowledged. A damaged file is not deleted, but moved to damaged/. Each part (check_inside.h) looks at one thing and
 * reports through check_found; the parts share one struct check. One thread, blocking.
 */
enum check_severity {
	CHECK_NOTE, /* worth knowing */
	CHECK_WARNING, /* can be mended by --repair, or as the advice says; nothing is lost */
	CHECK_DAMAGE, /* something is lost, or cannot be used */
};

/* What can be found; check.c holds word, severity and advice of each, docs/operators.md the same table for people. */
enum check_kind {
	CHECK_DATABASE_MISSING,
	CHECK_DATABASE_DAMAGED,
	CHECK_DATABASE_NEWER,
	CHECK_DATABASE_OLDER,
	CHECK_LOG_DAMAGED,
	CHECK_LOG_TORN,
	CHECK_BACKUP_COPY,
	CHECK_COPY_DIFFERS,
	CHECK_ROW_DAMAGED,
	CHECK_ROW_UNSUMMED,
	CHECK_JOB_DAMAGED,
	CHECK_ROUND_DAMAGED,
	CHECK_KEY_MISSING,
	CHECK_KEY_ELSEWHERE,
	CHECK_KEY_DAMAGED,
	CHECK_KEY_MIXED,
	CHECK_CERTIFICATE_DATE,
	CHECK_MODEL_MISSING,
	CHECK_MODEL_FORGOTTEN,
	CHECK_MODEL_DAMAGED,
	CHECK_DIFFERENCE_DAMAGED,
	CHECK_STATE_MISSING,
	CHECK_STATE_DAMAGED,
	CHECK_DELTA_MISSING,
	CHECK_DELTA_DAMAGED,
	CHECK_DELTA_UNREAD,
	CHECK_DELTA_AGAIN,
	CHECK_KEPT_DAMAGED,
	CHECK_DELTA_DROPPED,
	CHECK_DELTA_KEPT,
	CHECK_AUDIT_DAMAGED,
	CHECK_FILE_UNKNOWN,
	CHECK_FILE_ORPHAN,
	CHECK_FILE_TEMPORARY,
	CHECK_FILE_LOST,
	CHECK_FILE_CLOSED,
	CHECK_CLOCK_DOUBTED,
	CHECK_MODE_WIDE,
	CHECK_OWNER_WRONG,
	CHECK_DIRECTORY_MISSING,
	CHECK_KINDS
};

struct check_job {
	uint8_t id[16];
	char hex[33];
	bool live; /* running or paused */
	struct store_round last; /* zero if the job has no round */
	bool open; /* `last` is open */
	struct rate_control schedule; /* names the models that the guard needs */
	struct best best; /* names the job's best models */
};

/* An accepted delta of the open round of a live job. */
struct check_delta {
	const struct check_job *job;
	struct store_accept row; /* report is NULL */
	struct manifest manifest;
};

/* What the database says, as far as it could be read. */
struct check_rows {
	struct check_job *jobs;
	size_t job_count, job_room;
	struct store_model *models;
	size_t model_count, model_room;
	struct check_delta *deltas;
	size_t delta_count, delta_room;
};

struct delta_key;

/* Objects made with a key of the coordinator (receipts, task ids): how many were verified, how many failed. */
#define CHECK_FAILURES 100 /* named at most */
struct check_made {
	uint64_t tried, failed;
	char where[CHECK_FAILURES][128];
};

struct check {
	char dir[CONFIG_PATH_MAX];
	bool repair;
	/* With repair: also delete the rows of accepted deltas whose file is gone or damaged. */
	bool drop_deltas;
	/* Remove files from lost/ that were set aside at least older_s seconds ago; also while a coordinator runs. */
	bool delete_lost;
	uint64_t older_s;
	const struct delta_key *key; /* the operator's key of encrypted deltas, or NULL */
	bool memory; /* the spool need not outlive the machine */
	bool quiet; /* print nothing per finding */
	bool running; /* a coordinator uses dir: things that it may be changing are not judged */
	int lock_fd;
	struct store_db *db; /* NULL if the database cannot be used */
	bool has_rows; /* `rows` is complete */
	struct check_rows rows;
	bool has_signer, has_task_key;
	uint8_t signer[91], task_key[32];
	struct check_made receipts, tasks;
	struct json *findings;
	unsigned left[CHECK_DAMAGE + 1]; /* findings not repaired, by severity */
	unsigned repaired;
};

/* Examines dir and sets the counts. A failure means that dir could not be examined: ERR_NOTFOUND no such directory, ERR_STATE
 * repair wanted while a coordinator runs. Call check_deinit in any case. */
ERR_MUST_USE enum err check_run(struct check *c, const char *dir, struct why *why);
void check_deinit(struct check *c);

/* --- for the parts */

/* Reports one finding: prints its line and keeps it for JSON. where is relative to dir. */
void check_found(struct check *c, enum check_kind kind, const char *where, bool repaired,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* dir/name in out, of CHECK_PATH_MAX bytes. */
#define CHECK_PATH_MAX (CONFIG_PATH_MAX + 256)
void check_path(const struct check *c, const char *name, char out[CHECK_PATH_MAX]);
/* With repair: check_remove removes a file, check_set_aside moves it to damaged/, check_lose, for a file that no row names, to lost/. False
 * without repair, or if that fails. */
bool check_remove(const struct check *c, const char *name);
/* True: the file is there and this user may not read it, which is reported as a finding; such a file cannot be judged and stays. user: the
 * job that needs the file, or NULL. */
bool check_is_closed(struct check *c, const char *name, const char *user);
bool check_set_aside(const struct check *c, const char *name);
bool check_lose(const struct check *c, const char *name);
/* Calls fn with the name (relative to c->dir) of each entry of a folder but "." and "..". */
void check_each_file(struct check *c, const char *folder,
    void (*fn)(struct check *c, const char *folder, const char *name));

#endif
