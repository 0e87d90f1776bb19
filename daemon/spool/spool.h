#ifndef SPOOL_H
#define SPOOL_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "delta_file.h"
#include "request_id.h"

/*
 * The folder of deltas until their round is committed: "<task>.part" while one arrives, also between two pieces of a broken upload,
 * "<task>.delta" once accepted; both in the format of delta_file.h. Every file counts against the quota with its full size from
 * its first byte. One transfer per task is live; a newer one ends it. Any thread; calls may wait for the disk.
 */
struct spool;
struct spool_report; /* report.h */
struct spool_slot; /* a part on disk, with or without a live transfer */

struct spool_options {
	const char *dir;
	uint64_t quota; /* bytes; 0: no limit */
	bool memory; /* the folder does not outlive the machine: nothing is synced */
	const uint8_t *secret; /* 32 bytes: new files are encrypted; NULL: they are not */
	struct stop *stop; /* once asked for, hashing ends with ERR_CLOSED; NULL: never */
	/* The folder for deltas that no row explains, on the same file system; made when needed. */
	const char *lost;
};

/* A live transfer, which has one owner. Zeroed: no transfer. */
struct spool_part {
	struct delta_file file;
	struct spool_slot *slot; /* NULL: no transfer, or not live any more */
	bool begun; /* lock and file are to be released by spool_drop or spool_leave */
	pthread_mutex_t lock; /* held while a piece is written, so that a newer transfer waits */
	bool superseded, complete;
	bool accepted; /* the file has its accepted name, whether or not the commit succeeded */
	char began[REQUEST_ID_MAX]; /* the request that the upload began with; "": not known */
	bool by_mark; /* the upload was resumed, and bytes before the mark were not hashed again */
};

ERR_MUST_USE enum err spool_open(
    struct spool **out, const struct spool_options *options, struct why *why);
void spool_close(struct spool *s);
bool spool_in_memory(const struct spool *s);
const char *spool_dir(const struct spool *s);

/* Ends an older transfer of the manifest's task, removes what it left, reserves the quota and makes a new part. ERR_NOSPACE if
 * the quota is full, ERR_AGAIN while a complete transfer of the task is on its way to the store. The part must stay in place
 * until spool_drop or spool_leave. */
ERR_MUST_USE enum err spool_begin(struct spool *s, const uint8_t manifest[MANIFEST_LEN],
    struct spool_part *part, struct why *why);
/* Resumes the part of a task: as spool_begin, but the bytes that are there stay. ERR_NOTFOUND if this device has no part of the task, or
 * the part's head is damaged (the part is then removed). The body is NOT checked. */
ERR_MUST_USE enum err spool_resume(struct spool *s, const uint8_t task[16],
    const uint8_t device[32], struct spool_part *part, struct why *why);
/* Notes the request that the upload began with, for part->began of spool_resume; a restart forgets. */
void spool_began(struct spool *s, struct spool_part *part, const char *request);
/* Writes body bytes. ERR_AGAIN if a newer transfer has begun. */
ERR_MUST_USE enum err spool_write(
    struct spool *s, struct spool_part *part, const void *data, size_t len, uint64_t at);
/* Cuts the body off at `at`. ERR_AGAIN if a newer transfer has begun. */
ERR_MUST_USE enum err spool_cut(struct spool *s, struct spool_part *part, uint64_t at);
/* The body is complete: from now on no newer transfer ends this one. Syncs the file. ERR_AGAIN if a newer transfer had begun. */
ERR_MUST_USE enum err spool_sync(struct spool *s, struct spool_part *part, struct why *why);
/* Renames the part to its accepted name (store thread, inside the transaction that accepts the delta); its quota stays taken. */
ERR_MUST_USE enum err spool_accept(struct spool *s, struct spool_part *part, struct why *why);
/* Ends a transfer and removes its part. Harmless after spool_accept, after a newer transfer has begun, and twice. */
void spool_drop(struct spool *s, struct spool_part *part);
/* Ends a transfer; its part stays and can be resumed. Harmless after spool_accept, after a newer transfer has begun, and twice. */
void spool_leave(struct spool *s, struct spool_part *part);

/* Removes parts without a live transfer: those of this round of the job and of earlier ones. */
void spool_forget(struct spool *s, const uint8_t job[16], uint64_t round);
/* Removes parts without a live transfer since idle_ms milliseconds or longer. */
void spool_expire(struct spool *s, uint64_t idle_ms);

/* Makes accepted names durable, if there are new ones since the last call. */
ERR_MUST_USE enum err spool_sync_names(void *spool, struct why *why);

/* Opens an accepted delta for reading (delta_file_read at file->leaf_bytes is the payload). ERR_NOTFOUND; ERR_CORRUPT if its head
 * or length is wrong, or the manifest, unless NULL, has other signed bytes; else as delta_file_open. */
ERR_MUST_USE enum err spool_read(struct spool *s, const uint8_t task[16], const uint8_t *manifest,
    struct delta_file *file, struct why *why);
/* An accepted delta was found damaged: spool_read refuses it with ERR_CORRUPT and this reason until spool_remove. ERR_NOMEM. */
ERR_MUST_USE enum err spool_condemn(struct spool *s, const uint8_t task[16], const char *reason);
/* Takes back spool_condemn: the delta may be sound again. False: the delta was not condemned. */
bool spool_pardon(struct spool *s, const uint8_t task[16]);
/* Checks all of an accepted delta that spool_read opened, as delta_file_verify, unless this process has checked every byte of the file
 * within the last hour and nobody has written to it since (verified.h). */
ERR_MUST_USE enum err spool_verify(
    struct spool *s, const uint8_t task[16], const struct delta_file *file, struct why *why);
/* Removes an accepted delta and gives its quota back. */
void spool_remove(struct spool *s, const uint8_t task[16]);
/* *bytes: the size of an accepted delta's file. ERR_NOTFOUND */
ERR_MUST_USE enum err spool_size(
    struct spool *s, const uint8_t task[16], uint64_t *bytes, struct why *why);
/* Takes an accepted delta out of the spool by renaming its file to `to`, on the same file system, and gives its quota back. ERR_NOTFOUND if
 * there is no such delta; after a failure it stays in the spool. */
ERR_MUST_USE enum err spool_move(
    struct spool *s, const uint8_t task[16], const char *to, struct why *why);
/* The key that new files are encrypted with, or NULL. */
const struct delta_key *spool_key(const struct spool *s);

/* What becomes of a file found at start. */
enum spool_fate {
	SPOOL_STAYS,
	SPOOL_GOES,
	/* Removed as the leftover of a crash; set aside if another file is SPOOL_LOST, as the database is not theirs. */
	SPOOL_LEFTOVER,
	SPOOL_LOST, /* set aside in `lost` */
};
/* Decides on a file. m: the manifest in its head; NULL if the head of a delta cannot be read. A part without a whole head is removed
 * without asking. */
typedef enum spool_fate spool_judge(
    void *ctx, const uint8_t task[16], bool part, const struct manifest *m);
/* At start, before any other thread: has `judge` decide on each file named as a part or delta, and keeps it, removes it or sets it aside;
 * files that stay and lost ones are counted (lost.h). ERR_DENIED, and nothing has happened, if a file that stays is encrypted with another
 * key. */
ERR_MUST_USE enum err spool_recover(
    struct spool *s, spool_judge *judge, void *ctx, struct why *why);

uint64_t spool_used(struct spool *s);
/* *out does not count the archive. */
void spool_report(struct spool *s, struct spool_report *out);
/* Is there no room for a delta of so many bytes of payload? */
bool spool_full(struct spool *s, uint64_t payload_bytes);

#endif
