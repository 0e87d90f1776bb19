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
 * Everything durable that is not a file: SQLite in WAL mode with synchronous=FULL. The only users of SQLite are
 * store*.c. One thread owns writing and commits in groups: all work queued while a commit runs shares the next one.
 *
 * A work function sees the state as of its turn, may read and write, and must not block on anything else. Its failure
 * undoes its own writes only (savepoint), never those of others in the group.
 */
struct store;
struct store_report; /* report.h */
struct store_db; /* a connection inside a transaction */

typedef enum err (*store_work)(struct store_db *db, void *arg, struct why *why);
/* Runs on the store thread after the commit (e is ERR_OK and the work is durable) or after the failure. Must be quick. */
typedef void (*store_done)(void *arg, enum err e, const struct why *why);

/* Makes the database at `path`, with what `first` (may be NULL) writes into it: under a temporary name, and renamed when all of it
 * is durable, so that a file under `path` is never half of one. ERR_EXISTS if there is a file. */
#define STORE_UNFINISHED ".new" /* what the temporary name ends in */
ERR_MUST_USE enum err store_create(const char *path, store_work first, void *arg, struct why *why);
/* Migrates the database and starts the thread. Never makes one: ERR_NOTFOUND if the file is missing or empty; ERR_UNSUPPORTED if
 * it is of a newer version, ERR_CORRUPT if it is damaged. */
ERR_MUST_USE enum err store_open(struct store **out, const char *path, struct why *why);
/* Are database and log still the files that were opened? Else nothing is committed: ERR_IO. */
ERR_MUST_USE enum err store_is_there(struct store *s, struct why *why);
/* Did opening leave out the last commit of the log, because it does not check? */
bool store_was_torn(const struct store *s);
/* Finishes queued work, then closes. */
void store_close(struct store *s);
/* Called once before each commit of a group that had work, on the store thread (directory sync); may be NULL. An error
 * fails the whole group. */
void store_before_commit(struct store *s, enum err (*fn)(void *ctx, struct why *why), void *ctx);

/* Queues work; done (may be NULL) is always called exactly once if ERR_OK is returned. ERR_CLOSED while closing. */
ERR_MUST_USE enum err store_submit(struct store *s, store_work work, store_done done, void *arg);
/* The same, waiting. Not from the store thread. */
ERR_MUST_USE enum err store_write(struct store *s, store_work work, void *arg, struct why *why);
/* The same, and once it is durable `then(arg)` runs on the store thread: what such calls change in memory happens in the order of
 * the commits. As quick as a store_done. */
ERR_MUST_USE enum err store_write_then(
    struct store *s, store_work work, void (*then)(void *arg), void *arg, struct why *why);
/* From where room on a full disk comes: `give` frees some, false if there is none; any thread. Before the first store_write_reserved. */
void store_reserve(struct store *s, bool (*give)(void *ctx), void *ctx);
/* store_write_then for what frees room or must not wait for it: repeated as long as the disk is full and `give` frees some. So work may
 * run more than once. */
ERR_MUST_USE enum err store_write_reserved(
    struct store *s, store_work work, void (*then)(void *arg), void *arg, struct why *why);
/* Runs work on the calling thread with a reading connection, which is one: callers have it in the order of asking. What looks at
 * many rows does so in several calls. */
ERR_MUST_USE enum err store_read(struct store *s, store_work work, void *arg, struct why *why);
/* Gives some rows of an older database the checksums that they lack, some time later. Call now and then. */
void store_fill(struct store *s);
void store_report(struct store *s, struct store_report *out);

/* --- rows; gets return ERR_NOTFOUND; an `each` stops when fn returns an error, and returns that. fn must not start the
 * same `each` again (ERR_STATE). Integers go up to 2^63 - 1 and texts must fit their arrays (ERR_LIMIT); a stored row
 * that does not fit, or is in a state of a name not known here, is ERR_CORRUPT. What a row refers to must be there before it (ERR_NOTFOUND): token and device of a
 * join, job of a round, round and device of an accepted delta. Devices, tokens and models come in the order of their
 * first put. */

ERR_MUST_USE enum err store_device_put(struct store_db *db, const struct store_device *d);
ERR_MUST_USE enum err store_device_get(
    struct store_db *db, const uint8_t id[32], struct store_device *out);
/* By id: whoever keeps them sorted only appends. */
ERR_MUST_USE enum err store_device_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_device *d), void *ctx);

/* The active or suspended device of this name, other than `but`. ERR_NOTFOUND: the name is free. */
ERR_MUST_USE enum err store_name_holder(
    struct store_db *db, const char *name, const uint8_t but[32], uint8_t holder[32]);
/* Active and suspended devices whose name an older one of them has, by name and age. */
ERR_MUST_USE enum err store_name_doubles(
    struct store_db *db, enum err (*fn)(void *ctx, const uint8_t device[32]), void *ctx);

/* Keys that a device had after its first one, by SHA-256 of the SPKI. */
ERR_MUST_USE enum err store_key_put(
    struct store_db *db, const uint8_t key[32], const uint8_t device[32]); /* ERR_EXISTS */
