/* stages: gcc clang address */
/* Work by measured speed: a device's, and a fleet's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "throughput.h"

static void
the_median_of_the_last_five(void **state)
{
	struct throughput s = {.count = 0};

	(void)state;
	assert_true(throughput_median(&s) == 0);
	throughput_note(&s, 0, 1);
	assert_true(throughput_median(&s) == 0);
	throughput_note(&s, 10, 1);
	assert_true(throughput_median(&s) == 10);
	throughput_note(&s, 30, 1);
	assert_true(throughput_median(&s) == 20);
	/* One that slept changes nothing once there are others. */
	throughput_note(&s, 10, 1000);
	assert_true(throughput_median(&s) == 10);
	throughput_note(&s, 12, 1);
	throughput_note(&s, 14, 1);
	assert_true(throughput_median(&s) == 12);
	/* The sixth takes the place of the first. */
	throughput_note(&s, 100, 1);
	assert_true(throughput_median(&s) == 14);
	for (int i = 0; i < 5; i++)
		throughput_note(&s, 3, 0);
	assert_true(throughput_median(&s) == 3000);
}

static void
steps_within_bounds(void **state)
{
	const struct local_spec local = {
	    .unit = LOCAL_SIZED, .target_s = 30, .min_steps = 20, .max_steps = 2000};
	static const struct {
		double per_s;
		uint64_t steps;
	} rows[] = {
	    {0, 20}, {0.1, 20}, {0.7, 21}, {10, 300}, {66.5, 1995}, {67, 2000}, {1e300, 2000}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct throughput s = {.recent = {rows[i].per_s}, .count = rows[i].per_s > 0};
		struct throughput_fleet none = {.count = 0},
					alike = {.round = 1, .speed = rows[i].per_s},
					fifty = {.round = 1, .speed = 50};
		assert_int_equal(throughput_steps(&none, 1, &local, &s), rows[i].steps);
		/* As fast as others are, while it was not measured itself. */
		const struct throughput unknown = {.count = 0};
		assert_int_equal(throughput_steps(&alike, 1, &local, &unknown), rows[i].steps);
		assert_int_equal(
		    throughput_steps(&fifty, 1, &local, &s), s.count ? rows[i].steps : 1500);
	}
}

/* The median of the devices, each with its own, as it was when a round was first asked about. */
static void
the_median_of_a_fleet(void **state)
{
	struct throughput devices[101] = {{.count = 0}};
	struct throughput_fleet f = {.count = 0};

	(void)state;
	assert_true(throughput_fleet_speed(&f, 1) == 0);
	assert_int_equal(throughput_fleet_note(&f, &devices[0], 0, 1), ERR_OK);
	assert_int_equal(f.count, 0);
	assert_int_equal(throughput_fleet_note(&f, &devices[0], 8, 1), ERR_OK);
	assert_true(throughput_fleet_speed(&f, 1) == 0);
	assert_true(throughput_fleet_speed(&f, 2) == 8);
	assert_true(throughput_fleet_speed(&f, 1) == 8);
	for (int again = 0; again < 7; again++)
		for (size_t i = 0; i < 101; i++)
			assert_int_equal(
			    throughput_fleet_note(&f, &devices[i], 1 + (i * 37) % 101, 1), ERR_OK);
	assert_int_equal(f.count, 101);
	for (size_t i = 1; i < f.count; i++)
		assert_true(f.sorted[i - 1] <= f.sorted[i]);
	assert_true(throughput_fleet_speed(&f, 2) == 8 && throughput_fleet_speed(&f, 3) == 51);
	/* A hundred devices' worth of one that is asked more often moves nothing. */
	for (int again = 0; again < 100; again++)
		assert_int_equal(throughput_fleet_note(&f, &devices[100], 1000, 1), ERR_OK);
	assert_int_equal(f.count, 101);
	assert_in_range(throughput_fleet_speed(&f, 4), 51, 52);
	for (size_t i = 0; i < 101; i++)
		throughput_fleet_drop(&f, &devices[i]);
	assert_int_equal(f.count, 0);
	assert_true(throughput_fleet_speed(&f, 5) == 0);
	throughput_fleet_drop(&f, &devices[0]);
	throughput_fleet_deinit(&f);
}

/* Read at once or noted one after the other, it is the same fleet. */
static void
a_fleet_that_is_read(void **state)
{
	enum { MANY = 2000 };
	static struct throughput devices[MANY];
	struct throughput_fleet noted = {.count = 0}, read = {.count = 0};
	uint64_t x = 7;

	(void)state;
	memset(devices, 0, sizeof(devices));
	for (size_t i = 0; i < (size_t)MANY * 7; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		/* Some twice as often as others, some never. */
		const size_t device = (x >> 33) % (MANY - 1);
		assert_int_equal(
		    throughput_fleet_note(&noted, &devices[device], (x >> 20) % 300, 1), ERR_OK);
	}
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(throughput_fleet_add(&read, &devices[i]), ERR_OK);
	throughput_fleet_order(&read);
	assert_int_equal(read.count, noted.count);
	assert_in_range(read.count, MANY / 2, MANY - 1);
	assert_memory_equal(read.sorted, noted.sorted, read.count * sizeof(double));
	assert_true(throughput_fleet_speed(&read, 1) == throughput_fleet_speed(&noted, 1));
	/* And goes on like it. */
	for (size_t i = 0; i < MANY; i += 3) {
		struct throughput as_read = devices[i];
		throughput_fleet_drop(&read, &as_read);
		throughput_fleet_drop(&noted, &devices[i]);
	}
	assert_int_equal(read.count, noted.count);
	assert_memory_equal(read.sorted, noted.sorted, read.count * sizeof(double));
	throughput_fleet_deinit(&read);
	throughput_fleet_deinit(&noted);
	throughput_fleet_order(&read);
	assert_true(throughput_fleet_speed(&read, 1) == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_median_of_the_last_five),
	    cmocka_unit_test(steps_within_bounds),
	    cmocka_unit_test(the_median_of_a_fleet),
	    cmocka_unit_test(a_fleet_that_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
