#ifndef STORE_H
#define STORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "states.h"

/* row.h */
struct store_accept;
struct store_claim;
struct store_device;
struct store_job;
struct store_metric;
struct store_model;
struct store_out;
struct store_round;
struct store_seen;
struct store_sized;
struct store_speed;
struct store_spent;
struct store_token;

/*
 * Everything durable that is not a file: SQLite in WAL mode with synchronous=FULL. This room alone uses SQLite.
 * One thread does all writing and commits in groups: all work functions queued while a commit runs share the next commit.
 *
 * A work function sees the state as of its turn, may read and write rows, and must not wait for anything else. The failure of a
 * work function undoes its own writes only (savepoint), never those of others in the group.
 */
struct store;
struct store_report; /* report.h */
struct store_db; /* a connection inside a transaction */

typedef enum err (*store_work)(struct store_db *db, void *arg, struct why *why);
/* Runs on the store thread after the commit (e is ERR_OK and the work is durable) or after the failure. Must be quick. */
typedef void (*store_done)(void *arg, enum err e, const struct why *why);

/* Makes the database at `path`, with what `first` (may be NULL) writes. The database is made under a temporary name and renamed once
 * durable, so that a file at `path` is always complete. ERR_EXISTS if there is a file at `path`. */
#define STORE_UNFINISHED ".new" /* what the temporary name ends in */
ERR_MUST_USE enum err store_create(const char *path, store_work first, void *arg, struct why *why);
/* Migrates the database and starts the store's thread. Never makes a database: ERR_NOTFOUND if the file is missing or empty;
 * ERR_UNSUPPORTED if a newer version wrote the file, ERR_CORRUPT if the file is damaged. */
ERR_MUST_USE enum err store_open(struct store **out, const char *path, struct why *why);
/* ERR_IO: the database or its log is no longer the file that was opened; then every commit fails, too. */
ERR_MUST_USE enum err store_is_there(struct store *s, struct why *why);
/* Did opening leave out the last commit of SQLite's log, because its checksum is wrong? (As after a power cut.) */
bool store_was_torn(const struct store *s);
/* Finishes queued work, then closes. */
void store_close(struct store *s);
/* Called once before each commit of a group that had work, on the store thread (directory sync); may be NULL. An error
 * fails the whole group. */
void store_before_commit(struct store *s, enum err (*fn)(void *ctx, struct why *why), void *ctx);

/* Queues work; done (may be NULL) is always called exactly once if ERR_OK is returned. ERR_CLOSED while closing. */
ERR_MUST_USE enum err store_submit(struct store *s, store_work work, store_done done, void *arg);
/* store_submit, and waits for the commit. ERR_STATE on the store thread. */
ERR_MUST_USE enum err store_write(struct store *s, store_work work, void *arg, struct why *why);
/* store_write, and once the work is durable `then(arg)` runs on the store thread: what such calls change in memory happens in the
 * order of the commits. `then` must be as quick as a store_done. */
ERR_MUST_USE enum err store_write_then(
    struct store *s, store_work work, void (*then)(void *arg), void *arg, struct why *why);
/* Sets where room on a full disk comes from: `give` frees some, and returns false if none is left; called on any thread. Before the first
 * store_write_reserved. */
void store_reserve(struct store *s, bool (*give)(void *ctx), void *ctx);
/* store_write_then for work that frees room or must not wait for room: repeated as long as the disk is full and store_reserve's `give`
 * frees some. So `work` may run more than once. */
ERR_MUST_USE enum err store_write_reserved(
    struct store *s, store_work work, void (*then)(void *arg), void *arg, struct why *why);
/* Runs work on the calling thread with the store's one reading connection, which callers get in the order of asking. A caller that looks
 * at many rows does so in several calls. ERR_STATE inside another store_read. */
ERR_MUST_USE enum err store_read(struct store *s, store_work work, void *arg, struct why *why);
/* Queues work that gives some rows of an older database the checksums that they lack. Call now and then. */
void store_fill(struct store *s);
void store_report(struct store *s, struct store_report *out);

/* --- rows. A get returns ERR_NOTFOUND if there is no such row; an insert ERR_EXISTS if there is one; an `each` stops at fn's first
 * error and returns it. fn must not start the same `each` again (ERR_STATE). Integers go up to 2^63 - 1 and texts must fit
 * their arrays (ERR_LIMIT); a stored row that does not fit, or has a state whose name is not known, is ERR_CORRUPT. A row that
 * another refers to must be there first (ERR_NOTFOUND): token and device of a join, job of a round, round and device of an accepted
 * delta. Tokens and models come in the order of their first put. */

ERR_MUST_USE enum err store_device_put(struct store_db *db, const struct store_device *d);
ERR_MUST_USE enum err store_device_get(
    struct store_db *db, const uint8_t id[32], struct store_device *out);
