#ifndef BLOCK_H
#define BLOCK_H
#include "codec.h"

/* What codecs that work in blocks share. Within wire/ only. A payload of `end` bytes is a row of blocks of `whole` bytes each; the last
 * block may be shorter. */

/* Called with `len` bytes at p: bytes `from` on of a block that is block_len bytes long. */
typedef enum err (*codec_block_take)(
    void *context, size_t from, size_t block_len, const uint8_t *p, size_t len);

/* Calls `take` for `len` bytes of the payload from byte `at` on, once for each block that they touch. ERR_INVALID past the payload's end,
 * or take's first error. */
ERR_MUST_USE enum err codec_block_walk(uint64_t at, uint64_t end, size_t whole, const uint8_t *data,
    size_t len, codec_block_take take, void *context);
/* Byte range *at, *len of the whole blocks that hold elements [first, first + count). A whole block holds `elements` elements. */
void codec_block_range(uint64_t end, size_t whole, size_t elements, uint64_t first, size_t count,
    uint64_t *at, size_t *len);

#endif
