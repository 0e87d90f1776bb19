#ifndef RESEAL_H
#define RESEAL_H
#include "spool.h"

/*
 * Cuts an encrypted part off at `bytes` and gives it a new nonce, by copying the bytes before. Other bytes will be written where some were
 * cut off: under the old nonce, two copies of the disk would show the difference of old and new bytes. ERR_AGAIN if a newer transfer
 * has begun; after any failure the part is as before. The copy is named "<task>.<number>.new" until it is whole. Blocks for the copying.
 */
ERR_MUST_USE enum err spool_reseal(
    struct spool *s, struct spool_part *part, uint64_t bytes, struct why *why);

#endif
