/* stages: gcc address */
/* Counts in reports: what they encode to, what one device cannot have counted, how long they may get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "counts.h"
#include "messages.h"

static const struct figure_set all_of_two = {
    .classes = true, .confusion = true, .auc = true, .tops = {1, 2}, .top_count = 2};
static const struct figure_set numbers = {.regression = true};

#define GOOD \
	"\"classes\":[[0,3,3,2],[1,2,2,1]],\"confusion\":[[0,0,2],[0,1,1],[1,0,1],[1,1,1]]," \
	"\"top\":[[1,3],[2,5]],\"auc\":{\"positive\":[[7,1],[255,1]],\"negative\":[[0,3]]}"
#define REPORT(counts) "{\"evaluate\":{\"examples\":5,\"loss\":1,\"accuracy\":0.6," counts "}}"
#define REGRESSION(values, absolute, squares, sum, sum_squares) \
	"{\"evaluate\":{\"examples\":5,\"loss\":1,\"regression\":{\"values\":" values \
	",\"absolute\":" absolute ",\"squares\":" squares ",\"sum\":" sum \
	",\"sum_squares\":" sum_squares "}}}"

static enum err
read(struct counts **out, const struct figure_set *set, const char *text, struct why *why)
{
	return messages_report_counts(out, set, set->regression ? 0 : 2, text, strlen(text), why);
}

static void
there_and_back(void **state)
{
	struct report r = {
	    .has_evaluate = true, .eval_examples = 5, .eval_loss = 1, .eval_accuracy = 0.6};
	struct counts *c;
	struct buf text;

	(void)state;
	assert_int_equal(read(&c, &all_of_two, REPORT(GOOD), NULL), ERR_OK);
	assert_int_equal(c->examples, 5);
	assert_int_equal(c->classes[0].predicted, 3);
	assert_int_equal(c->confusion[1], 1);
	assert_int_equal(c->bins[255].positive, 1);
	assert_int_equal(c->bins[0].negative, 3);
	buf_init(&text, REPORT_MAX);
	r.counts = c;
	assert_int_equal(messages_report_encode(&text, &r), ERR_OK);
	assert_string_equal(text.data, REPORT(GOOD));
	buf_deinit(&text);
	counts_free(c);
	assert_int_equal(
	    read(&c, &numbers, REGRESSION("10", "2.5", "1.5", "-3", "4"), NULL), ERR_OK);
	assert_true(c->regression.sum == -3 && c->regression.values == 10);
	counts_free(c);
	/* A report without an evaluation has none, and nobody who asks for none gets any. */
	assert_int_equal(read(&c, &all_of_two, "{}", NULL), ERR_OK);
	assert_null(c);
	assert_int_equal(read(&c, &all_of_two, "{\"evaluate\":{\"examples\":5}}", NULL), ERR_OK);
	assert_null(c);
	assert_int_equal(
	    read(&c, &(struct figure_set){.classes = false}, REPORT(GOOD), NULL), ERR_OK);
	assert_null(c);
}

static void
adding(void **state)
{
	struct counts *one, *sum;

	(void)state;
	assert_int_equal(read(&one, &all_of_two, REPORT(GOOD), NULL), ERR_OK);
	assert_int_equal(counts_new(&sum, &all_of_two, 2, NULL), ERR_OK);
	counts_add(sum, one);
	counts_add(sum, one);
	assert_int_equal(sum->reports, 2);
	assert_int_equal(sum->examples, 10);
	assert_int_equal(sum->classes[1].right, 2);
	assert_int_equal(sum->confusion[0], 4);
	assert_int_equal(sum->top[1], 10);
	const struct counts_said said = {.examples = 10};
	assert_int_equal(counts_check(sum, &said, NULL), ERR_OK);
	/* However much devices claim, a sum does not wrap. */
	one->classes[0].examples = COUNTS_MAX;
	counts_add(sum, one);
	counts_add(sum, one);
	assert_int_equal(sum->classes[0].examples, COUNTS_MAX);
	counts_free(one);
	counts_free(sum);
}