/* In the order of ids: a caller that keeps a sorted array only appends. */
ERR_MUST_USE enum err store_device_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_device *d), void *ctx);

/* holder: the active or suspended device of this name, other than `but`. ERR_NOTFOUND: the name is free. */
ERR_MUST_USE enum err store_name_holder(
    struct store_db *db, const char *name, const uint8_t but[32], uint8_t holder[32]);
/* Each active or suspended device whose name an older active or suspended device has, too; by name, then age. */
ERR_MUST_USE enum err store_name_doubles(
    struct store_db *db, enum err (*fn)(void *ctx, const uint8_t device[32]), void *ctx);

/* Keys that a device had after its first one, by SHA-256 of the SPKI. */
ERR_MUST_USE enum err store_key_put(
    struct store_db *db, const uint8_t key[32], const uint8_t device[32]); /* ERR_EXISTS */
ERR_MUST_USE enum err store_key_get(struct store_db *db, const uint8_t key[32], uint8_t device[32]);
ERR_MUST_USE enum err store_key_each(struct store_db *db,
    enum err (*fn)(void *ctx, const uint8_t key[32], const uint8_t device[32]), void *ctx);
/* Notes that from now on no delta signed by this key is accepted. */
ERR_MUST_USE enum err store_key_retire(struct store_db *db, const uint8_t key[32], double now);
/* Deletes retired keys of p->device that none of its accepted manifests can be signed with, at most STORE_KEYS_PRUNED a call, and lists
 * them in p->gone. The keys `present` and `previous` always stay: an older database does not say which keys were retired. */
#define STORE_KEYS_PRUNED 8
struct store_pruning {
	uint8_t device[32], present[32], previous[32];
	uint8_t gone[STORE_KEYS_PRUNED][32];
	size_t count;
};
ERR_MUST_USE enum err store_key_prune(struct store_db *db, struct store_pruning *p);

/* At the first start from a backup: notes each key's date as the backup's (restored_key_at), and deletes claims of earlier restores, but
 * those of contested devices. store_keys_dated sets the date of the restore. */
ERR_MUST_USE enum err store_claims_restored(struct store_db *db);
/* When this state was restored from a backup, Unix seconds; 0: never, NaN: not known. */
ERR_MUST_USE enum err store_restored_at(struct store_db *db, double *out);
/* Sets to `now` the date of each key, and the moment of the restore, where it is not known. */
ERR_MUST_USE enum err store_keys_dated(struct store_db *db, double now);
/* Notes that the device has used its key since the restore: only if spki still is its key and its claim is CLAIM_NONE. */
ERR_MUST_USE enum err store_claim_use(
    struct store_db *db, const uint8_t device[32], const uint8_t spki[91]);
ERR_MUST_USE enum err store_claim_put(
    struct store_db *db, const struct store_claim *c); /* there already: no change */
ERR_MUST_USE enum err store_claim_each(struct store_db *db, const uint8_t device[32],
    enum err (*fn)(void *ctx, const struct store_claim *c), void *ctx);
ERR_MUST_USE enum err store_claim_clear(struct store_db *db, const uint8_t device[32]);

ERR_MUST_USE enum err store_seen_put(
    struct store_db *db, const struct store_seen *s); /* insert or replace; ERR_NOTFOUND */
ERR_MUST_USE enum err store_seen_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_seen *s), void *ctx);

/* Adds s->bytes to the row of s->who and s->hour; deletes all rows whose hour is `hours` or more away from s->hour. */
ERR_MUST_USE enum err store_spent_add(
    struct store_db *db, const struct store_spent *s, uint64_t hours);
ERR_MUST_USE enum err store_spent_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_spent *s), void *ctx);

ERR_MUST_USE enum err store_token_put(
    struct store_db *db, const struct store_token *t); /* insert or replace */
/* Notes a token's last use: Unix seconds and address. No change if there is no such token. */
ERR_MUST_USE enum err store_token_used(
    struct store_db *db, const uint8_t id[8], double at, const char *address);
ERR_MUST_USE enum err store_token_get(
    struct store_db *db, const uint8_t id[8], struct store_token *out);
/* Tokens behind row number *after, 0 at first; *after becomes the row of the last token for which fn returned ERR_OK. */
ERR_MUST_USE enum err store_token_each(struct store_db *db, uint64_t *after,
    enum err (*fn)(void *ctx, const struct store_token *t), void *ctx);
/* device: who joined with this token and key before (joining is idempotent per token and key). */
ERR_MUST_USE enum err store_join_get(
    struct store_db *db, const uint8_t token[8], const uint8_t spki[91], uint8_t device[32]);
/* ERR_EXISTS */
ERR_MUST_USE enum err store_join_put(
    struct store_db *db, const uint8_t token[8], const uint8_t spki[91], const uint8_t device[32]);

