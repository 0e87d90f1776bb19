#include "counts_json.h"

#include <float.h>

#include "counts.h"
#include "err.h"
#include "field.h"
#include "json.h"

#define ROW_MAX 4 /* numbers of the longest row */

/* --- writing */

static struct json *
row_of(const uint64_t *numbers, size_t count)
{
	struct json *row = json_array();

	for (size_t i = 0; i < count; i++)
		json_push(row, json_new_u64(numbers[i]));
	return row;
}

static struct json *
classes_json(const struct counts *c)
{
	struct json *list = json_array();

	for (size_t i = 0; i < c->class_count; i++) {
		const struct counts_class *k = &c->classes[i];
		if (k->examples > 0 || k->predicted > 0)
			json_push(
			    list, row_of((uint64_t[]){i, k->examples, k->predicted, k->right}, 4));
	}
	return list;
}

static struct json *
confusion_json(const struct counts *c)
{
	struct json *list = json_array();

	for (size_t i = 0; i < c->class_count * c->class_count; i++)
		if (c->confusion[i] > 0)
			json_push(list,
			    row_of((uint64_t[]){i / c->class_count, i % c->class_count,
				       c->confusion[i]},
				3));
	return list;
}

static struct json *
top_json(const struct counts *c)
{
	struct json *list = json_array();

	for (size_t i = 0; i < c->wanted.top_count; i++)
		json_push(list, row_of((uint64_t[]){c->wanted.tops[i], c->top[i]}, 2));
	return list;
}

static struct json *
regression_json(const struct counts_regression *r)
{
	struct json *o = json_object();

	json_add_u64(o, "values", r->values);
	json_add_double(o, "absolute", r->absolute);
	json_add_double(o, "squares", r->squares);
	json_add_double(o, "sum", r->sum);
	json_add_double(o, "sum_squares", r->sum_squares);
	return o;
}

static struct json *
auc_json(const struct counts *c)
{
	struct json *o = json_object(), *positive = json_array(), *negative = json_array();

	for (size_t i = 0; i < COUNTS_BINS; i++) {
		if (c->bins[i].positive > 0)
			json_push(positive, row_of((uint64_t[]){i, c->bins[i].positive}, 2));
		if (c->bins[i].negative > 0)
			json_push(negative, row_of((uint64_t[]){i, c->bins[i].negative}, 2));
	}
	json_add(o, "positive", positive);
	json_add(o, "negative", negative);
	return o;
}

void
counts_json_add(struct json *evaluate, const struct counts *c)
{
	if (c->classes)
		json_add(evaluate, "classes", classes_json(c));
	if (c->confusion)
		json_add(evaluate, "confusion", confusion_json(c));
	if (c->wanted.top_count > 0)
		json_add(evaluate, "top", top_json(c));
	if (c->wanted.regression)
		json_add(evaluate, "regression", regression_json(&c->regression));
	if (c->bins)
		json_add(evaluate, "auc", auc_json(c));
}

/* --- reading */

/* One row of whole numbers, the first `indices` of them below `limit`. False after an error. */
static bool
read_row(struct field *item, uint64_t *out, size_t count, size_t indices, uint64_t limit)
{
	struct field_list list;
	struct field number;
	size_t i = 0;

	if (field_array(&list, item, NULL, count, count) != count)
		return false;
	while (field_each(&list, &number)) {
		uint64_t most = i < indices ? limit - 1 : COUNTS_MAX;
		out[i++] = field_u64(&number, NULL, 0, most, FIELD_MUST_U64);
	}
	return item->reader->err == ERR_OK;
}

/* A list that is wanted, of at most so many rows. */
static bool
open_rows(struct field_list *list, struct field *o, const char *key, uint64_t most)
{
	if (!field_has(o, key))
		return field_fail(o, key, "missing: the job asks for it");
	field_array(list, o, key, 0, most);
	return o->reader->err == ERR_OK;
}

static void
read_classes(struct counts *out, struct field *o)
{
	struct field_list list;
	struct field item;
	uint64_t row[ROW_MAX] = {0};

	if (!open_rows(&list, o, "classes", out->class_count))
		return;
	while (field_each(&list, &item)) {
		if (!read_row(&item, row, 4, 1, out->class_count))
			return;
		struct counts_class *k = &out->classes[row[0]];
		if (k->examples > 0 || k->predicted > 0)
			field_fail(&item, NULL, "the class stands there twice");
		*k = (struct counts_class){row[1], row[2], row[3]};
	}
}

