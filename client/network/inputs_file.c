#include "inputs_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensors.h"

static size_t
features_of(const struct data_spec *spec)
{
	size_t n = 1;

	for (unsigned i = 0; i < spec->dims; i++)
		n *= spec->shape[i];
	return n;
}

static bool
rows_fit(const struct tensor *t, const struct data_spec *spec)
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
	char shape[DATASET_SHAPE_TEXT];

	if (table->count != 1)
		return err_set(why, ERR_INVALID,
		    "%.100s holds %zu tensors; one is wanted, of examples", path, table->count);
	if (t->dtype != TENSOR_F32 && t->dtype != TENSOR_U8)
		return err_set(why, ERR_INVALID, "%.100s is of type %s, examples are F32 or U8",
		    path, tensor_dtype_name(t->dtype));
	if (!rows_fit(t, spec))
		return err_set(why, ERR_INVALID,
		    "%.100s is not a row of examples: the job's have the shape %s, so the tensor "
		    "has one dimension more in front",
		    path, dataset_shape_text(shape, spec->shape, spec->dims));
	if (t->shape[0] == 0)
		return err_set(why, ERR_INVALID, "%.100s has no examples", path);
	if (t->shape[0] > DATASET_EXAMPLES_MAX || tensor_bytes(t) > CMD_INPUTS_BYTES_MAX)
		return err_set(why, ERR_LIMIT, "%.100s has more than %u examples or %llu bytes",
		    path, DATASET_EXAMPLES_MAX, (unsigned long long)CMD_INPUTS_BYTES_MAX);
	return ERR_OK;
}

/* The file's bytes need not be aligned. */
static enum err
copy(struct dataset *out, const struct cmd_tensors *from, const struct data_spec *spec,
    struct why *why)
{
	const struct tensor *t = from->table.items;
	size_t bytes = (size_t)tensor_bytes(t);
	void *values = malloc(bytes);

	if (!values)
		return err_set(why, ERR_NOMEM, "no memory for the inputs");
	memcpy(values, from->data + t->begin, bytes);
	*out = (struct dataset){
	    .count = (size_t)t->shape[0], .dims = spec->dims, .features = features_of(spec)};
	memcpy(out->shape, spec->shape, sizeof(out->shape));
	if (t->dtype == TENSOR_U8)
		out->bytes = values;
	else
		out->floats = values;
	return ERR_OK;
}

enum err
cmd_inputs_load(
    struct dataset *out, const char *path, const struct data_spec *spec, struct why *why)
{
	struct cmd_tensors from;
	enum err e = cmd_tensors_open(&from, path, why);

	if (e)
		return e;
	e = check(&from.table, path, spec, why);
	if (!e)
		e = copy(out, &from, spec, why);
	cmd_tensors_close(&from);
	return e;
}
