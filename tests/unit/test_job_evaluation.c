/* stages: gcc address */
/* Jobs that only evaluate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "job.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A job that only evaluates has none of what rounds that make models need. */
static void
test_evaluation(void **state)
{
	(void)state;
	static const struct {
		const char *init, *more, *reason;
	} cases[] = {
	    {",\"init\":\"" HEX64 "\"", "", NULL},
	    {",\"init\":\"" HEX64 "\"", ",\"evaluate\":{\"by\":\"devices\",\"deadline_s\":5}",
		NULL},
	    {",\"init\":\"" HEX64 "\"", ",\"evaluate\":{\"by\":\"coordinator\"}",
		"kind: \"evaluate\" needs \"evaluate\": {\"by\": \"devices\"}"},
	    {"", "", "kind: \"evaluate\" needs model.init: which model it is"},
	    {",\"init\":\"" HEX64 "\"", ",\"stop\":{\"rounds\":1}", "stop: an evaluation has none"},
	    {",\"init\":\"" HEX64 "\"", ",\"download\":{\"codec\":\"int8\"}",
		"download: an evaluation has none"},
	    {",\"init\":\"" HEX64 "\"",
		",\"guard\":{\"metric\":\"loss\",\"factor\":2,\"do\":\"stop\"}",
		"guard: an evaluation has none"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[1024];
		struct why why = {""};
		struct job_spec j;

		snprintf(text, sizeof(text),
		    "{\"name\":\"j\",\"kind\":\"evaluate\",\"model\":{\"layers\":[{\"type\":"
		    "\"linear\","
		    "\"out\":2}],\"loss\":\"cross_entropy\"%s},\"data\":{\"name\":\"d\",\"shape\":["
		    "4],"
		    "\"classes\":2},\"local\":{\"optimizer\":{\"rate\":0.1},\"control_variates\":{"
		    "\"devices\":"
		    "9}},\"round\":{\"goal\":3}%s%s}",
		    cases[i].init,
		    strstr(cases[i].more, "evaluate") ? "" : ",\"evaluate\":{\"by\":\"devices\"}",
		    cases[i].more);
		enum err e = job_parse(&j, text, strlen(text), &why);
		if (cases[i].reason) {
			assert_int_equal(e, ERR_INVALID);
			assert_string_equal(why.text, cases[i].reason);
			continue;
		}
		if (e)
			fail_msg("%s", why.text);
		assert_true(j.only_evaluates);
		assert_true(j.recipe.evaluate_deadline_s == (i == 1 ? 5 : 0));
		/* No device sends a second vector. */
		assert_int_equal(j.aggregate.variates, 0);
		job_deinit(&j);
	}
}

/* A program of a named device measures: who trains is not told so, as devices from before refuse the word. */
static void
test_by_program(void **state)
{
	static const char text[] =
	    "{\"name\":\"j\",\"model\":{\"init\":\"" HEX64
	    "\"},\"trainer\":\"own\",\"data\":{\"name\":\"d\"},\"evaluate\":{\"by\":"
	    "\"program\",\"devices\":[\"b\",\"a\"],\"every\":3},\"round\":{\"goal\":1},\"monitor\":"
	    "{\"metric\":\"metrics.f1\","
	    "\"mode\":\"max\"},\"stop\":{\"target\":{\"accuracy\":0.5}}}";
	struct why why = {""};
	struct job_spec j;

	(void)state;
	if (job_parse(&j, text, sizeof(text) - 1, &why))
		fail_msg("%s", why.text);
	assert_int_equal(j.recipe.evaluate_by, EVALUATE_PROGRAM);
	assert_int_equal(j.evaluators.device_count, 2);
	assert_true(job_names_device(&j.evaluators, HEX64, "a"));
	assert_false(job_names_device(&j.evaluators, HEX64, "c"));
	assert_true(j.recipe.evaluate_deadline_s == 300);
	assert_null(strstr(recipe_text_all(j.recipe.text), "evaluate"));
	assert_false(job_measures(&j, 2, false));
	assert_true(job_measures(&j, 3, false) && job_measures(&j, 4, true));
	/* All of it is of the new model, the monitor's own metric too. */
	assert_false(job_measures_base(&j, false) || job_measures_base(&j, true));
	job_deinit(&j);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_evaluation),
	    cmocka_unit_test(test_by_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