static void
read_confusion(struct counts *out, struct field *o)
{
	struct field_list list;
	struct field item;
	uint64_t row[ROW_MAX] = {0};

	if (!open_rows(&list, o, "confusion", out->class_count * out->class_count))
		return;
	while (field_each(&list, &item)) {
		if (!read_row(&item, row, 3, 2, out->class_count))
			return;
		uint64_t *cell = &out->confusion[row[0] * out->class_count + row[1]];
		if (*cell > 0)
			field_fail(&item, NULL, "the pair stands there twice");
		*cell = row[2];
	}
}

/* Values of k that nobody asked for are passed over. */
static void
read_top(struct counts *out, struct field *o)
{
	struct field_list list;
	struct field item;
	uint64_t row[ROW_MAX] = {0};
	bool seen[FIGURE_SET_TOP_MAX + 1] = {false};
	uint64_t twice = 0;

	if (!open_rows(&list, o, "top", FIGURE_SET_TOP_MAX))
		return;
	while (field_each(&list, &item)) {
		if (!read_row(&item, row, 2, 1, FIGURE_SET_TOP_MAX + 1))
			return;
		if (seen[row[0]])
			twice = row[0];
		seen[row[0]] = true;
		for (size_t i = 0; i < out->wanted.top_count; i++)
			if (out->wanted.tops[i] == row[0])
				out->top[i] = row[1];
	}
	for (size_t i = 0; i < out->wanted.top_count; i++)
		if (!seen[out->wanted.tops[i]])
			field_fail(
			    o, "top", "top%u is missing: the job asks for it", out->wanted.tops[i]);
	if (twice > 0)
		field_fail(o, "top", "%u stands there twice", (unsigned)twice);
}

static void
read_regression(struct counts_regression *out, struct field *evaluate)
{
	struct field o = field_object(evaluate, "regression");

	if (!field_has(evaluate, "regression"))
		field_fail(evaluate, "regression", "missing: the job asks for it");
	out->values = field_u64(&o, "values", 0, COUNTS_MAX, FIELD_MUST_U64);
	out->absolute = field_double(&o, "absolute", 0, DBL_MAX, FIELD_MUST_DOUBLE);
	out->squares = field_double(&o, "squares", 0, DBL_MAX, FIELD_MUST_DOUBLE);
	out->sum = field_double(&o, "sum", -DBL_MAX, DBL_MAX, FIELD_MUST_DOUBLE);
	out->sum_squares = field_double(&o, "sum_squares", 0, DBL_MAX, FIELD_MUST_DOUBLE);
}

static void
read_bins(struct counts *out, struct field *o, const char *key, bool positive)
{
	struct field_list list;
	struct field item;
	uint64_t row[ROW_MAX] = {0};

	if (!open_rows(&list, o, key, COUNTS_BINS))
		return;
	while (field_each(&list, &item)) {
		if (!read_row(&item, row, 2, 1, COUNTS_BINS))
			return;
		struct counts_bin *b = &out->bins[row[0]];
		uint64_t *count = positive ? &b->positive : &b->negative;
		if (*count > 0)
			field_fail(&item, NULL, "the bin stands there twice");
		*count = row[1];
	}
}

static void
read_auc(struct counts *out, struct field *evaluate)
{
	struct field o = field_object(evaluate, "auc");

	if (!field_has(evaluate, "auc"))
		field_fail(evaluate, "auc", "missing: the job asks for it");
	read_bins(out, &o, "positive", true);
	read_bins(out, &o, "negative", false);
}

/* As a report says it (messages): labels stand beside a loss_count. */
static struct counts_said
read_said(struct field *evaluate)
{
	struct counts_said said = {.examples = field_u64(evaluate, "examples", 0, COUNTS_MAX, 0),
	    .has_labels = field_has(evaluate, "loss_count") && field_has(evaluate, "labels")};

	if (said.has_labels)
		said.labels = field_u64(evaluate, "labels", 0, COUNTS_MAX, 0);
	return said;
}

void
counts_json_read(struct counts *out, struct field *evaluate)
{
	struct why why = {""};
	const struct counts_said said = read_said(evaluate);

	if (out->classes)
		read_classes(out, evaluate);
	if (out->confusion)
		read_confusion(out, evaluate);
	if (out->wanted.top_count > 0)
		read_top(out, evaluate);
	if (out->wanted.regression)
		read_regression(&out->regression, evaluate);
	if (out->bins)
		read_auc(out, evaluate);
	if (!evaluate->reader->err && counts_check(out, &said, &why))
		field_fail(evaluate, NULL, "%s", why.text);
}
