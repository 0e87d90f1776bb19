#ifndef IDX_H
#define IDX_H
#include "array.h"

/*
 * IDX, the container of MNIST: plain or gzip, told by the first two bytes. Bytes in, arrays out; the file's bytes stay the caller's.
 * Sizes that the file claims are checked against the limits of dataset.h before any allocation. Types: unsigned and signed bytes, 16 and
 * 32 bit numbers, 32 and 64 bit floating point; 1 to 4 dimensions.
 */

/* Reads the head; the reader `io` is then at the first value. */
ERR_MUST_USE enum err idx_head(struct array *out, struct unpack *io, struct why *why);

/* Labels only: whole numbers with one dimension. The caller frees *labels. */
ERR_MUST_USE enum err idx_labels(
    int32_t **labels, size_t *count, const void *file, size_t len, struct why *why);
/* Examples only: an array of 2 to 4 dimensions, of which those after the first become the shape: {n} of 1, {1,h,w} of 2, {c,h,w} of 3.
 * Only the examples whose indices stand in `keep` (ascending, unique; NULL: all) are kept in memory, in that order; the
 * whole file is read and checked either way. out->labels stays NULL. */
ERR_MUST_USE enum err idx_images(struct dataset *out, const void *file, size_t len,
    const uint32_t *keep, size_t keep_count, struct why *why);

#endif
