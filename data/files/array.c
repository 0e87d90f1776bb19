#include "array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net_spec.h"
#include "num.h"

#define READ_AHEAD (128u << 10) /* bytes, the kernel's habit */
#define CHUNK 4096 /* values on their way to floats */

enum err
array_check(struct array *a, uint64_t room, struct why *why)
{
	uint64_t values = a->size[0];

	for (unsigned i = 0; i < a->dims; i++)
		if (a->size[i] == 0)
			return err_set(why, ERR_INVALID, "the file holds no values");
	if (a->size[0] > DATASET_EXAMPLES_MAX)
		return err_set(why, ERR_LIMIT, "the file claims %llu examples, more than %u",
		    (unsigned long long)a->size[0], DATASET_EXAMPLES_MAX);
	for (unsigned i = 1; i < a->dims; i++) {
		if (a->size[i] > UINT32_MAX || values > DATASET_BYTES_MAX / a->size[i])
			return err_set(why, ERR_LIMIT, "the file claims too many values");
		values *= a->size[i];
	}
	if (values > room / dataset_type_size(a->type))
		return err_set(why, ERR_INVALID, "the file claims more values than it can hold");
	/* Where size_t has 32 bits it is the smaller limit. */
	if (values / a->size[0] > SIZE_MAX / sizeof(double))
		return err_set(why, ERR_LIMIT, "the file's examples are too large");
	a->count = (size_t)a->size[0];
	a->features = (size_t)(values / a->size[0]);
	return ERR_OK;
}

void
array_shape(struct dataset *d, const struct array *a)
{
	d->dims = a->dims <= 2 ? 1 : 3;
	d->shape[0] = a->dims == 3 ? 1 : a->dims == 1 ? 1 : (uint32_t)a->size[1];
	d->shape[1] = a->dims <= 2 ? 1 : (uint32_t)a->size[a->dims - 2];
	d->shape[2] = a->dims <= 2 ? 1 : (uint32_t)a->size[a->dims - 1];
	d->features = a->features;
}

static enum err
not_finite(const struct array *a, uint64_t value, struct why *why)
{
	return err_set(why, ERR_NUMERIC, "value %llu of example %llu is not finite",
	    (unsigned long long)(value % a->features) + 1,
	    (unsigned long long)(value / a->features) + 1);
}

/* The next n values as floats; `first` is the number of the first, for the reason. */
static enum err
take_floats(
    struct unpack *io, const struct array *a, float *out, size_t n, uint64_t first, struct why *why)
{
	size_t size = dataset_type_size(a->type);
	uint64_t chunk[CHUNK];

	for (size_t done = 0, now; done < n; done += now) {
		now = n - done < CHUNK ? n - done : CHUNK;
		enum err e = unpack_take(io, chunk, now * size, why);
		if (e)
			return e;
		dataset_widen(out + done, chunk, a->type, a->big_endian, now);
		for (size_t i = 0; i < now; i++)
			if (!isfinite(out[done + i]))
				return not_finite(a, first + done + i, why);
	}
	return ERR_OK;
}

/* Row `index` to its place among the kept ones. */
static enum err
take_example(struct unpack *io, struct dataset *d, const struct array *a, size_t place,
    uint64_t index, struct why *why)
{
	if (d->bytes)
		return unpack_take(io, d->bytes + place * a->features, a->features, why);
	return take_floats(
	    io, a, d->floats + place * a->features, a->features, index * a->features, why);
}

static enum err
take_kept(struct unpack *io, struct dataset *d, const struct array *a, const uint32_t *keep,
    struct why *why)
{
	uint64_t next = 0, bytes = (uint64_t)a->features * dataset_type_size(a->type);

	for (size_t i = 0; i < d->count; i++) {
		uint64_t index = keep ? keep[i] : i;
		enum err e = unpack_take(io, NULL, (index - next) * bytes, why);
		if (!e)
			e = take_example(io, d, a, i, index, why);
		if (e)
			return e;
		next = index + 1;
	}
	enum err e = unpack_take(io, NULL, (a->count - next) * bytes, why);
	return e ? e : unpack_end(io, why);
}

static enum err
check_keep(const struct array *a, const uint32_t *keep, size_t keep_count, struct why *why)
{
	enum err e = unpack_check_keep(keep, keep_count, why);

	if (!e && keep && keep_count > 0 && keep[keep_count - 1] >= a->count)
		e = err_set(why, ERR_INVALID, "the file has only %zu examples", a->count);
	return e;
}

enum err
array_examples(struct dataset *out, const struct array *a, struct unpack *io, const uint32_t *keep,
    size_t keep_count, struct why *why)
{
	struct dataset d = {.count = keep ? keep_count : a->count};
	size_t size = a->type == DATASET_U8 ? 1 : sizeof(float), bytes;
	enum err e = check_keep(a, keep, keep_count, why);

	if (e)
		return e;
	array_shape(&d, a);
	void *block = num_mul(d.count, a->features * size, &bytes) && bytes <= DATASET_BYTES_MAX
	    ? malloc(bytes > 0 ? bytes : 1)
	    : NULL;
	if (!block)
		return err_set(why, ERR_NOMEM, "no memory for %zu examples", d.count);
	if (a->type == DATASET_U8)
		d.bytes = block;
	else
		d.floats = block;
	e = take_kept(io, &d, a, keep, why);
	if (e)
		dataset_deinit(&d);
	else
		*out = d;
	return e;
}

/* --- rows of a file that stays mapped */

