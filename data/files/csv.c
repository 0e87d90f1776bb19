#include "csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv_field.h"
#include "csv_row.h"
#include "net_spec.h"
#include "num.h"
#include "numbering.h"

/* Classes as they are read: numbers, or names that are numbered at the end. */
struct classes {
	bool known; /* what the first label was */
	bool named, listed;
	struct numbering names;
};

/* What was kept of the rows. */
struct rows {
	size_t count, room;
	size_t features;
	float *values; /* of the latest row alone if there is a sink */
	int32_t *labels;
	float *targets;
	const struct csv_sink *sink; /* NULL: none */
};

static void
rows_deinit(struct rows *r)
{
	free(r->values);
	free(r->labels);
	free(r->targets);
}

static enum err
classes_init(struct classes *k, const struct csv_form *how, struct why *why)
{
	size_t n = how->classes ? data_source_names(how->classes, 0, NULL, 0) : 0;
	char name[DATA_SOURCE_TEXT];
	uint32_t number;

	*k = (struct classes){.listed = n > 0};
	numbering_init(&k->names);
	for (size_t i = 0; i < n; i++) {
		data_source_names(how->classes, i, name, sizeof(name));
		if (numbering_add(&k->names, name, strlen(name), n, &number))
			return err_set(why, ERR_NOMEM, "no memory for the class names");
		if (number != i)
			return err_set(why, ERR_INVALID, "two classes have one name");
	}
	return ERR_OK;
}

static enum err
numbered_class(const struct csv_row *c, int32_t *out)
{
	double v = 0;
	enum err e = csv_row_number(c, c->label, &v);

	if (e)
		return e;
	if (csv_row_missing(c->fields[c->label]))
		return csv_row_fault(c, c->label, "the label is missing");
	if (!(v >= 0 && v < RECIPE_CLASSES_MAX) || v != floor(v))
		return csv_row_fault(c, c->label, "a class is a whole number from 0 to 4095");
	*out = (int32_t)v;
	return ERR_OK;
}
_Static_assert(RECIPE_CLASSES_MAX == 4096, "numbered_class names the largest class");

static enum err
named_class(const struct csv_row *c, struct classes *k, int32_t *out)
{
	const char *field = c->fields[c->label];
	size_t len = strlen(field);
	uint32_t number = numbering_find(&k->names, field, len);
	enum err e = ERR_OK;

	if (csv_row_missing(field) && number == NUMBERING_NONE)
		return csv_row_fault(c, c->label, "the label is missing");
	if (strchr(field, '\n')) /* which ends a name where all of them are listed */
		return csv_row_fault(c, c->label, "the label has more than one line");
	if (k->listed && number == NUMBERING_NONE)
		return csv_row_fault(c, c->label, "the label is none of the classes");
	if (number == NUMBERING_NONE)
		e = numbering_add(&k->names, field, len, RECIPE_CLASSES_MAX, &number);
	if (e == ERR_LIMIT)
		return csv_row_fault(c, c->label, "more than 4096 different labels");
	if (e)
		return err_set(c->why, e, "no memory for the class names");
	*out = (int32_t)number;
	return ERR_OK;
}

/* The class of the current row, whose label was cut. */
static enum err
row_class(const struct csv_row *c, struct classes *k, int32_t *out)
{
	double v;

	if (!k->known) {
		k->known = true;
		k->named = !csv_row_missing(c->fields[c->label]) &&
		    !csv_field_number(c->fields[c->label], &v);
		if (k->named && c->doubtful)
			return err_set(c->why, ERR_INVALID,
			    "line 1 may be a header or a row: \"header\" says which (yes or no)");
	}
	return k->named ? named_class(c, k, out) : numbered_class(c, out);
}

static enum err
to_float(const struct csv_row *c, size_t column, float *out)
{
	double v = 0;
	enum err e = csv_row_number(c, column, &v);

	if (e)
		return e;
	*out = (float)v;
	return isfinite(*out) ? ERR_OK : csv_row_fault(c, column, "the number is too large");
}

static enum err
to_target(const struct csv_row *c, float *out)
{
	if (csv_row_missing(c->fields[c->label]))
		return csv_row_fault(c, c->label,
		    *c->fields[c->label] ? "the target is missing" : "the field is empty");
	return to_float(c, c->label, out);
}

static bool
resize(void **block, size_t count, size_t size)
{
	size_t bytes;

	if (!num_mul(count, size, &bytes))
		return false;
	void *p = realloc(*block, bytes > 0 ? bytes : 1);
	if (p)
		*block = p;
	return p != NULL;
}