static void
what_cannot_be(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
	    {REPORT("\"top\":[]"), "evaluate.classes: missing"},
	    {REPORT("\"classes\":[[0,3,3,2],[1,2,2,3]]"), "evaluate.confusion: missing"},
	    {REPORT("\"classes\":[[2,5,5,5]]"), "evaluate.classes[0]"},
	    {REPORT("\"classes\":[[0,5,5]]"), "evaluate.classes[0]"},
	    {REPORT("\"classes\":[[0,5,5,-1]]"), "evaluate.classes[0]"},
	    {REPORT("\"classes\":[[0,5,5,5],[0,5,5,5]]"), "twice"},
	    {"{\"evaluate\":{\"examples\":6,\"loss\":1," GOOD "}}", "does not add up"},
	};
	static const char *const changes[][3] = {
	    {"[0,3,3,2]", "[0,3,3,4]", "more are right"},
	    {"[0,3,3,2]", "[0,3,3,1]", "differ in class 0"},
	    {"[1,1,1]]", "[1,1,2]]", "differ in class 1"},
	    {"[1,0,1]", "[1,2,1]", "evaluate.confusion[2][1]"},
	    {"[1,0,1]", "[0,0,1]", "twice"},
	    {"[1,3]", "[1,6]", "evaluate.top"},
	    {"[1,3]", "[2,3]", "top1 is missing"},
	    {"[1,3]", "[1,3],[1,4]", "twice"},
	    {"[1,3]", "[1,3],[9,0],[9,4]", "twice"},
	    {"[255,1]", "[256,1]", "evaluate.auc.positive[1][0]"},
	    {"[0,3]]", "[0,4]]", "evaluate.auc does not add up"},
	    {"[255,1]],\"negative\":[[0,3]]", "[255,2]],\"negative\":[[0,2]]", "differ in class 1"},
	};
	static const char good[] = REPORT(GOOD);
	struct counts *c;
	struct why why;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(read(&c, &all_of_two, bad[i].text, &why), ERR_INVALID);
		if (!strstr(why.text, bad[i].why))
			fail_msg("%s: %s", bad[i].text, why.text);
		assert_null(c);
	}
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		char text[512];
		const char *at = strstr(good, changes[i][0]);
		assert_non_null(at);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, changes[i][1],
		    at + strlen(changes[i][0]));
		if (read(&c, &all_of_two, text, &why) != ERR_INVALID ||
		    !strstr(why.text, changes[i][2]))
			fail_msg("%s: %s", text, why.text);
	}
}

/* Labels that do not count are in no count, so what a device says of them is what its counts add up to. */
static void
what_counted(void **state)
{
#define COUNTED(said) "{\"evaluate\":{" said ",\"loss\":1," GOOD "}}"
	static const struct {
		bool skips;
		uint64_t labels; /* of an example */
		const char *text, *why; /* NULL: it is taken */
	} rows[] = {
	    {false, 1, COUNTED("\"examples\":8,\"loss_count\":5,\"labels\":5,\"right\":3"), NULL},
	    {true, 1, COUNTED("\"examples\":8,\"loss_count\":5,\"labels\":5,\"right\":3"), NULL},
	    {false, 1, COUNTED("\"examples\":5,\"loss_count\":4,\"labels\":4,\"right\":3"),
		"does not add up to evaluate.labels"},
	    {true, 1, COUNTED("\"examples\":8,\"loss_count\":6,\"labels\":6,\"right\":3"),
		"does not add up to evaluate.labels"},
	    /* Of a text; more than it has nobody can have counted. */
	    {false, 2, COUNTED("\"examples\":3,\"loss_count\":5,\"labels\":5,\"right\":3"), NULL},
	    {false, 2, COUNTED("\"examples\":2,\"loss_count\":5,\"labels\":5,\"right\":3"),
		"more was counted"},
	    {false, 1, COUNTED("\"examples\":4,\"loss_count\":5,\"labels\":5,\"right\":3"),
		"more was counted"},
	    /* A device of an older version does not say it. */
	    {true, 1, COUNTED("\"examples\":8"), NULL},
	    {true, 2, COUNTED("\"examples\":3"), NULL},
	    {true, 2, COUNTED("\"examples\":2"), "more was counted"},
	    {false, 1, COUNTED("\"examples\":8"), "does not add up to evaluate.examples"},
	    {false, 1, COUNTED("\"examples\":8,\"loss_count\":5"), "evaluate.examples"},
	};
	struct figure_set set = all_of_two;
	struct counts *c;
	struct why why;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		set.skips = rows[i].skips;
		set.labels = rows[i].labels;
		enum err e = read(&c, &set, rows[i].text, &why);
		if (!e != !rows[i].why || (rows[i].why && !strstr(why.text, rows[i].why)))
			fail_msg("%s: %s", rows[i].text, e ? why.text : "taken");
		if (c)
			assert_int_equal(c->examples, 5);
		counts_free(c);
	}
}

/* What top-k is a share of, and a regression. */
static void
what_shares_are_of(void **state)
{
#define TOP(said) "{\"evaluate\":{" said ",\"loss\":1,\"top\":[[1,3],[2,5]]}}"
	const struct figure_set tops = {.tops = {1, 2}, .top_count = 2};
	struct counts *c;
	struct why why;

	(void)state;
	assert_int_equal(
	    read(&c, &tops, TOP("\"examples\":8,\"loss_count\":6,\"labels\":6,\"right\":3"), NULL),
	    ERR_OK);
	assert_int_equal(c->examples, 6);
	counts_free(c);
	assert_int_equal(
	    read(&c, &tops, TOP("\"examples\":8,\"loss_count\":4,\"labels\":4,\"right\":3"), &why),
	    ERR_INVALID);
	/* Numbers are of examples, whatever is said of labels. */
	assert_int_equal(
	    read(&c, &numbers,
		"{\"evaluate\":{\"examples\":2,\"loss\":1,\"loss_count\":2,\"labels\":0,"
		"\"right\":0,\"regression\":{\"values\":2,\"absolute\":1,\"squares\":1,"
		"\"sum\":0,\"sum_squares\":1}}}",
		&why),
	    ERR_OK);
	assert_int_equal(c->examples, 2);
	counts_free(c);
}

