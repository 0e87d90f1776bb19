#ifndef VERIFIED_H
#define VERIFIED_H
#include <stdbool.h>
#include <stdint.h>

#include "delta_body.h"
#include "spool.h"

/*
 * Bytes that need not be hashed again: those that this process has checked within the last hour, of files that by inode, length and times
 * of change nobody else has written to since. That is all of an accepted file, or of a part the bytes before its mark: a device that
 * resumes an upload again and again does not have it hashed again and again. Any thread.
 */
struct spool_verified;
struct spool_slot;

ERR_MUST_USE enum err spool_verified_new(struct spool_verified **out);
void spool_verified_free(struct spool_verified *t);
/* Notes that the open file fd of a task was checked just now. Without memory for the note the file will be checked again. */
void spool_verified_note(struct spool_verified *t, const uint8_t task[16], int fd);
bool spool_verified_holds(struct spool_verified *t, const uint8_t task[16], int fd);
void spool_verified_forget(struct spool_verified *t, const uint8_t task[16]);

/* Notes that all bytes of the part before the mark were just found good. False: a newer transfer has begun, and does the checking. */
bool spool_verified_until(
    struct spool *s, struct spool_part *part, const struct delta_watermark *mark);
/* The mark that was noted last; zeros if there is none, or it is too old, or somebody else wrote to the file. */
struct delta_watermark spool_verified_mark(struct spool *s, struct spool_part *part);
/* Notes that this process wrote all that was written to the part so far. The spool's lock is held. */
void spool_verified_sign(struct spool_slot *slot, int fd);

#endif
