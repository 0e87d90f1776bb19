#include "dataset.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "num.h"
#include "recipe.h"

size_t
dataset_type_size(enum dataset_type type)
{
	switch (type) {
	case DATASET_U8:
	case DATASET_I8:
		return 1;
	case DATASET_I16:
		return 2;
	case DATASET_I32:
	case DATASET_F32:
		return 4;
	case DATASET_I64:
	case DATASET_F64:
		return 8;
	case DATASET_TYPES:
		break;
	}
	return 0;
}

static void
drop_rows(struct dataset_rows *rows)
{
	if (!rows || --rows->users > 0)
		return;
	file_unmap(&rows->map);
	free(rows->heap);
	free(rows);
}

void
dataset_deinit(struct dataset *d)
{
	free(d->bytes);
	free(d->floats);
	drop_rows(d->rows);
	free(d->row);
	free(d->names);
	free(d->labels);
	free(d->targets);
	*d = (struct dataset){0};
}

const char *
dataset_shape_text(char out[DATASET_SHAPE_TEXT], const uint32_t shape[3], unsigned dims)
{
	size_t n = (size_t)snprintf(out, DATASET_SHAPE_TEXT, "[");

	for (unsigned i = 0; i < dims; i++)
		n += (size_t)snprintf(
		    out + n, DATASET_SHAPE_TEXT - n, "%s%u", i ? ", " : "", shape[i]);
	snprintf(out + n, DATASET_SHAPE_TEXT - n, "]");
	return out;
}

/* Pixels of another order are as many, and train nonsense. */
bool
dataset_shape_fits(const struct dataset *d, const struct data_spec *spec)
{
	const uint32_t plane[3] = {1, spec->shape[0], spec->shape[1]};
	bool two = spec->dims == 2 && d->dims == 3;

	return spec->dims == 0 || (two && memcmp(d->shape, plane, sizeof(plane)) == 0) ||
	    (d->dims == spec->dims &&
		memcmp(d->shape, spec->shape, d->dims * sizeof(*d->shape)) == 0);
}

/* Copies the rows of `width` items of `size` bytes with the given indices; *out stays NULL if `from` is. */
static enum err
pick(void **out, const void *from, size_t row, const uint32_t *indices, size_t n)
{
	size_t bytes;

	if (!from)
		return ERR_OK;
	if (!num_mul(n, row, &bytes))
		return ERR_NOMEM;
	char *to = malloc(bytes > 0 ? bytes : 1);
	if (!to)
		return ERR_NOMEM;
	for (size_t i = 0; i < n; i++)
		memcpy(to + i * row, (const char *)from + indices[i] * row, row);
	*out = to;
	return ERR_OK;
}

static size_t
row_of(const struct dataset *d, size_t index)
{
	return d->row ? d->row[index] : d->first + index;
}

static enum err
pick_rows(struct dataset *d, const struct dataset *from, const uint32_t *indices)
{
	d->row = malloc(d->count > 0 ? d->count * sizeof(*d->row) : 1);
	if (!d->row)
		return ERR_NOMEM;
	for (size_t i = 0; i < d->count; i++)
		d->row[i] = (uint32_t)row_of(from, indices[i]);
	d->first = 0;
	d->rows = from->rows;
	d->rows->users++;
	return ERR_OK;
}

static enum err
pick_all(struct dataset *d, const struct dataset *from, const uint32_t *indices)
{
	void *bytes = NULL, *floats = NULL, *labels = NULL, *targets = NULL;
	size_t n = d->count;
	enum err e = pick(&bytes, from->bytes, from->features, indices, n);

	if (!e)
		e = pick(&floats, from->floats, from->features * sizeof(float), indices, n);
	if (!e)
		e = pick(&labels, from->labels, sizeof(int32_t), indices, n);
	if (!e)
		e = pick(&targets, from->targets, from->target_width * sizeof(float), indices, n);
	d->bytes = bytes;
	d->floats = floats;
	d->labels = labels;
	d->targets = targets;
	return e || !from->rows ? e : pick_rows(d, from, indices);
}