ERR_MUST_USE enum err store_job_insert(
    struct store_db *db, const struct store_job *j); /* ERR_EXISTS */
/* reason may be NULL, and is cut to fit. at: when a job that is done or stopped ended; NaN: not known, until store_past_dated. */
ERR_MUST_USE enum err store_job_set_state(
    struct store_db *db, const uint8_t id[16], enum job_state state, const char *reason, double at);
ERR_MUST_USE enum err store_job_get(
    struct store_db *db, const uint8_t id[16], struct store_job *out);
ERR_MUST_USE enum err store_job_each(struct store_db *db,
    enum err (*fn)(void *ctx, const struct store_job *j),
    void *ctx); /* in the order of their rows */

ERR_MUST_USE enum err store_round_put(
    struct store_db *db, const struct store_round *r); /* insert or replace */
ERR_MUST_USE enum err store_round_get(
    struct store_db *db, const uint8_t job[16], uint64_t round, struct store_round *out);
/* The highest-numbered round whose `evaluate` is known. ERR_NOTFOUND */
ERR_MUST_USE enum err store_round_measured(
    struct store_db *db, const uint8_t job[16], struct store_round *out);
/* The highest store_round.measured of the job's rounds; 0: there is none. */
ERR_MUST_USE enum err store_round_last_measured(
    struct store_db *db, const uint8_t job[16], uint64_t *out);
/* The highest-numbered round of a job. */
ERR_MUST_USE enum err store_round_last(
    struct store_db *db, const uint8_t job[16], struct store_round *out);
ERR_MUST_USE enum err store_round_each(struct store_db *db, const uint8_t job[16], uint64_t from,
    uint64_t limit, enum err (*fn)(void *ctx, const struct store_round *r),
    void *ctx); /* ascending */
/* Rounds of a job, the newest first, at most `limit`. */
ERR_MUST_USE enum err store_round_back(struct store_db *db, const uint8_t job[16], uint64_t limit,
    enum err (*fn)(void *ctx, const struct store_round *r), void *ctx);
/* The sum of reports over the committed rounds from..to. */
ERR_MUST_USE enum err store_round_reports(
    struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to, uint64_t *out);

/* What is overridden of a job's document, as override_parse takes it; the caller frees *text. ERR_NOTFOUND: nothing. */
ERR_MUST_USE enum err store_override_get(struct store_db *db, const uint8_t job[16], char **text);
/* Inserts or replaces the job's overrides; text NULL removes them. */
ERR_MUST_USE enum err store_override_put(
    struct store_db *db, const uint8_t job[16], const char *text);
/* The overrides that were in force when a round closed: as store_override_get. */
ERR_MUST_USE enum err store_override_of_round(
    struct store_db *db, const uint8_t job[16], uint64_t round, char **text);
ERR_MUST_USE enum err store_override_put_round(
    struct store_db *db, const uint8_t job[16], uint64_t round, const char *text);
/* Defaults beside a job's document, as job_stamp_parse takes them; the caller frees the text. ERR_NOTFOUND: none. */
ERR_MUST_USE enum err store_stamp_get(struct store_db *db, const uint8_t job[16], char **text);
ERR_MUST_USE enum err store_stamp_put(struct store_db *db, const uint8_t job[16], const char *text);

ERR_MUST_USE enum err store_accept_insert(
    struct store_db *db, const struct store_accept *a); /* ERR_EXISTS */
ERR_MUST_USE enum err store_accept_get(struct store_db *db, const uint8_t job[16], uint64_t round,
    const uint8_t device[32], struct store_accept *out);
/* Accepted deltas that are folded in round `folded`, in the order of device ids, then of their tasks' rounds. */
ERR_MUST_USE enum err store_accept_each(struct store_db *db, const uint8_t job[16], uint64_t folded,
    enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx);
/* Accepted deltas whose tasks are of `round`, in the order of device ids, whatever round they are folded in. */
ERR_MUST_USE enum err store_accept_answers(struct store_db *db, const uint8_t job[16],
    uint64_t round, enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx);
/* Accepted deltas that are folded in round `folded` or a later one. */
ERR_MUST_USE enum err store_accept_waiting(struct store_db *db, const uint8_t job[16],
    uint64_t folded, enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx);
/* As store_accept_each for last->job and last->folded, but only the deltas behind last->device and last->round in that order. */
ERR_MUST_USE enum err store_accept_after(struct store_db *db, const struct store_accept *last,
    enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx);
/* Harmless if there is no such row. */
ERR_MUST_USE enum err store_accept_drop(
    struct store_db *db, const uint8_t job[16], uint64_t round, const uint8_t device[32]);
/* For each device with a delta in a committed round of the job: the last such round. */
ERR_MUST_USE enum err store_accept_last(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const uint8_t device[32], uint64_t round), void *ctx);
/* The number of the device's accepted reports, over all jobs. */
ERR_MUST_USE enum err store_accept_count(
    struct store_db *db, const uint8_t device[32], uint64_t *out);

