#ifndef VERIFIED_H
#define VERIFIED_H
#include <stdbool.h>
#include <stdint.h>

#include "delta_body.h"
#include "spool.h"

/*
 * What need not be hashed again: bytes that this process has checked within the last hour, of files that the file system says nobody
 * else has written to since (inode, length, times of change). All bytes of accepted files, and those of a part before its mark, so
 * that who asks for it again and again does not have it hashed again and again. Any thread.
 */
struct spool_verified;
struct spool_slot;

ERR_MUST_USE enum err spool_verified_new(struct spool_verified **out);
void spool_verified_free(struct spool_verified *t);
/* The open file was checked just now. Without memory for it, it will be checked again. */
void spool_verified_note(struct spool_verified *t, const uint8_t task[16], int fd);
bool spool_verified_holds(struct spool_verified *t, const uint8_t task[16], int fd);
void spool_verified_forget(struct spool_verified *t, const uint8_t task[16]);

/* Everything before the mark was just found good. False: a newer transfer has begun, and hashing goes on there. */
bool spool_verified_until(
    struct spool *s, struct spool_part *part, const struct delta_watermark *mark);
/* The mark noted last; zeros without one that counts. */
struct delta_watermark spool_verified_mark(struct spool *s, struct spool_part *part);
/* What was written to the part up to now was written by us. The spool's lock is held. */
void spool_verified_sign(struct spool_slot *slot, int fd);

#endif
