/* stages: gcc openssl address */
/* The simulation's clock: random events come out in the order of time, kind and device, whatever order they went in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "heap.h"
#include "prng.h"

static bool
after(const struct simulate_event *a, const struct simulate_event *b)
{
	if (a->us != b->us)
		return a->us > b->us;
	if (a->kind != b->kind)
		return a->kind > b->kind;
	return a->device > b->device;
}

static void
test_order(void **state)
{
	struct simulate_heap h = {.count = 0};
	struct simulate_event e, before = {.us = 0};
	struct prng r;

	(void)state;
	prng_seed(&r, 5);
	for (size_t in = 0, out = 0; out < 5000;) {
		if (in < 5000 && prng_below(&r, 3) > 0) {
			/* Nothing happens before what has happened. */
			e = (struct simulate_event){.us = before.us + prng_below(&r, 40),
			    .kind = (enum simulate_kind)prng_below(&r, 4),
			    .device = (size_t)prng_below(&r, 50)};
			if (after(&before, &e))
				continue;
			assert_int_equal(simulate_heap_add(&h, &e), ERR_OK);
			in++;
		} else if (h.count > 0) {
			uint64_t next = simulate_heap_next(&h);
			assert_true(simulate_heap_take(&h, &e));
			assert_int_equal(e.us, next);
			assert_false(after(&before, &e));
			before = e;
			out++;
		}
	}
	assert_false(simulate_heap_take(&h, &e));
	assert_true(simulate_heap_next(&h) == UINT64_MAX);
	simulate_heap_deinit(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
