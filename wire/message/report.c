#include "messages_inside.h"

#include "buf.h"
#include "counts.h"
#include "counts_json.h"
#include "err.h"
#include "field.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void
add_number(struct json *o, const char *key, double v)
{
	if (isfinite(v))
		json_add_double(o, key, v);
}

double
messages_report_loss(const struct report_counted *t, double loss)
{
	return t->told && !(t->loss_count > 0) ? (double)NAN : loss;
}

double
messages_report_accuracy(const struct report_counted *t)
{
	return t->has_labels && t->labels > 0 ? (double)t->right / (double)t->labels : (double)NAN;
}

static void
add_counted(struct json *to, const struct report_counted *t)
{
	if (!t->told)
		return;
	add_number(to, "loss_count", t->loss_count);
	if (!t->has_labels)
		return;
	json_add_u64(to, "labels", t->labels);
	json_add_u64(to, "right", t->right);
}

static struct json *
report_tree(const struct report *in)
{
	struct json *o = json_object(), *part;

	if (in->trained.told) {
		part = json_object();
		add_counted(part, &in->trained);
		json_add(o, "trained", part);
	}
	if (in->has_evaluate) {
		part = json_object();
		json_add_u64(part, "examples", in->eval_examples);
		add_number(part, "loss", in->eval_loss);
		add_number(part, "accuracy", in->eval_accuracy);
		add_counted(part, &in->evaluated);
		if (in->counts)
			counts_json_add(part, in->counts);
		json_add(o, "evaluate", part);
	}
	if (in->metric_count == 0)
		return o;
	part = json_object();
	for (size_t i = 0; i < in->metric_count; i++)
		add_number(part, in->metrics[i].name, in->metrics[i].value);
	json_add(o, "metrics", part);
	return o;
}

enum err
messages_report_encode(struct buf *out, const struct report *in)
{
	struct buf text;
	enum err e;

	buf_init(&text, in->counts ? REPORT_MAX : REPORT_PLAIN_MAX);
	e = messages_finish(&text, report_tree(in));
	if (!e)
		e = buf_append(out, text.data, text.len);
	buf_deinit(&text);
	return e;
}

/* Of either object. */
static void
read_counted(struct report_counted *out, struct field *o)
{
	out->told = field_has(o, "loss_count");
	out->loss_count = field_double(o, "loss_count", 0, REPORT_COUNT_MAX, 0);
	out->has_labels = out->told && field_has(o, "labels");
	if (!out->has_labels)
		return;
	out->labels = field_u64(o, "labels", 0, JSON_INT_MAX, 0);
	out->right = field_u64(o, "right", 0, out->labels, FIELD_MUST_U64);
}

static void
read_trained(struct report *out, struct field *report)
{
	struct field o = field_object(report, "trained");

	if (!field_has(report, "trained"))
		return;
	read_counted(&out->trained, &o);
	if (!out->trained.told)
		field_fail(report, "trained", "has no loss_count");
}

static void
read_evaluate(struct report *out, struct field *report)
{
	struct field o = field_object(report, "evaluate");

	out->has_evaluate = field_has(report, "evaluate");
	out->eval_examples = field_u64(&o, "examples", 0, JSON_INT_MAX, 0);
	out->eval_loss = out->eval_accuracy = NAN;
	if (field_has(&o, "loss"))
		out->eval_loss = field_double(&o, "loss", -DBL_MAX, DBL_MAX, 0);
	if (field_has(&o, "accuracy"))
		out->eval_accuracy = field_double(&o, "accuracy", 0, 1, 0);
	read_counted(&out->evaluated, &o);
}

static void
read_metrics(struct report *out, struct field *report)
{
	struct field_list list;
	struct field item;

	field_map(&list, report, "metrics", MESSAGES_LIST_MAX);
	while (field_each(&list, &item)) {
		struct report_metric *m = &out->metrics[out->metric_count];
		if (!field_has(&item, NULL))
			continue;
		field_member(&item, FIELD_LINE, m->name, sizeof(m->name));
		m->value = field_double(&item, NULL, -DBL_MAX, DBL_MAX, 0);
		out->metric_count++;
	}
}

static void
read_report(void *to, struct field *o)
{
	read_trained(to, o);
	read_evaluate(to, o);
	read_metrics(to, o);
}

enum err
messages_report_decode(struct report *out, const char *text, size_t len, struct why *why)
{
	memset(out, 0, sizeof(*out));
	if (len > REPORT_MAX)
		return err_set(why, ERR_LIMIT, "a report larger than %d bytes", REPORT_MAX);
	return messages_decode(&(struct message){out, sizeof(*out), read_report}, text, len, why);
}

enum err
messages_report_counts(struct counts **out, const struct figure_set *wanted, size_t classes,
    const char *text, size_t len, struct why *why)
{
	struct field_reader reader = {.why = why};
	struct counts *counts = NULL;
	struct json *tree = NULL;

	*out = NULL;
	if (!figure_set_any(wanted))
		return ERR_OK;
	enum err e = counts_new(&counts, wanted, classes, why);
	if (e)
		return e;
	struct field root = messages_open(&tree, &reader, text, len);
	struct field o = field_object(&root, "evaluate");
	/* What found no number has counted nothing, either. */
	bool seen = field_has(&o, "loss") || field_has(&o, "accuracy");
	if (seen)
		counts_json_read(counts, &o);
	json_free(tree);
	if (seen && !reader.err)
		*out = counts;
	else
		counts_free(counts);
	return reader.err;
}
