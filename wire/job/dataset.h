#ifndef DATASET_H
#define DATASET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "recipe.h"

/*
 * Labelled examples in memory, and the file formats they come from: IDX (the MNIST container) and CSV, plain or
 * gzip (told by the first two bytes). Bytes in, arrays out; the only user of zlib. Hostile input meets the limits
 * before any allocation; a gzip stream is decoded piece by piece and never held whole.
 */
#define DATASET_EXAMPLES_MAX 100000000u
#define DATASET_BYTES_MAX ((uint64_t)1 << 36) /* unpacked, read or kept */
#define DATASET_LINE_MAX (1u << 22) /* bytes of a CSV line */

struct dataset {
	size_t count;
	uint32_t shape[3]; /* as in data_spec */
	unsigned dims;
	size_t features; /* product of shape */
	uint8_t *bytes; /* count x features, or NULL: pixel values, read as value/255 */
	float *floats; /* count x features, or NULL */
	int32_t *labels; /* count class indices, or NULL */
	float *targets; /* count x target_width for regression, or NULL */
	size_t target_width;
	size_t classes; /* largest label + 1, or as told by the caller */
};

void dataset_deinit(struct dataset *d);

/* Labels only: an IDX file of unsigned bytes with one dimension. The caller frees *labels. */
ERR_MUST_USE enum err dataset_idx_labels(
    int32_t **labels, size_t *count, const void *file, size_t len, struct why *why);
/* Images: IDX of unsigned bytes with 2 to 4 dimensions; those beyond the first become the shape:
 * {n,1,1} of 1 dim, or {1,h,w} and {c,h,w} of 3 dims.
 * Only the examples whose indices stand in `keep` (ascending, unique; NULL: all) are kept in memory, in that order.
 * The whole file is read and checked either way. labels are left NULL. */
ERR_MUST_USE enum err dataset_idx_images(struct dataset *out, const void *file, size_t len,
    const uint32_t *keep, size_t keep_count, struct why *why);
/* CSV: decimal numbers with a point, separated by semicolons if the first line holds one and by commas otherwise,
 * LF or CRLF; fields may stand in double quotes; blank lines do not count as rows. The first line is a header if one of
 * its fields is neither empty nor a number. The column `label` is a header name, else a 0-based number, else "last" (also
 * NULL); it is the class (whole, 0 <= class < RECIPE_CLASSES_MAX) or, with `regression`, the target. The other columns
 * are the features, in order: shape {n,1,1}. `why` counts lines and columns from 1 and never quotes the data. */
struct dataset_csv {
	const char *label;
	bool regression;
	size_t max_rows; /* 0: DATASET_EXAMPLES_MAX */
};
ERR_MUST_USE enum err dataset_csv(struct dataset *out, const void *file, size_t len,
    const struct dataset_csv *how, const uint32_t *keep, size_t keep_count, struct why *why);
/* Number of rows and the class of each (0 for regression), without keeping the values: for sharding. The caller frees
 * *labels. Checks the label column only. */
ERR_MUST_USE enum err dataset_csv_labels(int32_t **labels, size_t *count, const void *file,
    size_t len, const struct dataset_csv *how, struct why *why);

/* Copies the examples of `from` with the given indices to a new set (for validation shares). ERR_INVALID for an index
 * out of range. */
ERR_MUST_USE enum err dataset_subset(
    struct dataset *out, const struct dataset *from, const uint32_t *indices, size_t n);
/* Writes example `index` (< count) as `features` floats: bytes as value/255, floats as they are; then, if spec is given
 * and has channels, (x - mean) / std with one mean and std for all or one for each of `channels` equal planes. Every step
 * is one IEEE operation in binary32: the same bits on every machine. */
void dataset_fill(
    const struct dataset *d, const struct data_spec *spec, uint32_t index, float *out);

#endif
