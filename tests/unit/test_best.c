/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "best.h"

static struct best_point
point(uint8_t model, double value)
{
	struct best_point p = {.value = value, .round = model};

	memset(p.model, model, sizeof(p.model));
	return p;
}

static bool
step(struct best *b, const struct monitor_spec *m, uint32_t room, uint8_t model, double value)
{
	const struct best_point p = point(model, value);

	return best_step(b, m, room, &p);
}

static void
is(const struct best *b, const char *models)
{
	char got[BEST_MAX + 1] = "";

	for (uint32_t i = 0; i < b->count; i++)
		got[i] = (char)('0' + b->points[i].model[0]);
	assert_string_equal(got, models);
}

static void
the_best_first(void **state)
{
	const struct monitor_spec rises = {.metric = MONITOR_ACCURACY, .rises = true};
	struct best b = {.count = 0};

	(void)state;
	assert_true(step(&b, &rises, 3, 1, 0.5));
	assert_true(step(&b, &rises, 3, 2, 0.7));
	/* Of equals the older stays before. */
	assert_true(step(&b, &rises, 3, 3, 0.7));
	is(&b, "231");
	assert_false(step(&b, &rises, 3, 4, 0.5));
	assert_true(step(&b, &rises, 3, 5, 0.6));
	is(&b, "235");
	assert_false(step(&b, &rises, 3, 6, NAN));
	/* Measured again, a model counts by the newer figure. */
	assert_true(step(&b, &rises, 3, 2, 0.1));
	is(&b, "352");
	assert_true(best_holds(&b, b.points[2].model));
	const struct best_point gone = point(1, 0);
	assert_false(best_holds(&b, gone.model));
}

static void
less_is_better(void **state)
{
	const struct monitor_spec falls = {.metric = MONITOR_OWN, .rises = false};
	const struct monitor_spec none = {.metric = MONITOR_NONE};
	struct best b = {.count = 0};

	(void)state;
	assert_false(step(&b, &none, 1, 1, 3));
	assert_true(step(&b, &falls, 1, 1, 3));
	assert_false(step(&b, &falls, 1, 2, 3));
	assert_false(step(&b, &falls, 1, 2, INFINITY));
	assert_true(step(&b, &falls, 1, 3, -2));
	is(&b, "3");
}

static void
never_more_than_room(void **state)
{
	const struct monitor_spec rises = {.metric = MONITOR_ACCURACY, .rises = true};
	struct best b = {.count = 0};

	(void)state;
	for (uint8_t i = 1; i < 100; i++)
		step(&b, &rises, BEST_MAX, i, i % 10);
	assert_int_equal(b.count, BEST_MAX);
	for (uint32_t i = 1; i < BEST_MAX; i++)
		assert_true(b.points[i - 1].value >= b.points[i].value);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_best_first),
	    cmocka_unit_test(less_is_better),
	    cmocka_unit_test(never_more_than_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
