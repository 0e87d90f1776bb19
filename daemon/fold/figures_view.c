#include "figures_view.h"

#include <stdio.h>

#include "figures.h"
#include "json.h"

static void
push(struct json *list, double v)
{
	json_push(list, json_new_double(v));
}

static void
add_classes(struct json *v, const struct figures *f)
{
	struct json *recall = json_array(), *precision = json_array(), *f1 = json_array();
	struct json *examples = json_array(), *macro = json_object();

	for (size_t i = 0; i < f->counts->class_count; i++) {
		json_push(examples, json_new_u64(f->counts->classes[i].examples));
		push(recall, f->classes[i].recall);
		push(precision, f->classes[i].precision);
		push(f1, f->classes[i].f1);
	}
	json_add(v, "support", examples);
	json_add(v, "recall", recall);
	json_add(v, "precision", precision);
	json_add(v, "f1", f1);
	json_add_double(macro, "recall", f->macro.recall);
	json_add_double(macro, "precision", f->macro.precision);
	json_add_double(macro, "f1", f->macro.f1);
	json_add(v, "macro", macro);
}

/* Sparse. */
static void
add_confusion(struct json *v, const struct counts *c)
{
	struct json *list = json_array();

	for (size_t i = 0; i < c->class_count * c->class_count; i++) {
		if (c->confusion[i] == 0)
			continue;
		struct json *cell = json_array();
		json_push(cell, json_new_u64(i / c->class_count));
		json_push(cell, json_new_u64(i % c->class_count));
		json_push(cell, json_new_u64(c->confusion[i]));
		json_push(list, cell);
	}
	json_add(v, "confusion", list);
}

static struct json *
figures_json(const struct figures *f)
{
	const struct counts *c = f->counts;
	struct json *v = json_object();
	char key[16];

	json_add_u64(v, "examples", c->examples);
	json_add_u64(v, "reports", c->reports);
	if (f->classes)
		add_classes(v, f);
	if (c->confusion)
		add_confusion(v, c);
	for (size_t i = 0; i < c->wanted.top_count; i++) {
		snprintf(key, sizeof(key), "top%u", c->wanted.tops[i]);
		json_add_double(v, key, f->top[i]);
	}
	if (c->wanted.regression) {
		json_add_double(v, "mae", f->mae);
		json_add_double(v, "r2", f->r2);
	}
	if (c->bins)
		json_add_double(v, "auc", f->auc);
	return v;
}

enum err
figures_view_print(struct buf *out, const struct counts *counts)
{
	struct figures f;
	enum err e = figures_of(&f, counts);

	if (e)
		return e;
	struct json *v = figures_json(&f);
	e = json_print(out, v, false);
	json_free(v);
	figures_deinit(&f);
	return e;
}
