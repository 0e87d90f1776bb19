#ifndef WATERMARK_H
#define WATERMARK_H
#include "delta_body.h"
#include "spool.h"

/*
 * How far a part is known to be good, so that asking for it again and again does not hash it again and again: what this process has
 * hashed within the last hour, unless somebody else has written to the file since. Any thread.
 */

/* Everything before the mark was just found good. False: a newer transfer has begun, and hashing goes on there. */
bool spool_watermark_note(
    struct spool *s, struct spool_part *part, const struct delta_watermark *mark);
/* The mark noted last; zeros without one that counts. */
struct delta_watermark spool_watermark_get(struct spool *s, struct spool_part *part);

#endif
