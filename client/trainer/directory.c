#include "directory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "file.h"
#include "hex.h"
#include "identity.h"
#include "json.h"
#include "kernel_choice.h"
#include "num.h"
#include "tensors.h"

#define TASK_MAX (2u << 20)

/* A path that task.json gives; "" without. */
static const char *
path_of(const struct json *doc, const char *key)
{
	const char *path = json_string(json_get(doc, key));

	return path && strlen(path) < PATH_MAX ? path : "";
}

/* --- examples */

static enum err
copy(void **out, const struct tensors *f, const struct tensor *t, struct why *why)
{
	size_t bytes = (size_t)(t->end - t->begin);

	*out = malloc(bytes > 0 ? bytes : 1);
	if (!*out)
		return err_set(why, ERR_NOMEM, "no memory for the examples");
	memcpy(*out, f->data + t->begin, bytes);
	return ERR_OK;
}

static enum err
take_shape(struct dataset *d, const struct tensor *x, struct why *why)
{
	if (x->dims < 2 || x->dims > 4)
		return err_set(
		    why, ERR_INVALID, "examples: %s has %u dimensions", x->name, x->dims);
	d->count = (size_t)x->shape[0];
	d->dims = x->dims - 1;
	d->features = 1;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t extent = i < d->dims ? x->shape[i + 1] : 1;
		if (extent > UINT32_MAX || !num_mul(d->features, (size_t)extent, &d->features))
			return err_set(why, ERR_LIMIT, "examples: %s is too large", x->name);
		d->shape[i] = (uint32_t)extent;
	}
	return ERR_OK;
}

/* Windows of a text: each is followed by its last label, so that its labels begin one token behind it, as a text's do. */
static enum err
take_tokens(struct dataset *d, const struct tensors *f, const struct tensor *x,
    const struct tensor *y, struct why *why)
{
	size_t width = d->features, bytes;

	if (!y || y->dtype != TENSOR_I32 || y->elements != x->elements ||
	    !num_mul(d->count, 2 * width * sizeof(int32_t), &bytes))
		return err_set(why, ERR_INVALID, "examples: the labels of a text are missing");
	int32_t *values = calloc(1, bytes > 0 ? bytes : 1);
	d->row = calloc(d->count + 1, sizeof(*d->row));
	d->rows = calloc(1, sizeof(*d->rows));
	if (!values || !d->row || !d->rows) {
		free(values);
		return err_set(why, ERR_NOMEM, "no memory for the examples");
	}
	*d->rows = (struct dataset_rows){.users = 1,
	    .heap = values,
	    .values = (const uint8_t *)values,
	    .type = DATASET_I32,
	    .tokens = true,
	    .items = 2 * width * d->count};
	for (size_t i = 0; i < d->count; i++) {
		int32_t *to = values + 2 * i * width;
		memcpy(to, f->data + x->begin + i * width * sizeof(*to), width * sizeof(*to));
		memcpy(to + width, f->data + y->begin + ((i + 1) * width - 1) * sizeof(*to),
		    sizeof(*to));
		d->row[i] = (uint32_t)(2 * i);
		for (size_t k = 0; k <= width; k++)
			if (to[k] >= 0 && (size_t)to[k] >= d->classes)
				d->classes = (size_t)to[k] + 1;
	}
	d->rows->token_end = d->classes;
	return ERR_OK;
}

static enum err
take_y(struct dataset *d, const struct tensors *f, const struct tensor *y, struct why *why)
{
	void *values = NULL;
	enum err e = y && y->shape[0] != d->count
	    ? err_set(why, ERR_INVALID, "examples: %s and its values are not as many", y->name)
	    : ERR_OK;

	if (!y || e)
		return e;
	e = copy(&values, f, y, why);
	if (!e && y->dtype == TENSOR_I32) {
		d->labels = values;
		for (size_t i = 0; i < d->count; i++)
			if (d->labels[i] >= 0 && (size_t)d->labels[i] >= d->classes)
				d->classes = (size_t)d->labels[i] + 1;
	} else if (!e) {
		d->targets = values;
		d->target_width = d->count > 0 ? (size_t)(y->elements / d->count) : 0;
	}
	return e;
}

static enum err
take_set(struct dataset *d, const struct tensors *f, const char *x_name, const char *y_name,
    struct why *why)
{
	const struct tensor *x = tensor_table_find(&f->table, x_name);
	const struct tensor *y = tensor_table_find(&f->table, y_name);
	void *values = NULL;

	if (!x)
		return ERR_OK;
	enum err e = take_shape(d, x, why);
	if (!e && x->dtype == TENSOR_I32)
		return take_tokens(d, f, x, y, why);
	if (!e && x->dtype != TENSOR_U8 && x->dtype != TENSOR_F32)
		e = err_set(why, ERR_INVALID, "examples: %s is neither U8, F32 nor I32", x_name);
	if (!e)
		e = copy(&values, f, x, why);
	if (x->dtype == TENSOR_U8)
		d->bytes = values;
	else
		d->floats = values;
	return e ? e : take_y(d, f, y, why);
}