static void
sums_that_cannot_be(void **state)
{
	static const char *const bad[] = {REGRESSION("9", "2.5", "1.5", "-3", "4"),
	    REGRESSION("0", "0", "0", "0", "0"), REGRESSION("10", "4", "1.5", "-3", "4"),
	    REGRESSION("10", "2.5", "1.5", "-7", "4"), REGRESSION("10", "-1", "1.5", "-3", "4"),
	    REGRESSION("10", "2.5", "1e999", "-3", "4"), REGRESSION("10", "2.5", "-1", "-3", "4")};
	struct counts *c;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (read(&c, &numbers, bad[i], NULL) != ERR_INVALID)
			fail_msg("%s", bad[i]);
}

/* Of five examples with two outputs each; where nobody knows the outputs, of any number up to a bound. */
static void
more_than_outputs(void **state)
{
	const struct figure_set two = {.regression = true, .outputs = 2};
	struct counts *c;
	struct why why;

	(void)state;
	assert_int_equal(read(&c, &two, REGRESSION("10", "2.5", "1.5", "-3", "4"), &why), ERR_OK);
	counts_free(c);
	assert_int_equal(
	    read(&c, &two, REGRESSION("15", "2.5", "1.5", "-3", "4"), &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "times 2 outputs"));
	assert_int_equal(
	    read(&c, &numbers, REGRESSION("5242880", "2.5", "1.5", "-3", "4"), &why), ERR_OK);
	counts_free(c);
	assert_int_equal(
	    read(&c, &numbers, REGRESSION("5242885", "2.5", "1.5", "-3", "4"), &why), ERR_INVALID);
	assert_int_equal(
	    read(&c, &numbers, REGRESSION("9007199254740990", "2", "1", "-3", "4"), &why),
	    ERR_INVALID);
}

/* Counts that take as many bytes as any of so many examples can: each number of the most digits, or as many as there are. */
static void
fill(struct counts *c, uint64_t examples)
{
	uint64_t cells = c->class_count * c->class_count;

	for (size_t i = 0; i < c->class_count && c->classes; i++)
		c->classes[i] = (struct counts_class){examples, examples, examples};
	for (uint64_t i = 0; i < cells && c->confusion; i++)
		c->confusion[i] = examples;
	for (size_t i = 0; i < c->wanted.top_count; i++)
		c->top[i] = examples;
	c->regression = (struct counts_regression){COUNTS_MAX, 2.2250738585072014e-308,
	    2.2250738585072014e-308, -2.2250738585072014e-308, 2.2250738585072014e-308};
	for (size_t i = 0; i < COUNTS_BINS && c->bins; i++)
		c->bins[i] = (struct counts_bin){examples, examples};
}

/* The promise that a submission is refused by. */
static void
the_longest(void **state)
{
	static const struct {
		struct figure_set set;
		size_t classes;
	} cases[] = {{{.classes = true}, 400}, {{.confusion = true}, 29},
	    {{.tops = {1, 2, 3, 100}, .top_count = 4}, 4096}, {{.regression = true}, 0},
	    {{.classes = true, .confusion = true, .auc = true, .tops = {1, 2}, .top_count = 2}, 2}};
	const uint64_t examples = 1000000;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct report r = {.has_evaluate = true};
		struct counts *c;
		struct buf with, without;
		buf_init(&with, REPORT_MAX);
		buf_init(&without, REPORT_MAX);
		assert_int_equal(counts_new(&c, &cases[i].set, cases[i].classes, NULL), ERR_OK);
		fill(c, examples);
		assert_int_equal(messages_report_encode(&without, &r), ERR_OK);
		r.counts = c;
		assert_int_equal(messages_report_encode(&with, &r), ERR_OK);
		uint64_t promised = figure_set_bytes(&cases[i].set, cases[i].classes, examples);
		if (with.len - without.len > promised || promised > FIGURE_SET_BYTES_MAX)
			fail_msg("case %zu: %zu bytes, %zu promised", i, with.len - without.len,
			    (size_t)promised);
		counts_free(c);
		buf_deinit(&with);
		buf_deinit(&without);
	}
	struct counts *c;
	assert_int_equal(counts_new(&c, &cases[1].set, 100, NULL), ERR_LIMIT);
	assert_null(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(there_and_back),
	    cmocka_unit_test(adding),
	    cmocka_unit_test(what_cannot_be),
	    cmocka_unit_test(what_counted),
	    cmocka_unit_test(what_shares_are_of),
	    cmocka_unit_test(sums_that_cannot_be),
	    cmocka_unit_test(more_than_outputs),
	    cmocka_unit_test(the_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
