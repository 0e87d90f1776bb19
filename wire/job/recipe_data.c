#include "recipe_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field.h"
#include "json.h"
#include "recipe.h"

#define MEAN_MAX 1e9
#define STD_MIN 1e-6
#define AUGMENT_NOISE_MAX 10
/* Of a program's example, where the job does not say how large it is. */
#define PROGRAM_LABELS 16.0

static void
read_shape(struct recipe *out, struct field *data)
{
	struct field_list list;
	struct field item;
	uint64_t product = 1;
	/* The examples of a text are as long as its window. */
	size_t least = out->net.layer_count && !field_has(data, "window") ? 1 : 0;
	size_t n = field_array(&list, data, "shape", least, 3);

	if (list.self.value && n > 3)
		field_fail(data, "shape", "must have 1 to 3 numbers");
	out->data.dims = (unsigned)n;
	for (size_t i = 0; field_each(&list, &item); i++) {
		out->data.shape[i] =
		    (uint32_t)field_u64(&item, NULL, 1, RECIPE_SHAPE_MAX, FIELD_MUST_U64);
		product *= out->data.shape[i];
	}
	if (product > RECIPE_INPUT_MAX)
		field_fail(data, "shape", "more than %u values per example", RECIPE_INPUT_MAX);
}

/* Two dimensions a, b are the network's a, 1, b. */
static void
set_input(struct recipe *out)
{
	const struct data_spec *d = &out->data;

	for (size_t i = 0; i < 3; i++)
		out->net.input[i] = d->dims == 0 ? 0 : i < d->dims ? d->shape[i] : 1;
	if (d->dims == 2) {
		out->net.input[1] = 1;
		out->net.input[2] = d->shape[1];
	}
	out->net.input_dims = d->dims;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
check_unique(struct field *data, const struct json *classes, size_t n)
{
	const char **names = calloc(n > 0 ? n : 1, sizeof(*names));
	size_t i = 0;

	if (!names) {
		field_no_memory(data);
		return;
	}
	for (const struct json *c = json_first(classes); c; c = json_next(c))
		names[i++] = json_string(c);
	qsort(names, n, sizeof(*names), compare_names);
	for (i = 1; i < n; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			field_fail(data, "classes", "\"%s\" is there twice", names[i]);
	free(names);
}

/* A number n of classes means the names "0" to "n-1". */
static struct json *
numbered_classes(size_t n)
{
	struct json *list = json_array();
	char name[24];

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		json_push(list, json_new_string(name));
	}
	return list;
}

static struct json *
listed_classes(struct field *data, size_t *n)
{
	struct field_list list;
	struct field item;
	char name[RECIPE_NAME_MAX];

	*n = field_array(&list, data, "classes", 1, RECIPE_CLASSES_MAX);
	while (field_each(&list, &item)) {
		field_string(&item, NULL, FIELD_LINE, name, sizeof(name), NULL);
		if (!name[0])
			field_fail(&item, NULL, "must not be empty");
	}
	return data->reader->err ? NULL : json_copy(json_get(data->value, "classes"));
}

static void
read_classes(struct recipe *out, struct field *data)
{
	double number;
	size_t n = 0;

	if (!field_has(data, "classes"))
		return;
	if (json_double(json_get(data->value, "classes"), &number)) {
		n = (size_t)field_u64(data, "classes", 1, RECIPE_CLASSES_MAX, FIELD_MUST_U64);
		out->data.classes = numbered_classes(n);
	} else if (json_kind(json_get(data->value, "classes")) == JSON_ARRAY) {
		out->data.classes = listed_classes(data, &n);
	} else {
		field_fail(data, "classes", "must be an array of names, or how many there are");
	}
	if (data->reader->err)
		return;
	/* A copy that ran out of memory on the way is shorter than it should be. */
	if (json_count(out->data.classes) != n) {
		field_no_memory(data);
		return;
	}
	out->data.class_count = n;
	check_unique(data, out->data.classes, n);
}

/* A number or a list of one per channel; returns how many. */
static size_t
read_channels(struct field *o, const char *key, double min, float *values)
{
	struct field_list list;
	struct field item;
	double number;
	size_t i = 0;

	if (json_double(json_get(o->value, key), &number)) {
		values[0] = (float)field_double(o, key, min, MEAN_MAX, FIELD_MUST_DOUBLE);
		return 1;
	}
	field_array(&list, o, key, 1, RECIPE_CHANNELS_MAX);
	while (field_each(&list, &item))
		values[i++] = (float)field_double(&item, NULL, min, MEAN_MAX, FIELD_MUST_DOUBLE);
	return i;
}

static void
spread(float *values, size_t from, size_t to)
{
	for (size_t i = from; i > 0 && i < to; i++)
		values[i] = values[0];
}

static void
read_normalise(struct data_spec *out, struct field *data)
{
	if (!field_has(data, "normalise"))
		return;
	struct field o = field_object(data, "normalise");
	size_t means = read_channels(&o, "mean", -MEAN_MAX, out->mean);
	size_t stds = read_channels(&o, "std", STD_MIN, out->std);
	size_t n = means > stds ? means : stds;
	uint32_t wanted = out->dims ? out->shape[0] : (uint32_t)n;

	if ((means != 1 && means != n) || (stds != 1 && stds != n) || (n != 1 && n != wanted))
		field_fail(data, "normalise", "needs one value, or one per channel");
	if (means == 1)
		spread(out->mean, 1, n);
	if (stds == 1)
		spread(out->std, 1, n);
	out->channels = n;
	field_end(&o);
}

static void
read_augment(struct data_spec *out, struct field *data)
{
	if (!field_has(data, "augment"))
		return;
	struct field o = field_object(data, "augment");
	struct augment_spec *a = &out->augment;
	uint32_t height = out->shape[1], width = out->shape[2];
	uint64_t side = height < width ? height : width;

	if (out->dims != 3)
		field_fail(data, "augment", "needs a data.shape of channels, height, width");
	a->flip = field_bool(&o, "flip", false);
	a->crop = (uint32_t)field_u64(&o, "crop", 0, side, 0);
	a->noise = field_double(&o, "noise", 0, AUGMENT_NOISE_MAX, 0);
	a->cutout = (uint32_t)field_u64(&o, "cutout", 0, side, 0);
	field_end(&o);
}

static void
read_window(struct recipe *out, struct field *data)
{
	struct data_spec *d = &out->data;

	d->window = (uint32_t)field_u64(data, "window", 1, RECIPE_SHAPE_MAX, 0);
	if (d->window == 0)
		return;
	if (d->dims > 0 && (d->dims != 1 || d->shape[0] != d->window))
		field_fail(data, "window", "is not data.shape");
	if (out->net.layer_count == 0)
		return;
	d->shape[0] = d->window;
	d->dims = 1;
	if (!net_spec_has(&out->net, LAYER_EMBEDDING))
		field_fail(data, "window", "only an embedding layer takes tokens");
	if (d->channels > 0)
		field_fail(data, "normalise", "tokens of a window are numbered, not measured");
}

static double
values_of(const struct data_spec *d)
{
	double n = d->window > 0 ? d->window : 1;

	for (unsigned i = 0; d->window == 0 && i < d->dims; i++)
		n *= d->shape[i];
	return n;
}

double
recipe_labels_most(const struct recipe *r)
{
	double values = values_of(&r->data);

	if (r->builtin && !net_spec_has(&r->net, LAYER_EMBEDDING))
		return 1;
	return r->builtin || values > PROGRAM_LABELS ? values : PROGRAM_LABELS;
}

void
recipe_data_read(struct recipe *out, struct field *doc)
{
	struct field data = field_object(doc, "data");
	struct data_spec *d = &out->data;

	if (!field_has(doc, "data"))
		field_fail(doc, "data", "missing");
	field_string(&data, "name", FIELD_NAME, d->name, sizeof(d->name), NULL);
	read_shape(out, &data);
	read_classes(out, &data);
	read_normalise(d, &data);
	read_augment(d, &data);
	read_window(out, &data);
	set_input(out);
	d->validation = field_double(&data, "validation", 0, RECIPE_SHARE_MAX, 0);
	d->min_examples = field_u64(&data, "min_examples", 1, JSON_INT_MAX, 1);
	field_end(&data);
	if (out->net.layer_count && net_spec_labels(&out->net) && d->class_count < 2 &&
	    d->window == 0)
		field_fail(&data, "classes", "cross_entropy needs at least 2");
}
