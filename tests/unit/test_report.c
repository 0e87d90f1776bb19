/* stages: gcc clang openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"
#include "lock.h"

static void
buckets(void **state)
{
	struct histogram h = {.count = 0};

	(void)state;
	histogram_add(&h, 0);
	histogram_add(&h, 1e-6);
	histogram_add(&h, 1.5e-6);
	histogram_add(&h, 0.5);
	histogram_add(&h, 1000);
	assert_int_equal(h.count, 5);
	assert_true(fabs(h.sum - 1000.5000025) < 1e-9);
	assert_int_equal(h.buckets[0], 2);
	assert_int_equal(h.buckets[1], 1);
	assert_int_equal(h.buckets[17], 1);
	assert_true(fabs(histogram_bound(HISTOGRAM_FINE, 17) - 0.5) < 1e-12);
	assert_int_equal(h.buckets[HISTOGRAM_BOUNDS], 1);
	assert_true(isinf(histogram_bound(HISTOGRAM_FINE, HISTOGRAM_BOUNDS)));
	for (size_t i = 1; i < HISTOGRAM_BOUNDS; i++)
		assert_true(
		    histogram_bound(HISTOGRAM_FINE, i) > histogram_bound(HISTOGRAM_FINE, i - 1));
}

static void
scales(void **state)
{
	struct histogram late = {.scale = HISTOGRAM_LONG}, rounds = {.scale = HISTOGRAM_ROUNDS};

	(void)state;
	assert_int_equal(histogram_bounds(HISTOGRAM_LONG), 18);
	for (size_t i = 1; i < 18; i++)
		assert_true(histogram_bound(HISTOGRAM_LONG, i) ==
		    2 * histogram_bound(HISTOGRAM_LONG, i - 1));
	histogram_add(&late, 0.1);
	histogram_add(&late, 0.11);
	histogram_add(&late, 1e5);
	assert_int_equal(late.buckets[0], 1);
	assert_int_equal(late.buckets[1], 1);
	assert_int_equal(late.buckets[18], 1);
	histogram_add(&rounds, 0);
	histogram_add(&rounds, 1);
	histogram_add(&rounds, 3);
	assert_int_equal(rounds.buckets[0], 1);
	assert_int_equal(rounds.buckets[1], 1);
	assert_int_equal(rounds.buckets[3], 1);
	assert_true(isinf(histogram_bound(HISTOGRAM_ROUNDS, histogram_bounds(HISTOGRAM_ROUNDS))));
}

static void
burn(double seconds)
{
	struct timespec t;
	double from = -1, now;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		now = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
		from = from < 0 ? now : from;
	} while (now - from < seconds);
}

static void
held(void **state)
{
	struct lock_report r;
	struct lock l;

	(void)state;
	lock_init(&l);
	lock_take(&l);
	burn(0.002);
	lock_release(&l);
	/* Sleeping is no processor time, but it is time. */
	lock_take(&l);
	usleep(20000);
	lock_release(&l);
	lock_take(&l);
	lock_report(&l, &r);
	lock_release(&l);
	assert_int_equal(r.held_seconds.count, 2);
	assert_true(r.held_seconds.sum >= 0.022);
	assert_true(r.held_cpu_seconds_max >= 0.002 && r.held_cpu_seconds_max < 0.020);
	lock_deinit(&l);
}

struct shared {
	struct lock lock;
	atomic_bool waiting;
	bool done;
};

static void *
take_once(void *arg)
{
	struct shared *s = arg;

	atomic_store(&s->waiting, true);
	lock_take(&s->lock);
	s->done = true;
	lock_release(&s->lock);
	return NULL;
}

/* Who waits has it before the other goes on, if that one has had it for its time. */
static void
gives_way(void **state)
{
	struct shared s = {.done = false};
	pthread_t id;

	(void)state;
	lock_init(&s.lock);
	lock_take(&s.lock);
	assert_int_equal(pthread_create(&id, NULL, take_once, &s), 0);
	while (!atomic_load(&s.waiting))
		usleep(1000);
	/* From there to the lock is a moment, or longer where others run. */
	for (unsigned i = 0; i < 6000 && !s.done; i++, usleep(10000))
		lock_give_way(&s.lock);
	assert_true(s.done);
	s.done = false;
	lock_give_way(&s.lock);
	assert_false(s.done);
	lock_release(&s.lock);
	pthread_join(id, NULL);
	lock_deinit(&s.lock);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(buckets),
	    cmocka_unit_test(scales),
	    cmocka_unit_test(held),
	    cmocka_unit_test(gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