static enum err
read_examples(struct directory *d, const char *path, struct why *why)
{
	struct tensors f;

	if (!*path)
		return err_set(why, ERR_UNSUPPORTED,
		    "the task gives no examples: data of format external are another program's");
	enum err e = tensors_open(&f, path, why);
	if (e)
		return e;
	e = take_set(&d->train, &f, "x", "y", why);
	if (!e)
		e = take_set(&d->validation, &f, "validation_x", "validation_y", why);
	tensors_close(&f);
	return e;
}

/* --- what is of this device alone */

static const struct tensor *
same_tensor(const struct tensors *f, const struct tensor *want)
{
	const struct tensor *t = tensor_table_find(&f->table, want->name);

	return t && tensor_same(t, want) ? t : NULL;
}

static enum err
read_local(struct directory *d, const char *path, struct why *why)
{
	const struct tensor_table *table = &d->work.table;
	struct tensors f;

	if (!*path)
		return ERR_OK;
	enum err e = tensors_open(&f, path, why);
	if (e)
		return e;
	for (size_t i = 0; i < table->count && !e; i++) {
		const struct tensor *to = &table->items[i], *from = same_tensor(&f, to);
		if (to->role == TENSOR_LOCAL && !from)
			e = err_set(why, ERR_INVALID, "%.100s has no tensor %s", path, to->name);
		else if (to->role == TENSOR_LOCAL)
			memcpy(d->work.weights + to->begin, f.data + from->begin,
			    (size_t)(to->end - to->begin));
	}
	tensors_close(&f);
	return e;
}

static bool
all_zero(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (x[i] != 0)
			return false;
	return true;
}

/* Zeros are none, as in the agent: a step without is another one, to the bit. */
static enum err
read_shift(struct directory *d, const char *path, struct why *why)
{
	const struct tensor_table *table = &d->work.table;
	size_t n = (size_t)table->elements;
	struct tensors f;

	if (!*path)
		return ERR_OK;
	enum err e = tensors_open(&f, path, why);
	if (e)
		return e;
	float *shift = calloc(n + 1, sizeof(*shift));
	if (!shift)
		e = err_set(why, ERR_NOMEM, "no memory for control variates");
	for (size_t i = 0; i < table->count && !e; i++) {
		const struct tensor *to = &table->items[i], *from = same_tensor(&f, to);
		if (to->in_delta && !from)
			e = err_set(why, ERR_INVALID, "%.100s has no tensor %s", path, to->name);
		else if (to->in_delta)
			memcpy(
			    shift + to->first, f.data + from->begin, (size_t)(to->end - to->begin));
	}
	tensors_close(&f);
	if (e || all_zero(shift, n)) {
		free(shift);
		return e;
	}
	d->work.shift = shift;
	return ERR_OK;
}

/* --- the task */

static enum err
read_keys(struct directory *d, const struct json *doc, struct why *why)
{
	const char *device = json_string(json_get(doc, "device"));
	const char *kernels = json_string(json_get(doc, "kernels"));
	uint64_t threads = 0;

	if (!device || strlen(device) != 64 ||
	    !hex_decode(d->device, sizeof(d->device), device, 64))
		return err_set(why, ERR_UNSUPPORTED,
		    "task.json names no device: the agent is older than this program");
	(void)json_double(json_get(doc, "seconds"), &d->seconds);
	(void)json_u64(json_get(doc, "threads"), &threads);
	if (kernels)
		(void)kernel_choice_take(kernels);
	enum err e = settings_parse(&d->settings, "", "", 0, why);
	if (!e)
		d->settings->threads = threads;
	if (!e && !*path_of(doc, "base"))
		e = err_set(why, ERR_INVALID, "task.json names no base");
	return e;
}

static enum err
read_task(struct directory *d, const struct json *doc, size_t len, struct why *why)
{
	enum err e = messages_task_decode(&d->work.task, d->work.text, len, why);

	if (!e && (d->work.task.wait || d->work.task.recipe.net.layer_count == 0))
		e = err_set(why, ERR_UNSUPPORTED, "the task has no layers");
	if (!e)
		e = read_keys(d, doc, why);
	d->work.came_at = backoff_now();
	if (!e)
		e = work_load(&d->work, path_of(doc, "base"), 0, why);
	if (!e)
		e = read_local(d, path_of(doc, "local"), why);
	if (!e)
		e = read_shift(d, path_of(doc, "variates"), why);
	return e ? e : read_examples(d, path_of(doc, "examples"), why);
}

enum err
directory_open(struct directory *out, const char *path, struct why *why)
{
	char file[PATH_MAX];
	struct json *doc = NULL;
	size_t len = 0;

	memset(out, 0, sizeof(*out));
	enum err e = identity_path(file, path, "task.json", why);
	if (!e)
		e = file_read(file, TASK_MAX, &out->work.text, &len, why);
	if (!e)
		e = json_parse(&doc, out->work.text, len, why);
	if (!e)
		e = read_task(out, doc, len, why);
	json_free(doc);
	return e;
}

void
directory_close(struct directory *d)
{
	dataset_deinit(&d->train);
	dataset_deinit(&d->validation);
	settings_free(d->settings);
	work_deinit(&d->work);
}
