#ifndef RESEAL_H
#define RESEAL_H
#include "spool.h"

/*
 * Cuts an encrypted part off at `bytes` and gives it a new nonce, by copying what stays. Where bytes were written and cut off others
 * will be written: by the same stream, two copies of the disk would show the difference of the two. ERR_AGAIN if a newer transfer
 * has begun; after any failure the part is as it was. The copy is "<task>.<number>.new" until it is whole. Blocks for it.
 */
ERR_MUST_USE enum err spool_reseal(
    struct spool *s, struct spool_part *part, uint64_t bytes, struct why *why);

#endif
