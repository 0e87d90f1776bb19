/* stages: gcc clang openssl address */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "json.h"
#include "series.h"
#include "sheet.h"

/* Rounds as the API gives them: the third failed, the fourth is open, evaluated is every second. */
static const char rounds_text[] =
    "[{\"round\":1,\"state\":\"committed\",\"loss\":2.5,\"accuracy\":0.25,\"evaluate\":null,"
    "\"reports\":2,\"opened_at\":100,"
    "\"closed_at\":110,\"seconds\":10,\"metrics\":{\"perplexity\":{\"mean\":12.5,\"reports\":2}}},"
    "{\"round\":2,\"state\":\"committed\",\"loss\":1.5,\"accuracy\":null,\"evaluate\":{\"loss\":1."
    "25,\"accuracy\":0.5},"
    "\"figures\":{\"macro\":{\"recall\":0.75,\"f1\":0.5},\"top5\":1,\"examples\":9},\"reports\":3,"
    "\"opened_at\":"
    "110,\"closed_at\":130,"
    "\"metrics\":{\"b,\\\"c\\\"\":{\"mean\":-1}}},"
    "{\"round\":3,\"state\":\"failed\",\"loss\":9,\"evaluate\":null,\"reports\":1,\"opened_at\":"
    "130,\"closed_at\":131},"
    "{\"round\":4,\"state\":\"committed\",\"loss\":1,\"evaluate\":{\"loss\":1,\"accuracy\":0.5},"
    "\"reports\":2,\"opened_at\":131,"
    "\"closed_at\":140},"
    "{\"round\":5,\"state\":\"open\",\"loss\":7,\"reports\":1,\"opened_at\":140,\"closed_at\":null}"
    "]";

static struct json *
rounds(void)
{
	struct json *v;

	assert_int_equal(json_parse(&v, rounds_text, strlen(rounds_text), NULL), ERR_OK);
	return v;
}

static void
fill(struct series *s, const char *tag, enum series_axis axis)
{
	struct json *all = rounds();

	series_init(s, tag, axis);
	for (const struct json *r = json_first(all); r; r = json_next(r))
		assert_int_equal(series_add(s, r, NULL), ERR_OK);
	json_free(all);
}

static void
test_values(void **state)
{
	struct series s;
	(void)state;

	fill(&s, "loss/train", SERIES_ROUND);
	assert_int_equal(s.count, 4);
	assert_true(s.x[0] == 1 && s.y[0] == 2.5 && s.x[3] == 4 && s.y[3] == 1);
	assert_true(isnan(s.y[2])); /* failed */
	series_deinit(&s);

	/* What only some rounds have is passed over. */
	fill(&s, "accuracy/eval", SERIES_ROUND);
	assert_int_equal(s.count, 3);
	assert_true(s.x[0] == 2 && s.y[0] == 0.5 && isnan(s.y[1]) && s.x[2] == 4);
	series_deinit(&s);

	fill(&s, "metrics/perplexity", SERIES_ROUND);
	assert_true(s.count == 2 && s.y[0] == 12.5 && isnan(s.y[1]));
	series_deinit(&s);
}

static void
test_axes(void **state)
{
	static const double reports[] = {2, 5, 6, 8}, seconds[] = {10, 30, 31, 40};
	enum series_axis axis;
	struct series s;
	(void)state;

	fill(&s, "loss/train", SERIES_REPORTS);
	assert_memory_equal(s.x, reports, sizeof(reports));
	series_deinit(&s);
	fill(&s, "loss/train", SERIES_TIME);
	assert_memory_equal(s.x, seconds, sizeof(seconds));
	series_deinit(&s);
	assert_true(series_axis_find("reports", &axis) && axis == SERIES_REPORTS);
	assert_false(series_axis_find("report", &axis));
}

static void
test_best(void **state)
{
	struct series s;
	double y;
	(void)state;

	fill(&s, "accuracy/eval", SERIES_ROUND);
	assert_int_equal(s.round[series_best(&s, true)], 2); /* the first of equal ones */
	assert_false(series_at(&s, 1, &y));
	assert_true(series_at(&s, 3, &y) && y == 0.5);
	series_deinit(&s);
	fill(&s, "loss/train", SERIES_ROUND);
	assert_int_equal(s.round[series_best(&s, false)], 4);
	assert_int_equal(s.round[series_best(&s, true)], 1); /* a failed round is no best */
	series_deinit(&s);
	fill(&s, "mae/eval", SERIES_ROUND);
	assert_int_equal(series_best(&s, false), -1);
	series_deinit(&s);
}

