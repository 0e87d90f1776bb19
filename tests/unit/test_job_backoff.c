/* stages: gcc clang openssl address */
/* Jobs whose tasks failed on a device: each rests alone, longer every time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job_backoff.h"

#define A "0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210"

static const char *
job(unsigned i)
{
	static char text[33];

	snprintf(text, sizeof(text), "%032x", i);
	return text;
}

static void
each_rests_alone(void **state)
{
	struct job_backoff r;

	(void)state;
	job_backoff_init(&r, 1);
	assert_true(isinf(job_backoff_next(&r, 0)));
	assert_true(job_backoff_failed(&r, A, 100, 0));
	double left = job_backoff_left(&r, A, 100);
	assert_true(left > 0 && left <= BACKOFF_BASE_S);
	assert_true(job_backoff_left(&r, B, 100) <= 0);
	assert_true(fabs(job_backoff_next(&r, 100) - left) < 1e-9);
	assert_true(job_backoff_left(&r, A, 100 + left) <= 0);
	assert_true(isinf(job_backoff_next(&r, 100 + left)));
}

/* The bound doubles up to the cap; a task that is done ends the row. */
static void
longer_each_time(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 12; n++) {
		double most = 0;
		for (uint64_t seed = 0; seed < 200; seed++) {
			struct job_backoff r;
			double left = 0;
			job_backoff_init(&r, seed);
			for (unsigned i = 0; i < n; i++) {
				assert_true(job_backoff_failed(&r, A, 100.0 * i, 0));
				left = job_backoff_left(&r, A, 100.0 * i);
			}
			assert_true(left <= backoff_limit(n - 1));
			most = fmax(most, left);
			job_backoff_done(&r, A);
			assert_true(job_backoff_left(&r, A, 100.0 * n) <= 0);
			assert_true(job_backoff_failed(&r, A, 5000, 0));
			assert_true(job_backoff_left(&r, A, 5000) <= BACKOFF_BASE_S);
		}
		assert_true(most > 0.8 * backoff_limit(n - 1));
	}
}

/* Twelve jobs that fail after a minute each, over and over, and one that is always there to be worked on: it has half of the time. */
static void
half_of_the_time_is_left(void **state)
{
	struct job_backoff r;
	double now = 0, good = 0;

	(void)state;
	job_backoff_init(&r, 7);
	while (now < 100000) {
		unsigned at = 0;
		while (at < 12 && job_backoff_left(&r, job(at), now) > 0)
			at++;
		if (at < 12) {
			now += 60;
			assert_true(job_backoff_failed(&r, job(at), now, 60));
		} else {
			now += 5;
			good += 5;
		}
	}
	assert_true(good > 0.4 * now);
	/* One whose tasks take no time is not kept for longer than others. */
	job_backoff_init(&r, 7);
	for (int i = 0; i < 30; i++)
		assert_true(job_backoff_failed(&r, A, i, 0));
	assert_true(job_backoff_left(&r, A, 30) <= BACKOFF_CAP_S);
	/* Nor for longer than an hour. */
	for (int i = 0; i < 3; i++)
		assert_true(job_backoff_failed(&r, B, 1000, 1e6));
	assert_true(job_backoff_left(&r, B, 1000) <= JOB_BACKOFF_REST_MAX_S);
}

/* As many as an offer can name; those that have rested make way. */
static void
no_more_than_can_be_told(void **state)
{
	static struct offer o;
	struct job_backoff r;
	unsigned i;

	(void)state;
	job_backoff_init(&r, 3);
	for (unsigned again = 0; again < 10; again++)
		for (i = 0; i < JOB_BACKOFF_MAX; i++)
			assert_true(job_backoff_failed(&r, job(i), 1000.0 * again, 0));
	assert_int_equal(r.count, JOB_BACKOFF_MAX);
	job_backoff_offer(&r, &o, 9000);
	assert_int_equal(o.resting_count, JOB_BACKOFF_MAX);
	for (i = 0; i < JOB_BACKOFF_MAX; i++)
		assert_true(o.resting[i].seconds >= 1 && o.resting[i].seconds <= 60);
	assert_false(job_backoff_failed(&r, A, 9000, 0));
	assert_true(job_backoff_left(&r, A, 9000) <= 0);
	assert_true(job_backoff_failed(&r, A, 9000 + BACKOFF_CAP_S, 0));
	job_backoff_offer(&r, &o, 9000 + BACKOFF_CAP_S);
	assert_int_equal(o.resting_count, 1);
	assert_int_equal(o.resting[0].job[0], 0x01);
	assert_int_equal(o.resting[0].job[15], 0xef);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_rests_alone),
	    cmocka_unit_test(longer_each_time),
	    cmocka_unit_test(half_of_the_time_is_left),
	    cmocka_unit_test(no_more_than_can_be_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