enum err
dataset_subset(struct dataset *out, const struct dataset *from, const uint32_t *indices, size_t n)
{
	struct dataset d = *from;

	for (size_t i = 0; i < n; i++)
		if (indices[i] >= from->count)
			return ERR_INVALID;
	d.count = n;
	d.rows = NULL;
	d.row = NULL;
	d.names = NULL;
	enum err e = pick_all(&d, from, indices);
	if (e)
		dataset_deinit(&d);
	else
		*out = d;
	return e;
}

struct dataset
dataset_window(const struct dataset *d, size_t from, size_t count)
{
	struct dataset w = *d;

	w.count = count;
	w.bytes = d->bytes ? d->bytes + from * d->features : NULL;
	w.floats = d->floats ? d->floats + from * d->features : NULL;
	w.first = d->first + from;
	w.row = d->row ? d->row + from : NULL;
	w.labels = d->labels ? d->labels + from : NULL;
	w.targets = d->targets ? d->targets + from * d->target_width : NULL;
	return w;
}

enum err
dataset_cut(struct dataset *out, const struct dataset *d, uint64_t window, struct why *why)
{
	if (!d->rows || !d->rows->tokens)
		return err_set(why, ERR_INVALID, "only a text can be cut into windows");
	uint64_t count = d->rows->items > 0 ? (d->rows->items - 1) / window : 0;
	if (count == 0)
		return err_set(why, ERR_INVALID,
		    "%zu tokens are too few for a window of %llu and the token behind it",
		    d->rows->items, (unsigned long long)window);
	*out = (struct dataset){.count = (size_t)count,
	    .shape = {(uint32_t)window, 1, 1},
	    .dims = 1,
	    .features = (size_t)window,
	    .rows = d->rows,
	    .classes = d->classes};
	d->rows->users++;
	return ERR_OK;
}

#define STEP 16

/* gcc at -O2 widens bytes to floats one by one, unless it is told to double the width step by step. Loops over a fixed
 * number of floats need no such help. */
#define VECTOR(type) __attribute__((vector_size(STEP * sizeof(type))))
typedef uint8_t vector8 VECTOR(uint8_t);
typedef uint16_t vector16 VECTOR(uint16_t);
typedef int32_t vector32 VECTOR(int32_t);
typedef float vector_float VECTOR(float);

CPU_CLONES static void
scale_bytes(float *out, const uint8_t *in, size_t n)
{
	size_t i = 0;

	for (; i + STEP <= n; i += STEP) {
		vector8 b;
		memcpy(&b, in + i, sizeof(b));
		vector16 wider = __builtin_convertvector(b, vector16);
		vector32 whole = __builtin_convertvector(wider, vector32);
		vector_float x = __builtin_convertvector(whole, vector_float) / 255.0f;
		memcpy(out + i, &x, sizeof(x));
	}
	for (; i < n; i++)
		out[i] = (float)in[i] / 255.0f;
}

CPU_CLONES static void
normalise(float *x, size_t n, float mean, float std)
{
	size_t i = 0;

	for (; i + STEP <= n; i += STEP)
		for (size_t k = 0; k < STEP; k++)
			x[i + k] = (x[i + k] - mean) / std;
	for (; i < n; i++)
		x[i] = (x[i] - mean) / std;
}

/* --- values of files */

static uint64_t
load_bits(const uint8_t *in, size_t size, bool big_endian)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < size; i++)
		bits = bits << 8 | in[big_endian ? i : size - 1 - i];
	return bits;
}