/* Changes the room of all columns to `room` rows. */
static enum err
set_room(const struct csv_row *c, struct rows *r, size_t room, bool regression)
{
	void *values = r->values, *labels = r->labels, *targets = r->targets;
	bool ok = resize(&values, r->sink ? 1 : room, r->features * sizeof(float)) &&
	    (regression ? resize(&targets, room, sizeof(float))
			: resize(&labels, room, sizeof(int32_t)));

	r->values = values;
	r->labels = labels;
	r->targets = targets;
	if (!ok)
		return err_set(c->why, ERR_NOMEM, "no memory for %zu rows", room);
	r->room = room;
	return ERR_OK;
}

static enum err
keep_row(struct csv_row *c, struct rows *r, struct classes *k, bool regression)
{
	size_t place = r->sink ? 0 : r->count;

	if ((place + 1) * (uint64_t)r->features * sizeof(float) > DATASET_BYTES_MAX)
		return err_set(c->why, ERR_LIMIT, "the rows need too much memory");
	enum err e = r->count == r->room
	    ? set_room(c, r, r->room > 0 ? r->room * 2 : 16, regression)
	    : ERR_OK;
	if (!e)
		e = csv_row_cut(c, CSV_ROW_ALL);
	for (size_t i = 0; !e && i < r->features; i++)
		e = to_float(c, c->features[i], &r->values[place * r->features + i]);
	if (!e)
		e = regression ? to_target(c, &r->targets[r->count])
			       : row_class(c, k, &r->labels[r->count]);
	if (!e && r->sink)
		e = r->sink->row(r->sink->context, r->values, r->features, c->why);
	r->count += !e;
	return e;
}

/* Of a row that is not kept only its name counts, which others are numbered by. */
static enum err
pass_row(struct csv_row *c, struct classes *k, bool regression)
{
	int32_t class;

	if (regression || k->listed || (k->known && !k->named))
		return ERR_OK;
	enum err e = csv_row_cut(c, c->label);
	return e ? e : row_class(c, k, &class);
}

static enum err
read_rows(struct csv_row *c, struct rows *r, struct classes *k, const struct csv_form *how,
    const uint32_t *keep, size_t keep_count)
{
	r->features = c->feature_count;
	for (;;) {
		bool end;
		enum err e = csv_row_next(c, &end);
		if (e)
			return e;
		if (end)
			break;
		bool passed = keep && (r->count == keep_count || keep[r->count] != c->row - 1);
		e = passed ? pass_row(c, k, how->regression) : keep_row(c, r, k, how->regression);
		if (e)
			return e;
	}
	if (c->row == 0)
		return err_set(c->why, ERR_INVALID, "the file holds a header and no rows");
	if (keep && r->count < keep_count)
		return err_set(
		    c->why, ERR_INVALID, "the file has only %llu rows", (unsigned long long)c->row);
	return set_room(c, r, r->count, how->regression);
}

/* Numbers names by their order. *joined (if asked for) gets all of them. */
static enum err
number_names(const struct classes *k, int32_t *labels, size_t n, char **joined)
{
	uint32_t *rank = NULL;
	enum err e = k->listed || !k->named ? ERR_OK : numbering_sort(&k->names, &rank);

	for (size_t i = 0; rank && i < n; i++)
		labels[i] = (int32_t)rank[labels[i]];
	if (!e && joined && (k->named || k->listed))
		e = numbering_join(&k->names, rank, joined);
	free(rank);
	return e;
}

/* Hands the rows over to a data set. */
static enum err
give(struct dataset *out, const struct rows *r, const struct classes *k, bool regression)
{
	*out = (struct dataset){.count = r->count,
	    .shape = {(uint32_t)r->features, 1, 1},
	    .dims = 1,
	    .features = r->features,
	    .floats = r->values,
	    .labels = r->labels,
	    .targets = r->targets,
	    .target_width = regression ? 1 : 0};
	enum err e = regression ? ERR_OK : number_names(k, r->labels, r->count, &out->names);
	if (k->named)
		out->classes = k->names.count;
	for (size_t i = 0; r->labels && i < r->count; i++)
		if ((size_t)r->labels[i] >= out->classes)
			out->classes = (size_t)r->labels[i] + 1;
	return e;
}

