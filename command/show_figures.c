#include "show_figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "print.h"

#define CLASSES_SHOWN 20 /* rows; the rest is in --json */
#define MATRIX_SHOWN (CMD_PRINT_COLUMNS_MAX - 1)

/* A figure of class i. */
static void
cell_of(struct cmd_table *t, const struct json *list, size_t i)
{
	char number[CMD_PRINT_NUMBER_MAX];
	double v;

	if (json_double(json_at(list, i), &v))
		cmd_print_cell(t, "%s", cmd_print_number(number, v));
	else
		cmd_print_cell(t, "-");
}

static void
print_classes(const struct json *f)
{
	static const char *const heads[] = {"CLASS", "RECALL", "PRECISION", "F1", "EXAMPLES"};
	const struct json *macro = json_get(f, "macro");
	size_t count = json_count(json_get(f, "recall"));
	struct cmd_table t;

	if (count == 0)
		return;
	cmd_print_start(&t, heads, 5);
	for (size_t i = 0; i < count && i < CLASSES_SHOWN; i++) {
		uint64_t examples = 0;
		(void)json_u64(json_at(json_get(f, "support"), i), &examples);
		cmd_print_cell(&t, "%zu", i);
		cell_of(&t, json_get(f, "recall"), i);
		cell_of(&t, json_get(f, "precision"), i);
		cell_of(&t, json_get(f, "f1"), i);
		cmd_print_cell(&t, "%" PRIu64, examples);
	}
	cmd_print_cell(&t, "macro");
	cmd_print_figure(&t, macro, "recall");
	cmd_print_figure(&t, macro, "precision");
	cmd_print_figure(&t, macro, "f1");
	cmd_print_count(&t, f, "examples");
	cmd_print_end(&t);
	if (count > CLASSES_SHOWN)
		printf("%zu classes more: --json\n", count - CLASSES_SHOWN);
}

/* What is one number. */
static void
print_single(const struct json *f)
{
	char number[CMD_PRINT_NUMBER_MAX];
	double v;

	for (const struct json *o = json_first(f); o; o = json_next(o)) {
		const char *key = json_key(o);
		bool count = key && (strcmp(key, "examples") == 0 || strcmp(key, "reports") == 0);
		if (key && !count && json_double(o, &v))
			cmd_print_line("%-10s %s%s", key, cmd_print_number(number, v),
			    strcmp(key, "auc") == 0 ? " (estimated)" : "");
	}
}

static uint64_t
cell(const struct json *confusion, uint64_t truth, uint64_t taken)
{
	uint64_t t, p, n;

	for (const struct json *c = json_first(confusion); c; c = json_next(c))
		if (json_u64(json_at(c, 0), &t) && json_u64(json_at(c, 1), &p) &&
		    json_u64(json_at(c, 2), &n) && t == truth && p == taken)
			return n;
	return 0;
}

/* The largest class in it, and 1. */
static uint64_t
matrix_width(const struct json *confusion)
{
	uint64_t width = 0, v;

	for (const struct json *c = json_first(confusion); c; c = json_next(c))
		for (size_t i = 0; i < 2; i++)
			if (json_u64(json_at(c, i), &v) && v >= width)
				width = v + 1;
	return width;
}

static void
print_matrix(const struct json *confusion, uint64_t width)
{
	char texts[CMD_PRINT_COLUMNS_MAX][24];
	const char *heads[CMD_PRINT_COLUMNS_MAX] = {"TRUE"};
	struct cmd_table t;

	for (uint64_t i = 0; i < width; i++) {
		snprintf(texts[i], sizeof(texts[i]), "AS %" PRIu64, i);
		heads[i + 1] = texts[i];
	}
	cmd_print_start(&t, heads, (size_t)width + 1);
	for (uint64_t i = 0; i < width; i++) {
		cmd_print_cell(&t, "%" PRIu64, i);
		for (uint64_t k = 0; k < width; k++)
			cmd_print_cell(&t, "%" PRIu64, cell(confusion, i, k));
	}
	cmd_print_end(&t);
}

/* One line for each pair, where the matrix is too wide. */
static void
print_pairs(const struct json *confusion)
{
	static const char *const heads[] = {"TRUE", "TAKEN FOR", "EXAMPLES"};
	struct cmd_table t;
	uint64_t v;

	cmd_print_start(&t, heads, 3);
	for (const struct json *c = json_first(confusion); c; c = json_next(c))
		for (size_t i = 0; i < 3; i++)
			if (json_u64(json_at(c, i), &v))
				cmd_print_cell(&t, "%" PRIu64, v);
			else
				cmd_print_cell(&t, "-");
	cmd_print_end(&t);
}

static void
print_confusion(const struct json *confusion)
{
	uint64_t width = matrix_width(confusion);

	if (width == 0)
		return;
	printf("\n");
	if (width <= MATRIX_SHOWN)
		print_matrix(confusion, width);
	else
		print_pairs(confusion);
}

void
cmd_figures_print(const struct json *rounds, bool confusion)
{
	const struct json *f = NULL, *round = NULL;
	uint64_t number = 0, examples = 0, reports = 0;

	for (const struct json *r = json_first(rounds); r; r = json_next(r))
		if (json_kind(json_get(r, "figures")) == JSON_OBJECT) {
			f = json_get(r, "figures");
			round = r;
		}
	if (!f)
		return;
	(void)json_u64(json_get(round, "round"), &number);
	(void)json_u64(json_get(f, "examples"), &examples);
	(void)json_u64(json_get(f, "reports"), &reports);
	printf("\n");
	cmd_print_line("round %" PRIu64 ": figures over %" PRIu64 " examples of %" PRIu64
		       " report%s",
	    number, examples, reports, reports == 1 ? "" : "s");
	print_classes(f);
	print_single(f);
	if (confusion)
		print_confusion(json_get(f, "confusion"));
}
