#ifndef SPOOL_H
#define SPOOL_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * The folder spool/: payloads of deltas until their round is committed. "<task>.<n>.part" while it arrives,
 * "<task>.delta" once accepted. Any thread.
 */
struct spool;

/* A payload under construction: one owner. */
struct spool_part {
	int fd;
	char path[1100];
	uint64_t reserved; /* bytes counted against the quota */
	uint8_t task[16];
	atomic_bool superseded; /* a newer transfer of the task has begun: this one takes no more */
	bool complete; /* past the point where it could be superseded */
	struct spool_part *next; /* parts under construction */
};

/* quota 0: no limit. */
ERR_MUST_USE enum err spool_open(
    struct spool **out, const char *dir, uint64_t quota, struct why *why);
void spool_close(struct spool *s);

/* Ends an older, incomplete transfer of the same task, reserves `bytes` of quota and creates the file. ERR_NOSPACE if the quota
 * is full. The part must stay in place until spool_drop. */
ERR_MUST_USE enum err spool_begin(struct spool *s, const uint8_t task[16], uint64_t bytes,
    struct spool_part *part, struct why *why);
/* Syncs the finished part. ERR_AGAIN if it was superseded. */
ERR_MUST_USE enum err spool_sync(struct spool *s, struct spool_part *part, struct why *why);
/* Renames it to its accepted name (store thread, inside the accepting transaction); its quota stays taken. */
ERR_MUST_USE enum err spool_accept(
    struct spool *s, struct spool_part *part, const uint8_t task[16], struct why *why);
/* Closes and removes a part that was not accepted. Harmless after spool_accept. */
void spool_drop(struct spool *s, struct spool_part *part);
/* Makes accepted names durable, if there are new ones since the last call. */
ERR_MUST_USE enum err spool_sync_names(void *spool, struct why *why);

/* Opens an accepted delta for reading; ERR_NOTFOUND, or ERR_CORRUPT if it is not `bytes` long. */
ERR_MUST_USE enum err spool_read(
    struct spool *s, const uint8_t task[16], uint64_t bytes, int *fd, struct why *why);
/* Removes an accepted delta of `bytes` bytes and gives its quota back. */
void spool_remove(struct spool *s, const uint8_t task[16], uint64_t bytes);
/* At start, before any other thread: counts accepted files; removes parts and every accepted file keep() denies. */
ERR_MUST_USE enum err spool_recover(
    struct spool *s, bool (*keep)(void *ctx, const uint8_t task[16]), void *ctx, struct why *why);
uint64_t spool_used(struct spool *s);
/* Is there no room for `bytes` more? */
bool spool_full(struct spool *s, uint64_t bytes);

#endif
