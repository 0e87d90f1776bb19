#include "directory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "hex.h"
#include "json.h"
#include "kernel_choice.h"
#include "num.h"

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

/* --- the model, and what is of this device alone */

/* The model, whose tensors get the job's roles. */
static enum err
open_base(struct directory *d, const char *path, struct why *why)
{
	const struct recipe *r = &d->task.recipe;
	enum err e = *path ? tensors_open_plain(&d->base, path, why)
			   : err_set(why, ERR_INVALID, "task.json names no base");

	if (!e)
		e = tensor_table_assign(&d->base.table, r->rules, r->rule_count, why);
	if (!e && d->base.table.elements == 0)
		e = err_set(why, ERR_INVALID, "the model has nothing to train");
	return e;
}

static const struct tensor *
same_tensor(const struct tensors *f, const struct tensor *want)
{
	const struct tensor *t = tensor_table_find(&f->table, want->name);

	return t && tensor_same(t, want) ? t : NULL;
}

static bool
is_local(const struct tensor *t)
{
	return t->role == TENSOR_LOCAL;
}

static bool
is_in_delta(const struct tensor *t)
{
	return t->in_delta;
}

/* A file with all of the model's tensors of a kind; none without a path. */
static enum err
open_some(struct tensors *out, const char *path, const struct tensor_table *of,
    bool (*wants)(const struct tensor *), struct why *why)
{
	if (!*path)
		return ERR_OK;
	enum err e = tensors_open(out, path, why);
	for (size_t i = 0; i < of->count && !e; i++)
		if (wants(&of->items[i]) && !same_tensor(out, &of->items[i]))
			e = err_set(
			    why, ERR_INVALID, "%.100s has no tensor %s", path, of->items[i].name);
	return e;
}

static bool
all_zero(const struct tensors *f, const struct tensor_table *of)
{
	for (size_t i = 0; i < of->count; i++) {
		const struct tensor *t =
		    of->items[i].in_delta ? same_tensor(f, &of->items[i]) : NULL;
		for (uint64_t at = 0; t && at < t->end - t->begin; at += sizeof(float)) {
			float value;
			memcpy(&value, f->data + t->begin + at, sizeof(value));
			if (value != 0)
				return false;
		}
	}
	return true;
}

/* Zeros are none, as in the agent: a step without is another one, to the bit. */
static enum err
open_variates(struct directory *d, const char *path, struct why *why)
{
	const struct tensor_table *table = &d->base.table;
	enum err e = open_some(&d->variates, path, table, is_in_delta, why);

	if (!e && d->variates.data && all_zero(&d->variates, table))
		tensors_close(&d->variates);
	return e;
}

static enum err
read_base(void *directory, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	const struct directory *d = directory;
	bool own = d->local.data && is_local(t);
	const struct tensors *f = own ? &d->local : &d->base;

	memcpy(out, f->data + (own ? same_tensor(f, t) : t)->begin + at, len);
	return ERR_OK;
}

static enum err
read_variates(void *directory, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	const struct tensors *f = &((const struct directory *)directory)->variates;

	memcpy(out, f->data + same_tensor(f, t)->begin + at, len);
	return ERR_OK;
}

/* --- the task */

static enum err
read_keys(struct directory *d, const struct json *doc, struct why *why)
{
	const char *device = json_string(json_get(doc, "device"));
	const char *kernels = json_string(json_get(doc, "kernels"));

	if (!device || strlen(device) != 64 ||
	    !hex_decode(d->device, sizeof(d->device), device, 64))
		return err_set(why, ERR_UNSUPPORTED,
		    "task.json names no device: the agent is older than this program");
	(void)json_double(json_get(doc, "seconds"), &d->seconds);
	(void)json_u64(json_get(doc, "threads"), &d->threads);
	if (kernels)
		(void)kernel_choice_take(kernels);
	return ERR_OK;
}

static enum err
read_task(struct directory *d, const char *text, size_t len, struct why *why)
{
	struct json *doc = NULL;
	enum err e = json_parse(&doc, text, len, why);

	if (!e)
		e = messages_task_decode(&d->task, text, len, why);
	if (!e && (d->task.wait || d->task.recipe.net.layer_count == 0))
		e = err_set(why, ERR_UNSUPPORTED, "the task has no layers");
	if (!e)
		e = read_keys(d, doc, why);
	if (!e)
		e = open_base(d, path_of(doc, "base"), why);
	if (!e)
		e = open_some(&d->local, path_of(doc, "local"), &d->base.table, is_local, why);
	if (!e)
		e = open_variates(d, path_of(doc, "variates"), why);
	if (!e)
		e = read_examples(d, path_of(doc, "examples"), why);
	json_free(doc);
	return e;
}

enum err
directory_file(char out[PATH_MAX], const char *directory, const char *name, struct why *why)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", directory, name);

	if (n < 0 || n >= PATH_MAX)
		return err_set(why, ERR_LIMIT, "path too long: %.60s.../%.60s", directory, name);
	return ERR_OK;
}

enum err
directory_open(struct directory *out, const char *path, struct why *why)
{
	char file[PATH_MAX], *text = NULL;
	size_t len = 0;

	*out = (struct directory){.path = path};
	enum err e = directory_file(file, path, "task.json", why);
	if (!e)
		e = file_read(file, TASK_MAX, &text, &len, why);
	if (!e)
		e = read_task(out, text, len, why);
	free(text);
	return e;
}

struct training_in
directory_task(struct directory *d)
{
	d->shift = (struct training_source){.read = read_variates, .context = d};
	return (struct training_in){.recipe = &d->task.recipe,
	    .kind = d->task.kind,
	    .seed = d->task.seed,
	    .round = d->task.round,
	    .device = d->device,
	    .table = &d->base.table,
	    .base = {.read = read_base, .context = d},
	    .shift = d->variates.data ? &d->shift : NULL,
	    .train = &d->train,
	    .validation = &d->validation,
	    .threads = d->threads,
	    .seconds = d->seconds};
}

void
directory_close(struct directory *d)
{
	dataset_deinit(&d->train);
	dataset_deinit(&d->validation);
	tensors_close(&d->variates);
	tensors_close(&d->local);
	tensors_close(&d->base);
	messages_task_deinit(&d->task);
}
