#ifndef SPARSE_H
#define SPARSE_H
#include "codec.h"

/*
 * Codec "sparse": only the elements of largest magnitude, at most codec_params.entries of them, of equal ones the first
 * (top-k; Aji and Heafield, Sparse communication, 2017). Blocks of 16384 elements follow the table of their ends. An entry is the
 * number of elements left out before it (seven bits a byte, the lowest first, bit 7 of a byte: more follow) and its value as
 * bf16, which is not zero. Elements that are zero as bf16 are never sent. At most 2^30 elements. Encoding gives ERR_NUMERIC for a value
 * that is not finite, or not as bf16. The caller keeps what was left out and rounded away (error feedback).
 */
#define CODEC_SPARSE_ELEMENTS_MAX (1u << 30)

extern const struct codec codec_sparse;

/* The most bytes of a payload of `elements` of which at most `entries` are sent; UINT64_MAX past
 * CODEC_SPARSE_ELEMENTS_MAX. */
uint64_t codec_sparse_most(uint64_t elements, uint64_t entries);

#endif