static void
list(void *context, const char *tag, double value)
{
	char *text = context;
	size_t len = strlen(text);

	snprintf(text + len, 400 - len, "%s=%g ", tag, value);
}

static void
test_scalars(void **state)
{
	char text[400] = "";
	struct json *all = rounds();
	(void)state;

	scalars_each(json_at(all, 1), list, text);
	assert_string_equal(text,
	    "loss/train=1.5 loss/eval=1.25 accuracy/eval=0.5 recall/eval=0.75 f1/eval=0.5 "
	    "top5/eval=1 metrics/b,\"c\"=-1 ");
	json_free(all);
}

static void
test_meant(void **state)
{
	static const char *const cases[][3] = {{"accuracy", "accuracy/eval", "accuracy/train"},
	    {"loss", "loss/eval", "loss/train"}, {"f1", "f1/eval", NULL},
	    {"top5", "top5/eval", NULL}, {"topic", "metrics/topic", NULL},
	    {"metrics.perplexity", "metrics/perplexity", NULL},
	    {"perplexity", "metrics/perplexity", NULL}, {"loss/train", "loss/train", NULL}};
	char tags[SCALARS_MEANT_MAX][SCALARS_TAG_MAX];
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(scalars_meant(cases[i][0], tags), cases[i][2] ? 2 : 1);
		assert_string_equal(tags[0], cases[i][1]);
		if (cases[i][2])
			assert_string_equal(tags[1], cases[i][2]);
	}
	assert_int_equal(scalars_better("accuracy/eval"), 1);
	assert_int_equal(scalars_better("mae/eval"), -1);
	assert_int_equal(scalars_better("metrics/perplexity"), 0);
}

static void
test_sheet(void **state)
{
	static const char job_text[] = "{\"job\":\"0123\",\"name\":\"a\"}";
	struct json *all = rounds(), *job;
	struct sheet sheet = {.count = 0};
	struct buf out;
	(void)state;

	assert_int_equal(json_parse(&job, job_text, strlen(job_text), NULL), ERR_OK);
	buf_init(&out, 1 << 16);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(sheet_look(&sheet, json_at(all, i), NULL), ERR_OK);
	assert_int_equal(sheet_heads(&out, &sheet), ERR_OK);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(sheet_row(&out, &sheet, job, json_at(all, i)), ERR_OK);
	assert_string_equal(buf_str(&out),
	    "job,name,round,state,ended_at,seconds,reports,examples,bytes_up,bytes_down,model,loss/"
	    "train,accuracy/train,"
	    "metrics/perplexity,loss/eval,accuracy/eval,recall/eval,f1/eval,top5/eval,\"metrics/"
	    "b,\"\"c\"\"\"\n"
	    "0123,a,1,committed,110,10,2,,,,,2.5,0.25,12.5,,,,,,\n"
	    "0123,a,2,committed,130,,3,,,,,1.5,,,1.25,0.5,0.75,0.5,1,-1\n");
	buf_deinit(&out);
	sheet_deinit(&sheet);
	json_free(job);
	json_free(all);
}

/* What a spreadsheet would take for a formula. */
static void
test_formula(void **state)
{
	static const char *const names[][2] = {{"=1+1", "'=1+1"}, {"-a", "'-a"}, {"@x", "'@x"},
	    {"+1,2", "\"'+1,2\""}, {"a=1", "a=1"}, {"", ""}};
	struct sheet sheet = {.count = 0};
	struct json *round = json_object();
	(void)state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct json *job = json_object();
		char want[64];
		struct buf out;
		json_add_string(job, "name", names[i][0]);
		snprintf(want, sizeof(want), ",%s,,,,,,,,,\n", names[i][1]);
		buf_init(&out, 1 << 16);
		assert_int_equal(sheet_row(&out, &sheet, job, round), ERR_OK);
		assert_string_equal(buf_str(&out), want);
		buf_deinit(&out);
		json_free(job);
	}
	json_free(round);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_axes),
	    cmocka_unit_test(test_best),
	    cmocka_unit_test(test_scalars),
	    cmocka_unit_test(test_meant),
	    cmocka_unit_test(test_sheet),
	    cmocka_unit_test(test_formula),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