static enum err
check_rows(const struct dataset *d, const struct array *a, struct why *why)
{
	size_t size = dataset_type_size(a->type);
	float some[256];

	if (a->type != DATASET_F32 && a->type != DATASET_F64)
		return ERR_OK;
	for (size_t i = 0; i < d->count; i++) {
		size_t row = d->row ? d->row[i] : i;
		const uint8_t *at = d->rows->values + row * a->features * size;
		for (size_t done = 0, now; done < a->features; done += now) {
			now = a->features - done < 256 ? a->features - done : 256;
			dataset_widen(some, at + done * size, a->type, a->big_endian, now);
			for (size_t k = 0; k < now; k++)
				if (!isfinite(some[k]))
					return not_finite(
					    a, (uint64_t)row * a->features + done + k, why);
		}
	}
	return ERR_OK;
}

static enum err
list_rows(struct dataset *d, const uint32_t *keep, size_t keep_count)
{
	d->count = keep_count;
	d->row = malloc(keep_count > 0 ? keep_count * sizeof(*keep) : 1);
	if (!d->row)
		return ERR_NOMEM;
	if (keep_count > 0)
		memcpy(d->row, keep, keep_count * sizeof(*keep));
	return ERR_OK;
}

/* Rows come in random order. Reading ahead warms a set that fits the memory, and of a larger one it reads what nobody asked for. */
static void
advise(const struct dataset_rows *r, size_t row_bytes)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	if (pages > 0 && page > 0 && row_bytes < READ_AHEAD &&
	    r->map.len / (uint64_t)page > (uint64_t)pages / 2)
		(void)!madvise((void *)(uintptr_t)r->map.data, r->map.len, MADV_RANDOM);
}

enum err
array_rows(struct dataset *out, const struct array *a, struct file_map *file, const uint32_t *keep,
    size_t keep_count, struct why *why)
{
	struct dataset d = {.count = a->count};
	uint64_t bytes = (uint64_t)a->count * a->features * dataset_type_size(a->type);

	d.rows = calloc(1, sizeof(*d.rows));
	if (!d.rows) {
		file_unmap(file);
		return err_set(why, ERR_NOMEM, "no memory to read the file");
	}
	*d.rows = (struct dataset_rows){.users = 1,
	    .map = *file,
	    .values = file->data + a->at,
	    .type = a->type,
	    .big_endian = a->big_endian};
	*file = (struct file_map){0};
	array_shape(&d, a);
	enum err e = check_keep(a, keep, keep_count, why);
	if (!e && a->at + bytes + a->behind != d.rows->map.len)
		e = err_set(why, ERR_INVALID,
		    a->at + bytes > d.rows->map.len ? "the data ends early"
						    : "bytes follow the data");
	if (!e && keep && (e = list_rows(&d, keep, keep_count)))
		err_set(why, e, "no memory for %zu examples", keep_count);
	if (!e)
		e = check_rows(&d, a, why);
	if (!e)
		advise(d.rows, a->features * dataset_type_size(a->type));
	if (e)
		dataset_deinit(&d);
	else
		*out = d;
	return e;
}

/* --- labels and targets */

static enum err
take_labels(struct unpack *io, const struct array *a, int32_t *out, struct why *why)
{
	size_t size = dataset_type_size(a->type);
	uint64_t chunk[CHUNK];
	float value[CHUNK];

	for (size_t done = 0, now; done < a->count; done += now) {
		now = a->count - done < CHUNK ? a->count - done : CHUNK;
		enum err e = unpack_take(io, chunk, now * size, why);
		if (e)
			return e;
		/* Classes are small enough to be floats on the way, and what is larger stays larger. */
		if (a->type != DATASET_U8)
			dataset_widen(value, chunk, a->type, a->big_endian, now);
		for (size_t i = 0; i < now; i++) {
			float v = a->type == DATASET_U8 ? ((const uint8_t *)chunk)[i] : value[i];
			if (!(v >= 0 && v < RECIPE_CLASSES_MAX))
				return err_set(why, ERR_INVALID,
				    "label %zu: a class is a whole number from 0 to %d",
				    done + i + 1, RECIPE_CLASSES_MAX - 1);
			out[done + i] = (int32_t)v;
		}
	}
	return unpack_end(io, why);
}

enum err
array_labels(int32_t **labels, const struct array *a, struct unpack *io, struct why *why)
{
	if (a->dims != 1)
		return err_set(
		    why, ERR_INVALID, "labels have 1 dimension, this file has %u", a->dims);
	if (a->type == DATASET_F32 || a->type == DATASET_F64)
		return err_set(why, ERR_INVALID,
		    "labels are whole numbers, this file has floating point ones; kind = "
		    "regression "
		    "takes them as targets");
	int32_t *out = malloc(a->count * sizeof(*out));
	if (!out)
		return err_set(why, ERR_NOMEM, "no memory for %zu labels", a->count);
	enum err e = take_labels(io, a, out, why);
	if (e)
		free(out);
	else
		*labels = out;
	return e;
}

enum err
array_targets(float **targets, const struct array *a, struct unpack *io, struct why *why)
{
	size_t n = a->count * a->features;

	if (a->dims > 2)
		return err_set(
		    why, ERR_INVALID, "targets have 1 or 2 dimensions, this file has %u", a->dims);
	if (a->type == DATASET_U8)
		return err_set(
		    why, ERR_UNSUPPORTED, "targets of unsigned bytes are not read: store floats");
	float *out = n <= SIZE_MAX / sizeof(*out) ? malloc(n * sizeof(*out)) : NULL;
	if (!out)
		return err_set(why, ERR_NOMEM, "no memory for %zu targets", n);
	enum err e = take_floats(io, a, out, n, 0, why);
	if (!e)
		e = unpack_end(io, why);
	if (e)
		free(out);
	else
		*targets = out;
	return e;
}