static float
widen_one(const uint8_t *in, enum dataset_type type, bool big_endian)
{
	size_t size = dataset_type_size(type);
	uint64_t bits = load_bits(in, size, big_endian);
	uint32_t half = (uint32_t)bits;
	double wide;
	float narrow;

	switch (type) {
	case DATASET_I8:
		return (float)(int8_t)bits;
	case DATASET_I16:
		return (float)(int16_t)bits;
	case DATASET_I32:
		return (float)(int32_t)bits;
	case DATASET_I64:
		return (float)(int64_t)bits;
	case DATASET_F32:
		memcpy(&narrow, &half, sizeof(narrow));
		return narrow;
	case DATASET_F64:
		memcpy(&wide, &bits, sizeof(wide));
		return (float)wide;
	case DATASET_U8:
	case DATASET_TYPES:
		break;
	}
	return (float)(uint8_t)bits / 255.0f;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_BIG false
#else
#define NATIVE_BIG true
#endif

void
dataset_widen(float *out, const void *in, enum dataset_type type, bool big_endian, size_t n)
{
	const uint8_t *at = in;

	if (type == DATASET_U8) {
		scale_bytes(out, at, n);
	} else if (type == DATASET_F32 && big_endian == NATIVE_BIG) {
		memcpy(out, at, n * sizeof(*out));
	} else {
		size_t size = dataset_type_size(type);
		for (size_t i = 0; i < n; i++)
			out[i] = widen_one(at + i * size, type, big_endian);
	}
}

static const uint8_t *
stored(const struct dataset *d, size_t index)
{
	return d->rows->values + row_of(d, index) * d->features * dataset_type_size(d->rows->type);
}

void
dataset_normalise(const struct data_spec *spec, size_t features, float *x)
{
	if (!spec || spec->channels == 0)
		return;
	size_t plane = features / spec->channels;
	for (size_t c = 0; c < spec->channels; c++)
		normalise(x + c * plane, plane, spec->mean[c], spec->std[c]);
}

/* Tokens are bytes or I32 of this machine's order, below 2^24. */
static void
fill_tokens(const struct dataset *d, uint32_t index, float *out)
{
	const uint8_t *from = stored(d, index);

	for (size_t i = 0; i < d->features; i++) {
		int32_t token = from[i * dataset_type_size(d->rows->type)];
		if (d->rows->type == DATASET_I32)
			memcpy(&token, from + i * sizeof(token), sizeof(token));
		out[i] = (float)token;
	}
}

void
dataset_fill(const struct dataset *d, const struct data_spec *spec, uint32_t index, float *out)
{
	size_t n = d->features;

	assert(index < d->count);
	if (dataset_form(d) == DATASET_TOKENS)
		fill_tokens(d, index, out);
	else if (d->rows)
		dataset_widen(out, stored(d, index), d->rows->type, d->rows->big_endian, n);
	else if (d->bytes)
		scale_bytes(out, d->bytes + index * n, n);
	else
		memcpy(out, d->floats + index * n, n * sizeof(*out));
	dataset_normalise(spec, n, out);
}

enum dataset_form
dataset_form(const struct dataset *d)
{
	if (d->rows && d->rows->tokens)
		return DATASET_TOKENS;
	return d->bytes || (d->rows && d->rows->type == DATASET_U8) ? DATASET_PIXELS
								    : DATASET_NUMBERS;
}

/* Tokens are bytes or I32 of this machine's order. */
static void
copy_tokens(const struct dataset *d, const uint8_t *from, int32_t *out)
{
	if (d->rows->type == DATASET_I32)
		memcpy(out, from, d->features * sizeof(*out));
	else
		for (size_t i = 0; i < d->features; i++)
			out[i] = from[i];
}

void
dataset_copy(const struct dataset *d, uint32_t index, void *out)
{
	switch (dataset_form(d)) {
	case DATASET_TOKENS:
		copy_tokens(d, stored(d, index), out);
		break;
	case DATASET_PIXELS:
		memcpy(
		    out, d->rows ? stored(d, index) : d->bytes + index * d->features, d->features);
		break;
	case DATASET_NUMBERS:
		dataset_fill(d, NULL, index, out);
		break;
	}
}

void
dataset_next(const struct dataset *d, uint32_t index, int32_t *out)
{
	assert(d->rows && d->rows->tokens);
	copy_tokens(d, stored(d, index) + dataset_type_size(d->rows->type), out);
}
