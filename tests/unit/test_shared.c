/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shared.h"

#define READERS 4
#define REPLACED 3000

struct thing {
	unsigned number;
	bool whole;
};

static atomic_int alive;

static struct thing *
thing(unsigned number)
{
	struct thing *t = malloc(sizeof(*t));

	assert_non_null(t);
	*t = (struct thing){number, true};
	atomic_fetch_add(&alive, 1);
	return t;
}

static void
end(void *value)
{
	struct thing *t = value;

	t->whole = false;
	atomic_fetch_sub(&alive, 1);
	free(t);
}

static struct shared *
start(void)
{
	struct shared *s = NULL;

	alive = 0;
	assert_int_equal(shared_new(&s, thing(0), end), ERR_OK);
	return s;
}

static void
replace(struct shared *s, unsigned number)
{
	assert_int_equal(shared_reserve(s), ERR_OK);
	shared_replace(s, thing(number));
}

static void
ends_when_replaced(void **state)
{
	struct shared *s = start();

	(void)state;
	for (unsigned i = 1; i < 10; i++) {
		replace(s, i);
		assert_int_equal(alive, 1);
	}
	shared_free(s);
	assert_int_equal(alive, 0);
}

static void
stays_while_it_is_held(void **state)
{
	struct shared *s = start();

	(void)state;
	const struct thing *first = shared_take(s), *again = shared_take(s);
	assert_ptr_equal(first, again);
	replace(s, 1);
	const struct thing *second = shared_take(s);
	replace(s, 2);
	assert_int_equal(alive, 3);
	assert_true(first->whole && first->number == 0 && second->number == 1);
	shared_give(s, first);
	assert_int_equal(alive, 3);
	shared_give(s, again);
	assert_int_equal(alive, 2);
	shared_give(s, second);
	assert_int_equal(alive, 1);
	shared_give(s, NULL);
	shared_free(s);
	assert_int_equal(alive, 0);
}

static void
values_may_be_the_callers(void **state)
{
	struct thing mine[2] = {{0, true}, {1, true}};
	struct shared *s = NULL;

	(void)state;
	assert_int_equal(shared_new(&s, &mine[0], NULL), ERR_OK);
	assert_int_equal(shared_reserve(s), ERR_OK);
	shared_replace(s, &mine[1]);
	const struct thing *now = shared_take(s);
	assert_ptr_equal(now, &mine[1]);
	shared_give(s, now);
	shared_free(s);
	assert_true(mine[0].whole && mine[1].whole);
}

struct reader {
	struct shared *s;
	pthread_t id;
	atomic_bool *over;
	bool ok;
};

/* Numbers never go back, and what is held is whole. */
static void *
read_all(void *arg)
{
	struct reader *r = arg;
	unsigned last = 0;

	r->ok = true;
	while (!atomic_load(r->over)) {
		const struct thing *t = shared_take(r->s);
		r->ok = r->ok && t->whole && t->number >= last;
		last = t->number;
		shared_give(r->s, t);
	}
	return NULL;
}

static void
many_readers_one_writer(void **state)
{
	struct shared *s = start();
	struct reader readers[READERS];
	atomic_bool over = false;
	int most = 0;

	(void)state;
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.s = s, .over = &over};
		assert_int_equal(pthread_create(&readers[i].id, NULL, read_all, &readers[i]), 0);
	}
	for (unsigned i = 1; i <= REPLACED; i++) {
		replace(s, i);
		int now = atomic_load(&alive);
		most = now > most ? now : most;
	}
	atomic_store(&over, true);
	for (int i = 0; i < READERS; i++) {
		pthread_join(readers[i].id, NULL);
		assert_true(readers[i].ok);
	}
	/* One in use, and one that each reader may still hold. */
	assert_in_range(most, 1, READERS + 1);
	assert_int_equal(alive, 1);
	shared_free(s);
	assert_int_equal(alive, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ends_when_replaced),
	    cmocka_unit_test(stays_while_it_is_held),
	    cmocka_unit_test(values_may_be_the_callers),
	    cmocka_unit_test(many_readers_one_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
