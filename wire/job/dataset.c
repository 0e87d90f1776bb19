#include "dataset.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "num.h"

void
dataset_deinit(struct dataset *d)
{
	free(d->bytes);
	free(d->floats);
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
	return spec->dims == 0 ||
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
	return e;
}

enum err
dataset_subset(struct dataset *out, const struct dataset *from, const uint32_t *indices, size_t n)
{
	struct dataset d = *from;

	for (size_t i = 0; i < n; i++)
		if (indices[i] >= from->count)
			return ERR_INVALID;
	d.count = n;
	enum err e = pick_all(&d, from, indices);
	if (e)
		dataset_deinit(&d);
	else
		*out = d;
	return e;
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

void
dataset_fill(const struct dataset *d, const struct data_spec *spec, uint32_t index, float *out)
{
	size_t n = d->features;

	assert(index < d->count);
	if (d->bytes)
		scale_bytes(out, d->bytes + index * n, n);
	else
		memcpy(out, d->floats + index * n, n * sizeof(*out));
	if (!spec || spec->channels == 0)
		return;
	size_t plane = n / spec->channels;
	for (size_t c = 0; c < spec->channels; c++)
		normalise(out + c * plane, plane, spec->mean[c], spec->std[c]);
}
