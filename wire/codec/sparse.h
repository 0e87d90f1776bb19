#ifndef SPARSE_H
#define SPARSE_H
#include "codec.h"

/*
 * Codec "sparse": the elements of largest magnitude alone, at most codec_params.entries of them, of equal ones the first
 * (top-k; Aji and Heafield, Sparse communication, 2017). Blocks of 16384 elements behind the table of their ends; an entry is the
 * number of elements left out before it (seven bits a byte, the lowest first, bit 7 of a byte: more follow) and its value as
 * bf16, which is not zero. What is zero as bf16 is never sent. At most 2^30 elements. Encoding gives ERR_NUMERIC for what is not
 * finite, or not as bf16. What is left out and rounded away is for the caller to keep: error feedback.
 */
#define CODEC_SPARSE_ELEMENTS_MAX (1u << 30)

extern const struct codec codec_sparse;

/* As codec_sparse.payload_bytes, for so many entries. */
uint64_t codec_sparse_most(uint64_t elements, uint64_t entries);

#endif
