#ifndef DATASET_H
#define DATASET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "file.h"

struct data_spec;

/*
 * Labelled examples: arrays, whatever files they came from (data/). The values lie in memory, or stay in a mapped file, of which a set
 * is a list of rows.
 */
#define DATASET_EXAMPLES_MAX 100000000u
#define DATASET_BYTES_MAX ((uint64_t)1 << 36) /* of a file, unpacked, read or kept */

/* How a file holds a value. */
enum dataset_type {
	DATASET_U8, /* a pixel: value / 255. All others are the number as it stands. */
	DATASET_I8,
	DATASET_I16,
	DATASET_I32,
	DATASET_I64,
	DATASET_F32,
	DATASET_F64,
	DATASET_TYPES
};
size_t dataset_type_size(enum dataset_type type);

/* Rows of values in a mapped file or in allocated memory; counted by reference, freed with the last set that uses them. */
struct dataset_rows {
	unsigned users; /* number of sets; touched by dataset_ functions only */
	struct file_map map; /* unmapped with the last user */
	void *heap; /* freed with the last user */
	const uint8_t *values;
	enum dataset_type type;
	bool big_endian;
	bool
	    tokens; /* a text: rows follow each other without a gap, and a row's targets begin one value behind it */
	size_t items; /* of a text: how many tokens */
	size_t token_end; /* of a text: largest token + 1; 0: not known */
};

struct dataset {
	size_t count;
	uint32_t shape
	    [3]; /* as in data_spec; dims 0: nothing is known but the count, only a trainer reads the set */
	unsigned dims;
	size_t features; /* product of shape */
	/* The values are in one of bytes, floats and rows; in none if dims is 0. */
	uint8_t *bytes; /* count x features: pixel values, read as value/255 */
	float *floats; /* count x features */
	struct dataset_rows *rows;
	size_t first; /* with rows: example i is row first + i if `row` is NULL */
	uint32_t *row; /* with rows: example i is row[i]; NULL: see first */
	int32_t *labels; /* count class indices, or NULL */
	float *targets; /* count x target_width for regression, or NULL */
	size_t target_width;
	/* Largest label + 1, or as told by the caller; of a text: how many different tokens there are. */
	size_t classes;
	char *
	    names; /* of the classes, each ended by a line feed; NULL: the file has none. Not in subsets */
};

void dataset_deinit(struct dataset *d);

/* A shape as people write it: "[3, 32, 32]". */
#define DATASET_SHAPE_TEXT 48
const char *dataset_shape_text(
    char out[DATASET_SHAPE_TEXT], const uint32_t shape[3], unsigned dims);
/* Has the set the shape of the recipe's data, dimension by dimension? A recipe without a shape takes any set; a recipe of two dimensions
 * [a, b] also a set of planes [1, a, b], as image files give. */
bool dataset_shape_fits(const struct dataset *d, const struct data_spec *spec);

/* Makes a new set of the examples of `from` with the given indices (for validation shares). Arrays in memory are copied, rows are shared.
 * ERR_INVALID for an index out of range. */
ERR_MUST_USE enum err dataset_subset(
    struct dataset *out, const struct dataset *from, const uint32_t *indices, size_t n);
/* The `count` examples of d from number `from` on, without a copy: valid as long as d, and not to be given to dataset_deinit. */
struct dataset dataset_window(const struct dataset *d, size_t from, size_t count);
/* A text cut into examples of another length: shares the rows. ERR_INVALID if d is no text, or shorter than one example. */
ERR_MUST_USE enum err dataset_cut(
    struct dataset *out, const struct dataset *d, uint64_t window, struct why *why);

/* Writes example `index` (< count) as `features` floats: pixels as value/255, all else, tokens too, as it is; then, if spec is given
 * and has channels, (x - mean) / std with one mean and std for all or one for each of `channels` equal planes. Every step
 * is one IEEE operation in binary32: the same bits on every machine. */
void dataset_fill(
    const struct dataset *d, const struct data_spec *spec, uint32_t index, float *out);
/* Normalises `features` floats at x in place, as dataset_fill does. */
void dataset_normalise(const struct data_spec *spec, size_t features, float *x);

/* The kind of an example's values when handed to other programs: uint8_t pixels, float numbers or int32_t tokens. */
enum dataset_form { DATASET_PIXELS, DATASET_NUMBERS, DATASET_TOKENS };
enum dataset_form dataset_form(const struct dataset *d);
/* Writes example `index` to out as values of its dataset_form: uint8_t, float or int32_t. */
void dataset_copy(const struct dataset *d, uint32_t index, void *out);
/* Of a text: writes the token that follows each token of the example to out. */
void dataset_next(const struct dataset *d, uint32_t index, int32_t *out);

/* Converts n values, as a file holds them, to floats: pixels to value / 255, all other types to the number as it stands. */
void dataset_widen(float *out, const void *in, enum dataset_type type, bool big_endian, size_t n);

#endif