ERR_MUST_USE enum err store_key_get(struct store_db *db, const uint8_t key[32], uint8_t device[32]);
ERR_MUST_USE enum err store_key_each(struct store_db *db,
    enum err (*fn)(void *ctx, const uint8_t key[32], const uint8_t device[32]), void *ctx);
/* Nothing that the key signs is taken from now on. */
ERR_MUST_USE enum err store_key_retire(struct store_db *db, const uint8_t key[32], double now);
/* Deletes retired keys that no accepted manifest of the device can be signed with, a few at a time, and says which. Those that are to
 * stay are named, for which of the keys of an older database were in use nobody wrote down. */
#define STORE_KEYS_PRUNED 8
struct store_pruning {
	uint8_t device[32], present[32], previous[32];
	uint8_t gone[STORE_KEYS_PRUNED][32];
	size_t count;
};
ERR_MUST_USE enum err store_key_prune(struct store_db *db, struct store_pruning *p);

/* A backup becomes a state: each key's date is that of the backup, and what was claimed before is over, unless it is contested. When
 * that was is known when somebody says it, by store_keys_dated. */
ERR_MUST_USE enum err store_claims_restored(struct store_db *db);
/* When a backup became this state, Unix seconds; 0: never, NaN: not known. */
ERR_MUST_USE enum err store_restored_at(struct store_db *db, double *out);
/* Keys whose date nobody knows are no newer than now, and so it is with the moment of a restore. */
ERR_MUST_USE enum err store_keys_dated(struct store_db *db, double now);
/* The device's key was used, if it is this one still and nothing else was known of it. */
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

/* Adds the bytes to the row; rows of hours that are `hours` or more away go. */
ERR_MUST_USE enum err store_spent_add(
    struct store_db *db, const struct store_spent *s, uint64_t hours);
ERR_MUST_USE enum err store_spent_each(
    struct store_db *db, enum err (*fn)(void *ctx, const struct store_spent *s), void *ctx);

ERR_MUST_USE enum err store_token_put(
    struct store_db *db, const struct store_token *t); /* insert or replace */
/* Its last use. No change if there is no such token. */
ERR_MUST_USE enum err store_token_used(
    struct store_db *db, const uint8_t id[8], double at, const char *address);
ERR_MUST_USE enum err store_token_get(
    struct store_db *db, const uint8_t id[8], struct store_token *out);
/* Those behind row *after, 0 at first; it follows what fn has taken. */
ERR_MUST_USE enum err store_token_each(struct store_db *db, uint64_t *after,
    enum err (*fn)(void *ctx, const struct store_token *t), void *ctx);
/* Which device joined with this token and key before (join is idempotent per token and key)? */
ERR_MUST_USE enum err store_join_get(
    struct store_db *db, const uint8_t token[8], const uint8_t spki[91], uint8_t device[32]);
/* ERR_EXISTS */
ERR_MUST_USE enum err store_join_put(
    struct store_db *db, const uint8_t token[8], const uint8_t spki[91], const uint8_t device[32]);

ERR_MUST_USE enum err store_job_insert(
    struct store_db *db, const struct store_job *j); /* ERR_EXISTS */
/* reason may be NULL, and is cut to fit. at: of one that is over, when it ended; NaN: not known, until store_past_dated. */
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
/* The highest-numbered round whose evaluation is known. ERR_NOTFOUND */
ERR_MUST_USE enum err store_round_measured(
    struct store_db *db, const uint8_t job[16], struct store_round *out);
/* The last round of a job whose base was measured in a later one; 0: none was. */
ERR_MUST_USE enum err store_round_last_measured(
    struct store_db *db, const uint8_t job[16], uint64_t *out);
/* The highest-numbered round of a job. */
ERR_MUST_USE enum err store_round_last(
    struct store_db *db, const uint8_t job[16], struct store_round *out);
ERR_MUST_USE enum err store_round_each(struct store_db *db, const uint8_t job[16], uint64_t from,
    uint64_t limit, enum err (*fn)(void *ctx, const struct store_round *r),
    void *ctx); /* ascending */
/* The newest first. */
ERR_MUST_USE enum err store_round_back(struct store_db *db, const uint8_t job[16], uint64_t limit,
    enum err (*fn)(void *ctx, const struct store_round *r), void *ctx);
/* Reports in the models of these rounds. */
ERR_MUST_USE enum err store_round_reports(
    struct store_db *db, const uint8_t job[16], uint64_t from, uint64_t to, uint64_t *out);

/* What is overridden of a job's document, as override_parse takes it; the caller frees the text. ERR_NOTFOUND: nothing. */
ERR_MUST_USE enum err store_override_get(struct store_db *db, const uint8_t job[16], char **text);
/* Insert or replace; NULL: nothing is any more. */
ERR_MUST_USE enum err store_override_put(
    struct store_db *db, const uint8_t job[16], const char *text);
