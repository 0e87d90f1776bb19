#ifndef BLOCK_H
#define BLOCK_H
#include "codec.h"

/* What codecs of blocks share. Within wire/ only. A payload of `end` bytes is blocks of `whole` bytes, the last one maybe shorter. */

/* Takes len bytes of one block, which has block_len of them, from its byte `from` on. */
typedef enum err (*codec_block_take)(
    void *context, size_t from, size_t block_len, const uint8_t *p, size_t len);

/* Hands bytes that stand at `at` to take, cut where blocks end. ERR_INVALID past the end, or take's first error. */
ERR_MUST_USE enum err codec_block_walk(uint64_t at, uint64_t end, size_t whole, const uint8_t *data,
    size_t len, codec_block_take take, void *context);
/* Byte range of the whole blocks of `elements` each that hold [first, first + count). */
void codec_block_range(uint64_t end, size_t whole, size_t elements, uint64_t first, size_t count,
    uint64_t *at, size_t *len);

#endif
