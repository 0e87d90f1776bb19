/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "buf.h"
#include "job.h"
#include "json.h"

/* Defaults of new jobs: what a document alone means stays. */

static void
parse(struct job_spec *job, const char *local, const char *aggregate, const char *round,
    struct why *why)
{
	char text[600];
	int n = snprintf(text, sizeof(text),
	    "{\"name\":\"j\",\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\",\"out\":2}"
	    "],"
	    "\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},"
	    "\"local\":{%s,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},"
	    "\"round\":{\"goal\":2%s},\"aggregate\":{%s}}",
	    local, round, aggregate);

	why->text[0] = '\0';
	if (job_parse(job, text, (size_t)n, why))
		assert_string_not_equal(why->text, "");
}

static void
whose_documents_say_nothing(void **state)
{
	static const struct {
		const char *local, *aggregate;
		double alone, stamped; /* below 0: none */
		const char *why;
	} rows[] = {
	    {"\"epochs\":1", "", -1, -1, ""},
	    {"\"epochs\":1", "\"normalise\":true", -1, 2, ""},
	    {"\"target_s\":30", "", -1, 2, ""},
	    {"\"target_s\":30", "\"normalise\":false", -1, -1, ""},
	    {"\"target_s\":30", "\"normalise_max\":0", 0, 0, ""},
	    {"\"target_s\":30", "\"normalise_max\":1", 1, 1, ""},
	    {"\"target_s\":30", "\"normalise_max\":8", 8, 8, ""},
	    {"\"target_s\":30", "\"normalise_max\":0.5", 0, 0,
		"aggregate.normalise_max: is 0 (no bound), or 1 and more"},
	    {"\"target_s\":30", "\"normalise_max\":-1", 0, 0,
		"aggregate.normalise_max: must be a number from 0 to 1e+30"},
	    {"\"epochs\":1", "\"normalise_max\":2", 0, 0,
		"aggregate.normalise_max: needs \"normalise\""},
	};
	struct job_spec job;
	struct why why;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		parse(&job, rows[i].local, rows[i].aggregate, "", &why);
		assert_string_equal(why.text, rows[i].why);
		if (why.text[0])
			continue;
		assert_true(job.aggregate.normalise_max == rows[i].alone);
		const struct job_stamp stamp = job_stamp_new(&job);
		assert_true(job_stamp_is_empty(&stamp) == (rows[i].alone == rows[i].stamped));
		job_stamp_apply(&job, &stamp);
		assert_true(job.aggregate.normalise_max == rows[i].stamped);
		job_deinit(&job);
	}
}

/* Buffered rounds normalise only where the document has a word of it. */
static void
of_buffered_rounds(void **state)
{
	static const struct {
		const char *local, *aggregate;
		bool alone, stamped;
		double most;
		const char *text;
	} rows[] = {
	    {"\"target_s\":30", "", true, false, -1, "{\"aggregate.normalise\":false}"},
	    {"\"target_s\":30", "\"normalise\":true", true, true, 2,
		"{\"aggregate.normalise_max\":2}"},
	    {"\"target_s\":30", "\"normalise_max\":4", true, true, 4, "{}"},
	    {"\"target_s\":30", "\"normalise\":false", false, false, -1, "{}"},
	    {"\"epochs\":1", "", false, false, -1, "{}"},
	    {"\"epochs\":1", "\"normalise\":true", true, true, 2,
		"{\"aggregate.normalise_max\":2}"},
	};
	struct job_spec job;
	struct why why;
	struct buf text;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		parse(&job, rows[i].local, rows[i].aggregate, ",\"mode\":\"buffered\"", &why);
		assert_string_equal(why.text, "");
		assert_true(job.aggregate.normalise == rows[i].alone);
		const struct job_stamp stamp = job_stamp_new(&job);
		job_stamp_apply(&job, &stamp);
		assert_true(job.aggregate.normalise == rows[i].stamped);
		assert_true(job.aggregate.normalise_max == rows[i].most);
		struct json *v = job_stamp_json(&stamp);
		buf_init(&text, JOB_STAMP_TEXT_MAX);
		assert_int_equal(json_print(&text, v, false), ERR_OK);
		assert_string_equal(buf_str(&text), rows[i].text);
		assert_true(job_stamp_is_empty(&stamp) == (strcmp(rows[i].text, "{}") == 0));
		buf_deinit(&text);
		json_free(v);
		job_deinit(&job);
	}
}

static void
as_text(void **state)
{
	static const struct {
		const char *text;
		enum err e;
		double most;
	} rows[] = {
	    {"{}", ERR_OK, -1},
	    {"{\"aggregate.normalise_max\":2}", ERR_OK, 2},
	    {"{\"aggregate.normalise_max\":0}", ERR_OK, 0},
	    {"{\"aggregate.normalise_max\":0.5}", ERR_INVALID, -1},
	    {"{\"aggregate.normalise_max\":-1}", ERR_INVALID, -1},
	    {"{\"aggregate.normalise_max\":1e31}", ERR_INVALID, -1},
	    {"{\"aggregate.normalise_max\":\"2\"}", ERR_INVALID, -1},
	    {"{\"aggregate.normalise_max\":2,\"of.tomorrow\":1}", ERR_UNSUPPORTED, -1},
	    {"{\"aggregate.normalise\":false}", ERR_OK, -1},
	    {"{\"aggregate.normalise\":true}", ERR_INVALID, -1},
	    {"{\"aggregate.normalise\":0}", ERR_INVALID, -1},
	    {"[2]", ERR_INVALID, -1},
	    {"{", ERR_INVALID, -1},
	};
	struct job_stamp stamp;
	struct why why;
	struct buf text;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		enum err e = job_stamp_parse(&stamp, rows[i].text, strlen(rows[i].text), &why);
		assert_int_equal(e, rows[i].e);
		assert_true(stamp.normalise_max == rows[i].most);
		if (e)
			continue;
		struct json *v = job_stamp_json(&stamp);
		buf_init(&text, JOB_STAMP_TEXT_MAX);
		assert_int_equal(json_print(&text, v, false), ERR_OK);
		assert_string_equal(buf_str(&text), rows[i].text);
		buf_deinit(&text);
		json_free(v);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(whose_documents_say_nothing),
	    cmocka_unit_test(of_buffered_rounds),
	    cmocka_unit_test(as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
