#ifndef IDX_H
#define IDX_H
#include "dataset.h"

/*
 * IDX, the container of MNIST: plain or gzip, told by the first two bytes. Bytes in, arrays out; the file's bytes stay the caller's.
 * Sizes that the file claims meet the limits of dataset.h before any allocation.
 */

/* Labels only: a file of unsigned bytes with one dimension. The caller frees *labels. */
ERR_MUST_USE enum err idx_labels(
    int32_t **labels, size_t *count, const void *file, size_t len, struct why *why);
/* Images: unsigned bytes with 2 to 4 dimensions; those beyond the first become the shape: {n,1,1} of 1 dim, or {1,h,w} and {c,h,w}
 * of 3 dims. Only the examples whose indices stand in `keep` (ascending, unique; NULL: all) are kept in memory, in that order. The
 * whole file is read and checked either way. labels are left NULL. */
ERR_MUST_USE enum err idx_images(struct dataset *out, const void *file, size_t len,
    const uint32_t *keep, size_t keep_count, struct why *why);

#endif