static enum err
read_all(struct dataset *out, struct rows r, const void *file, size_t len,
    const struct csv_form *how, const uint32_t *keep, size_t keep_count, struct why *why)
{
	struct csv_row c;
	struct classes k;
	enum err e = unpack_check_keep(keep, keep_count, why);

	if (e)
		return e;
	e = csv_row_open(&c, file, len, how, why);
	enum err no_classes = classes_init(&k, how, e ? NULL : why);
	if (!e)
		e = no_classes;
	if (!e)
		e = read_rows(&c, &r, &k, how, keep, keep_count);
	if (!e && (e = give(out, &r, &k, how->regression)))
		err_set(why, e, "no memory for the class names");
	if (e)
		rows_deinit(&r);
	numbering_deinit(&k.names);
	csv_row_close(&c);
	return e;
}

enum err
csv_read(struct dataset *out, const void *file, size_t len, const struct csv_form *how,
    const uint32_t *keep, size_t keep_count, struct why *why)
{
	return read_all(out, (struct rows){0}, file, len, how, keep, keep_count, why);
}

enum err
csv_stream(struct dataset *out, const void *file, size_t len, const struct csv_form *how,
    const struct csv_sink *sink, struct why *why)
{
	enum err e = read_all(out, (struct rows){.sink = sink}, file, len, how, NULL, 0, why);

	if (!e) {
		free(out->floats);
		out->floats = NULL;
	}
	return e;
}

/* --- one column alone */

/* Appends a number per row. */
struct column {
	int32_t *values;
	size_t count, room;
};

static enum err
push(struct column *to, int32_t value, struct why *why)
{
	if (to->count == to->room) {
		void *block = to->values;
		to->room = to->room > 0 ? to->room * 2 : 1024;
		if (!resize(&block, to->room, sizeof(*to->values)))
			return err_set(why, ERR_NOMEM, "no memory for %zu labels", to->room);
		to->values = block;
	}
	to->values[to->count++] = value;
	return ERR_OK;
}

static enum err
row_label(struct csv_row *c, struct classes *k, bool regression, int32_t *out)
{
	float target;
	enum err e = csv_row_cut(c, c->label);

	*out = 0;
	if (e)
		return e;
	return regression ? to_target(c, &target) : row_class(c, k, out);
}

static enum err
row_group(struct csv_row *c, struct classes *k, int32_t *out)
{
	uint32_t number;
	enum err e = csv_row_cut(c, c->group);

	if (e)
		return e;
	const char *field = c->fields[c->group];
	if (csv_row_missing(field))
		return csv_row_fault(c, c->group, "the group is missing");
	e = numbering_add(&k->names, field, strlen(field), CSV_GROUPS_MAX, &number);
	if (e)
		return err_set(c->why, e,
		    e == ERR_LIMIT ? "the column has too many different values"
				   : "no memory for the groups");
	*out = (int32_t)number;
	return ERR_OK;
}

static enum err
read_column(struct csv_row *c, struct classes *k, const struct csv_form *how, bool groups,
    struct column *out)
{
	for (;;) {
		bool end;
		int32_t value = 0;
		enum err e = csv_row_next(c, &end);
		if (e || end)
			return e;
		e = groups ? row_group(c, k, &value) : row_label(c, k, how->regression, &value);
		if (!e)
			e = push(out, value, c->why);
		if (e)
			return e;
	}
}

static enum err
one_column(int32_t **values, size_t *count, const void *file, size_t len,
    const struct csv_form *how, bool groups, struct why *why)
{
	const struct csv_form unlabelled = {.label = NULL};
	struct column column = {.count = 0};
	struct csv_row c;
	struct classes k;
	enum err e = csv_row_open(&c, file, len, how, why);
	enum err no_classes = classes_init(&k, groups ? &unlabelled : how, e ? NULL : why);

	if (!e)
		e = no_classes;
	if (!e && groups && c.group == CSV_ROW_NONE)
		e = err_set(why, ERR_INVALID, "no column is named for the groups");
	k.named = groups;
	if (!e)
		e = read_column(&c, &k, how, groups, &column);
	if (!e && column.count == 0)
		e = err_set(why, ERR_INVALID, "the file holds a header and no rows");
	if (!e && (e = number_names(&k, column.values, column.count, NULL)))
		err_set(why, e, "no memory for the names");
	numbering_deinit(&k.names);
	csv_row_close(&c);
	if (e) {
		free(column.values);
		return e;
	}
	*values = column.values;
	*count = column.count;
	return ERR_OK;
}

enum err
csv_labels(int32_t **labels, size_t *count, const void *file, size_t len,
    const struct csv_form *how, struct why *why)
{
	return one_column(labels, count, file, len, how, false, why);
}

enum err
csv_groups(int32_t **groups, size_t *count, const void *file, size_t len,
    const struct csv_form *how, struct why *why)
{
	return one_column(groups, count, file, len, how, true, why);
}
