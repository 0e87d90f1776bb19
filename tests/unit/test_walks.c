/* stages: gcc openssl address thread */
/* One walk of an identity at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "walks.h"

#define CROWD 20

static void
one_at_a_time(void **state)
{
	uint8_t a[32] = {1}, b[32] = {2}, c[32] = {0};
	struct walks *w = NULL;

	(void)state;
	assert_int_equal(walks_new(&w), ERR_OK);
	assert_true(walks_enter(w, b));
	assert_true(walks_enter(w, a));
	assert_true(walks_enter(w, c));
	assert_false(walks_enter(w, a));
	assert_false(walks_enter(w, b));
	walks_leave(w, a);
	assert_true(walks_enter(w, a));
	walks_leave(w, c);
	walks_leave(w, c);
	assert_false(walks_enter(w, b));
	assert_true(walks_enter(w, c));
	walks_free(w);
	assert_true(walks_enter(NULL, a));
	assert_true(walks_enter(NULL, a));
	walks_leave(NULL, a);
	walks_free(NULL);
}

struct crowd {
	struct walks *w;
	pthread_barrier_t start;
};

static void *
enter(void *arg)
{
	static const uint8_t who[32] = {7};
	struct crowd *c = arg;

	pthread_barrier_wait(&c->start);
	return walks_enter(c->w, who) ? arg : NULL;
}

static void
all_at_once(void **state)
{
	pthread_t threads[CROWD];
	struct crowd c;
	unsigned walking = 0;

	(void)state;
	assert_int_equal(walks_new(&c.w), ERR_OK);
	assert_int_equal(pthread_barrier_init(&c.start, NULL, CROWD), 0);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, enter, &c), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		void *entered;
		pthread_join(threads[i], &entered);
		walking += entered != NULL;
	}
	assert_int_equal(walking, 1);
	pthread_barrier_destroy(&c.start);
	walks_free(c.w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_at_a_time),
	    cmocka_unit_test(all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
