/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "buf.h"
#include "engine.h"
#include "metrics_inside.h"
#include "routes.h"

static bool
ends(const char *text, const char *with)
{
	const size_t n = strlen(text), m = strlen(with);

	return n >= m && strcmp(text + n - m, with) == 0;
}

/* The conventions of prometheus.io/docs/practices/naming, and what is Prometheus's own. */
static void
names(void **state)
{
	(void)state;
	for (size_t i = 0; i < metrics_rows_count(); i++) {
		const struct metrics_row *r = &metrics_rows[i];
		if (!r->name)
			continue;
		for (const char *p = r->name; *p; p++)
			assert_true(islower((unsigned char)*p) || *p == '_');
		assert_true(
		    strncmp(r->name, "rivulet_", 8) == 0 || strncmp(r->name, "process_", 8) == 0);
		assert_int_equal(ends(r->name, "_total"), r->type == METRICS_COUNTER);
		assert_null(strstr(r->name, "_ms"));
		assert_non_null(r->help);
		for (size_t k = 0; k < i; k++)
			assert_true(
			    !metrics_rows[k].name || strcmp(metrics_rows[k].name, r->name) != 0);
	}
}

static void
words(void **state)
{
	static struct metrics_view v;

	(void)state;
	for (size_t i = 0; i < metrics_rows_count(); i++)
		for (unsigned k = 0; k < METRICS_LABELS && metrics_rows[i].labels[k]; k++) {
			const struct metrics_label *l = metrics_rows[i].labels[k];
			assert_true(
			    strcmp(l->name, "job") != 0 && strcmp(l->name, "instance") != 0);
			for (unsigned w = l->first; w < l->end && l != &metrics_label_route; w++) {
				assert_non_null(l->word(&v, w));
				assert_true(l->word(&v, w)[0]);
				for (unsigned before = l->first; before < w; before++)
					assert_string_not_equal(
					    l->word(&v, before), l->word(&v, w));
			}
		}
}

/* However many devices and jobs there are. */
static void
bounded(void **state)
{
	size_t count;

	(void)state;
	routes_table(&count);
	const size_t most = metrics_series_most(count);
	print_message("at most %zu series\n", most);
	assert_true(most > 1000 && most < 2000);
	assert_true(metrics_series_most(count + 1) == most + SERVER_CLASSES);
}

static void
escapes(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_int_equal(metrics_print_text(&out, "he said \"so\"\nC:\\x \xc3\xa9"), ERR_OK);
	assert_string_equal(buf_str(&out), "he said \\\"so\\\"\\nC:\\\\x \xc3\xa9");
	buf_deinit(&out);
}

static void
values(void **state)
{
	static struct metrics_view v;
	unsigned at[METRICS_LABELS] = {0, 0};

	(void)state;
	v.server.responses[3][2] = 7;
	v.unready = WAIT_DISK_FULL;
	v.disk.free_bytes = NAN;
	for (size_t i = 0; i < metrics_rows_count(); i++) {
		const struct metrics_row *r = &metrics_rows[i];
		if (r->labels[0] == &metrics_label_route) {
			at[0] = 3;
			at[1] = 2;
			assert_true(metrics_value_read(r, &v, at) == 7);
		} else if (r->labels[0] == &metrics_label_unready) {
			at[0] = WAIT_DISK_FULL;
			assert_true(metrics_value_read(r, &v, at) == 1);
			at[0] = WAIT_DISK_ERROR;
			assert_true(metrics_value_read(r, &v, at) == 0);
		} else if (r->name && strcmp(r->name, "rivulet_disk_free_bytes") == 0) {
			assert_true(isnan(metrics_value_read(r, &v, at)));
		}
	}
}

/* --- which jobs have series */

static void
jobs_with_series(void **state)
{
	static struct metrics_view v;
	static struct job_view j;

	(void)state;
	_Static_assert(sizeof(j.name) <= 65, "no name is longer than 64 bytes");
	for (size_t i = 0; i < 60; i++) {
		j.state = i < 20 ? JOB_DONE : i < 40 ? JOB_PAUSED : JOB_RUNNING;
		j.ended_at_seconds = i < 20 ? (double)i : NAN;
		j.metric.loss = 1;
		metrics_view_job(&v, &j);
	}
	assert_int_equal(v.job_count, METRICS_JOBS);
	assert_int_equal(v.jobs_omitted, 60 - METRICS_JOBS);
	for (size_t i = 0; i < METRICS_JOBS; i++)
		assert_int_equal(v.jobs[i].state,
		    i < 20	 ? JOB_RUNNING
			: i < 40 ? JOB_PAUSED
				 : JOB_DONE);
	/* Of those that are over the last to end come first. */
	for (size_t i = 40; i < METRICS_JOBS; i++)
		assert_true(v.jobs[i].ended_at == (double)(59 - i));
	/* No round is open, and nothing was measured. */
	assert_true(isnan(v.jobs[0].reports) && isnan(v.jobs[0].loss));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names),
	    cmocka_unit_test(words),
	    cmocka_unit_test(bounded),
	    cmocka_unit_test(escapes),
	    cmocka_unit_test(values),
	    cmocka_unit_test(jobs_with_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
