#include "inputs_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "recipe.h"
#include "tensors.h"

static size_t
features_of(const struct data_spec *spec)
{
	size_t n = 1;

	for (unsigned i = 0; i < spec->dims; i++)
		n *= spec->shape[i];
	return n;
}

static enum err
no_rows(const char *path, const struct data_spec *spec, struct why *why)
{
	char shape[DATASET_SHAPE_TEXT];

	return err_set(why, ERR_INVALID,
	    "%.100s is not a row of examples: the job's have the shape %s, so the array has one "
	    "dimension more in front",
	    path, dataset_shape_text(shape, spec->shape, spec->dims));
}

static enum err
check_size(uint64_t count, uint64_t bytes, const char *path, struct why *why)
{
	if (count == 0)
		return err_set(why, ERR_INVALID, "%.100s has no examples", path);
	if (count > DATASET_EXAMPLES_MAX || bytes > CMD_INPUTS_BYTES_MAX)
		return err_set(why, ERR_LIMIT, "%.100s has more than %u examples or %llu bytes",
		    path, DATASET_EXAMPLES_MAX, (unsigned long long)CMD_INPUTS_BYTES_MAX);
	return ERR_OK;
}

/* --- safetensors */

static bool
tensor_fits(const struct tensor *t, const struct data_spec *spec)
{
	if (t->dims == 2 && t->shape[1] == features_of(spec))
		return true;
	if (t->dims != spec->dims + 1)
		return false;
	for (unsigned i = 0; i < spec->dims; i++)
		if (t->shape[i + 1] != spec->shape[i])
			return false;
	return true;
}

static enum err
check(const struct tensor_table *table, const char *path, const struct data_spec *spec,
    struct why *why)
{
	const struct tensor *t = table->items;

	if (table->count != 1)
		return err_set(why, ERR_INVALID,
		    "%.100s holds %zu tensors; one is wanted, of examples", path, table->count);
	if (t->dtype != TENSOR_F32 && t->dtype != TENSOR_U8)
		return err_set(why, ERR_INVALID, "%.100s is of type %s, examples are F32 or U8",
		    path, tensor_dtype_name(t->dtype));
	if (!tensor_fits(t, spec))
		return no_rows(path, spec, why);
	return check_size(t->shape[0], tensor_bytes(t), path, why);
}

/* The file's bytes need not be aligned. */
static enum err
copy(struct dataset *out, const struct tensors *from, const struct data_spec *spec, struct why *why)
{
	const struct tensor *t = from->table.items;
	size_t bytes = (size_t)tensor_bytes(t);
	void *values = malloc(bytes);

	if (!values)
		return err_set(why, ERR_NOMEM, "no memory for the inputs");
	memcpy(values, from->data + t->begin, bytes);
	*out = (struct dataset){.count = (size_t)t->shape[0], .features = features_of(spec)};
	if (t->dtype == TENSOR_U8)
		out->bytes = values;
	else
		out->floats = values;
	return ERR_OK;
}

static enum err
load_tensor(struct dataset *out, const char *path, const struct data_spec *spec, struct why *why)
{
	struct tensors from;
	enum err e = tensors_open(&from, path, why);

	if (e)
		return e;
	e = check(&from.table, path, spec, why);
	if (!e)
		e = copy(out, &from, spec, why);
	tensors_close(&from);
	return e;
}

/* --- NPY */

static bool
array_fits(const struct array *a, const struct data_spec *spec)
{
	struct dataset d = {0};

	array_shape(&d, a);
	return a->features == features_of(spec) && (a->dims == 2 || dataset_shape_fits(&d, spec));
}

static enum err
read_npy(struct dataset *out, struct unpack *io, const char *path, const struct data_spec *spec,
    struct why *why)
{
	struct why inner = {""};
	struct array a;
	enum err e = npy_head(&a, io, &inner);

	if (!e && !array_fits(&a, spec))
		return no_rows(path, spec, why);
	if (!e &&
	    (e = check_size(a.count, (uint64_t)a.count * a.features * sizeof(float), path, why)))
		return e;
	if (!e)
		e = array_examples(out, &a, io, NULL, 0, &inner);
	return e ? err_set(why, e, "%.100s: %.140s", path, inner.text) : ERR_OK;
}

/* *is_npy: there are rows in *out, or an error. Else it is another kind of file, or none. */
static enum err
load_npy(struct dataset *out, bool *is_npy, const char *path, const struct data_spec *spec,
    struct why *why)
{
	static const char magic[] = "\x93NUMPY";
	struct file_map file = {0};
	struct unpack *io;
	enum err e = file_map(&file, path, SIZE_MAX / 4, false, why);

	*is_npy = !e && file.len > strlen(magic) && memcmp(file.data, magic, strlen(magic)) == 0;
	if (*is_npy && !(e = unpack_open(&io, file.data, file.len, why))) {
		e = read_npy(out, io, path, spec, why);
		unpack_close(io);
	}
	file_unmap(&file);
	return e;
}

enum err
cmd_inputs_load(
    struct dataset *out, const char *path, const struct data_spec *spec, struct why *why)
{
	bool is_npy;
	enum err e = load_npy(out, &is_npy, path, spec, why);

	if (!e && !is_npy)
		e = load_tensor(out, path, spec, why);
	if (e)
		return e;
	out->dims = spec->dims;
	memcpy(out->shape, spec->shape, sizeof(out->shape));
	return ERR_OK;
}
