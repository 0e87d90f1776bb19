#ifndef DATASET_H
#define DATASET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "recipe.h"

/*
 * Labelled examples in memory: arrays, whatever files they came from (data/).
 */
#define DATASET_EXAMPLES_MAX 100000000u
#define DATASET_BYTES_MAX ((uint64_t)1 << 36) /* of a file, unpacked, read or kept */

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

/* A shape as people write it: "[3, 32, 32]". */
#define DATASET_SHAPE_TEXT 48
const char *dataset_shape_text(
    char out[DATASET_SHAPE_TEXT], const uint32_t shape[3], unsigned dims);
/* The same dimensions in the same order? A recipe without a shape takes any. */
bool dataset_shape_fits(const struct dataset *d, const struct data_spec *spec);

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