/* The same of what was in force when a round closed. */
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
/* What goes into a round, in the order of devices and of their tasks' rounds. */
ERR_MUST_USE enum err store_accept_each(struct store_db *db, const uint8_t job[16], uint64_t folded,
    enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx);
/* What answers tasks of a round, in device-id order, whatever it goes into. */
ERR_MUST_USE enum err store_accept_answers(struct store_db *db, const uint8_t job[16],
    uint64_t round, enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx);
/* What goes into this round or a later one. */
ERR_MUST_USE enum err store_accept_waiting(struct store_db *db, const uint8_t job[16],
    uint64_t folded, enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx);
/* Those behind the device and task round of `last`, of its job and of what it is folded in; nothing else of it is looked at. */
ERR_MUST_USE enum err store_accept_after(struct store_db *db, const struct store_accept *last,
    enum err (*fn)(void *ctx, const struct store_accept *a), void *ctx);
/* Harmless if there is no such row. */
ERR_MUST_USE enum err store_accept_drop(
    struct store_db *db, const uint8_t job[16], uint64_t round, const uint8_t device[32]);
/* The last committed round of a job that each device's delta is in. */
ERR_MUST_USE enum err store_accept_last(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const uint8_t device[32], uint64_t round), void *ctx);
/* Accepted reports per device over all jobs. */
ERR_MUST_USE enum err store_accept_count(
    struct store_db *db, const uint8_t device[32], uint64_t *out);

/* What a named evaluator's program said of the model that a round makes (EVALUATE_PROGRAM): a report alone, so that body_bytes and folded
 * are 0. One of a round: a newer one, of another model that the round came to, takes its place. The report is owned, as of
 * store_accept_get. device: whose it must be; NULL: anybody's. ERR_NOTFOUND. */
ERR_MUST_USE enum err store_evaluation_put(struct store_db *db, const struct store_accept *row);
ERR_MUST_USE enum err store_evaluation_get(struct store_db *db, const uint8_t job[16],
    uint64_t round, const uint8_t *device, struct store_accept *out);
/* Those of a job, by round; the report is lent. */
ERR_MUST_USE enum err store_evaluation_each(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const struct store_accept *row), void *ctx);
/* Its task is named as one of its round with this bit, and so is not the one that the device would train by. */
#define STORE_EVALUATION_TASK ((uint64_t)1 << 63)

/* The serial is given here, and the device's oldest row goes. ERR_NOTFOUND: no such job or device. */
ERR_MUST_USE enum err store_speed_add(struct store_db *db, const struct store_speed *row);
/* Behind the device of `last` and its serial (NULL: from the first on), at most so many. By device, the oldest first. */
ERR_MUST_USE enum err store_speed_after(struct store_db *db, const uint8_t job[16],
    const struct store_speed *last, uint64_t limit,
    enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx);
/* By device, the oldest first. */
ERR_MUST_USE enum err store_speed_each(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx);
/* Of all jobs, the oldest of each first. */
ERR_MUST_USE enum err store_speed_of(struct store_db *db, const uint8_t device[32],
    enum err (*fn)(void *ctx, const struct store_speed *row), void *ctx);
/* How many reports of each device are in a job's committed rounds of this range, by device; of others nothing. */
ERR_MUST_USE enum err store_speed_reports(struct store_db *db, const uint8_t job[16], uint64_t from,
    uint64_t to, enum err (*fn)(void *ctx, const uint8_t device[32], uint64_t reports), void *ctx);

ERR_MUST_USE enum err store_sized_put(
    struct store_db *db, const struct store_sized *row); /* insert or replace */
/* Those of a job's rounds before `oldest` go. */
ERR_MUST_USE enum err store_sized_drop(struct store_db *db, const uint8_t job[16], uint64_t oldest);
ERR_MUST_USE enum err store_sized_each(struct store_db *db, const uint8_t job[16],
    enum err (*fn)(void *ctx, const struct store_sized *row), void *ctx);

/* In the place of the device's task before it. */
ERR_MUST_USE enum err store_out_put(struct store_db *db, const struct store_out *row);
/* It was given back; harmless if the device has another by now. */
ERR_MUST_USE enum err store_out_drop(struct store_db *db, const struct store_out *row);
ERR_MUST_USE enum err store_out_clear(struct store_db *db, const uint8_t job[16]);
/* Those of after->job that went out after after->at and were not answered by a delta, by device. */
ERR_MUST_USE enum err store_out_unanswered(struct store_db *db, const struct store_out *after,
    enum err (*fn)(void *ctx, const struct store_out *row), void *ctx);

ERR_MUST_USE enum err store_model_put(
    struct store_db *db, const struct store_model *m); /* existing id: no change */
/* Makes a model belong to no job, so that no retention removes it, and to this owner if it has none. ERR_NOTFOUND. */
ERR_MUST_USE enum err store_model_pin(
    struct store_db *db, const uint8_t id[32], const uint8_t owner[32]);
/* Bytes of an owner's models: its own, and those of its jobs. */
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