/* The report of a named evaluator's program on the model that a round makes (EVALUATE_PROGRAM): a report without a delta, so that
 * body_bytes and folded are 0. One report per round: a newer report replaces it if the round came to another model. store_evaluation_get
 * gives out->report to the caller, who frees it. device: the report must be this device's; NULL: any device's. ERR_NOTFOUND. */
ERR_MUST_USE enum err store_evaluation_put(struct store_db *db, const struct store_accept *row);
ERR_MUST_USE enum err store_evaluation_get(struct store_db *db, const uint8_t job[16],
    uint64_t round, const uint8_t *device, struct store_accept *out);
/* The evaluators' reports of a job, in the order of rounds; row->report is valid during the call. */
ERR_MUST_USE enum err store_evaluation_each(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const struct store_accept *row), void *ctx);
/* Set in the round number that an evaluator's task id is made of, so that the id differs from that of the device's training task. */
#define STORE_EVALUATION_TASK ((uint64_t)1 << 63)

/* Inserts a row with the next serial and keeps the device's last STORE_SPEEDS rows of the job. ERR_NOTFOUND: no such job or device. */
ERR_MUST_USE enum err store_speed_add(struct store_db *db, const struct store_speed *row);
/* At most `limit` rows of a job, in the order of devices, each device's oldest first; only the rows behind device and serial of `last`
 * (NULL: from the first on). */
ERR_MUST_USE enum err store_speed_after(struct store_db *db, const uint8_t job[16],
    const struct store_speed *last, uint64_t limit,
    enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx);
/* All rows of a job, in the order of devices, each device's oldest first. */
ERR_MUST_USE enum err store_speed_each(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx);
/* A device's rows in all jobs, each job's oldest first. */
ERR_MUST_USE enum err store_speed_of(struct store_db *db, const uint8_t device[32],
    enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx);
/* How many reports of each device are in the job's committed rounds from..to, in the order of devices; devices without a report are left
 * out. */
ERR_MUST_USE enum err store_speed_reports(struct store_db *db, const uint8_t job[16], uint64_t from,
    uint64_t to, enum err (*fn)(void *ctx, const uint8_t device[32], uint64_t reports), void *ctx);

ERR_MUST_USE enum err store_sized_put(
    struct store_db *db, const struct store_sized *row); /* insert or replace */
/* Deletes the job's rows of rounds before `oldest`. */
ERR_MUST_USE enum err store_sized_drop(struct store_db *db, const uint8_t job[16], uint64_t oldest);
ERR_MUST_USE enum err store_sized_each(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const struct store_sized *row), void *ctx);

/* Notes a task that is sent; replaces the row of the device's task before. */
ERR_MUST_USE enum err store_out_put(struct store_db *db, const struct store_out *row);
/* Deletes the row of a task that was given back; does nothing if the device has another task by now. */
ERR_MUST_USE enum err store_out_drop(struct store_db *db, const struct store_out *row);
ERR_MUST_USE enum err store_out_clear(struct store_db *db, const uint8_t job[16]);
/* Tasks of after->job that were sent later than after->at and have no accepted delta, in the order of devices. */
ERR_MUST_USE enum err store_out_unanswered(struct store_db *db, const struct store_out *after,
    enum err (*fn)(void *ctx, const struct store_out *row), void *ctx);

ERR_MUST_USE enum err store_model_put(
    struct store_db *db, const struct store_model *m); /* existing id: no change */
/* Makes a model belong to no job, so that no retention removes it, and to this owner if neither the model nor its job has one.
 * ERR_NOTFOUND. */
ERR_MUST_USE enum err store_model_pin(
    struct store_db *db, const uint8_t id[32], const uint8_t owner[32]);
/* Bytes of an owner's models: those it uploaded, and those of its jobs. */
ERR_MUST_USE enum err store_model_owned(
    struct store_db *db, const uint8_t owner[32], uint64_t *bytes);
ERR_MUST_USE enum err store_model_get(
    struct store_db *db, const uint8_t id[32], struct store_model *out);
/* ERR_NOTFOUND */
/* store_model_get through store_read, for callers outside a transaction. */
ERR_MUST_USE enum err store_model_find(
    struct store *s, const uint8_t id[32], struct store_model *out);
ERR_MUST_USE enum err store_model_delete(struct store_db *db, const uint8_t id[32]);
ERR_MUST_USE enum err store_model_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_model *m), void *ctx);

/* Named numbers of full 64 bits; a key has at most 64 bytes. */
ERR_MUST_USE enum err store_meta_get(struct store_db *db, const char *key, uint64_t *out);
ERR_MUST_USE enum err store_meta_put(struct store_db *db, const char *key, uint64_t value);

#endif
