/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "choice.h"

#define DEVICES 8

/* Orders computed apart from this code, by Python's hashlib over FORMAT.md's bytes; device n has an id of 32 bytes n. */
static const struct {
	uint64_t seed, round;
	uint8_t order[DEVICES];
} drawn[] = {
    {7, 3, {7, 4, 3, 1, 8, 6, 2, 5}},
    {7, 4, {6, 5, 1, 7, 2, 3, 4, 8}},
    {UINT64_MAX, 1, {6, 5, 7, 2, 8, 1, 4, 3}},
};

static void
fill(uint8_t (*devices)[32], const uint8_t *numbers)
{
	for (int i = 0; i < DEVICES; i++)
		memset(devices[i], numbers[i], 32);
}

static void
smallest_hash_first(void **state)
{
	static const uint8_t up[DEVICES] = {1, 2, 3, 4, 5, 6, 7, 8};
	uint8_t devices[DEVICES][32], want[DEVICES][32];

	(void)state;
	for (size_t i = 0; i < sizeof(drawn) / sizeof(*drawn); i++) {
		fill(devices, up);
		fill(want, drawn[i].order);
		assert_int_equal(
		    choice_draw(devices, DEVICES, drawn[i].seed, drawn[i].round), ERR_OK);
		assert_memory_equal(devices, want, sizeof(want));
	}
}

/* The order in which devices asked does not count. */
static void
order_of_asking(void **state)
{
	uint8_t devices[DEVICES][32], want[DEVICES][32];

	(void)state;
	fill(want, drawn[0].order);
	fill(devices, drawn[1].order);
	assert_int_equal(choice_draw(devices, DEVICES, 7, 3), ERR_OK);
	assert_memory_equal(devices, want, sizeof(want));
}

/* Who else asks changes who is drawn, never the order of two. */
static void
fewer_askers(void **state)
{
	uint8_t devices[DEVICES][32], want[DEVICES][32];

	(void)state;
	fill(want, drawn[0].order);
	fill(devices, drawn[0].order);
	memmove(devices[2], devices[3], (DEVICES - 3) * sizeof(*devices));
	assert_int_equal(choice_draw(devices, DEVICES - 1, 7, 3), ERR_OK);
	assert_memory_equal(devices, want, 2 * sizeof(*want));
	assert_memory_equal(devices[2], want[3], (DEVICES - 3) * sizeof(*want));
}

static void
nobody(void **state)
{
	(void)state;
	assert_int_equal(choice_draw(NULL, 0, 7, 3), ERR_OK);
}

/* Places computed likewise, of job 16 x 0xaa. */
static void
places_on_the_line(void **state)
{
	static const double want[] = {
	    95.58761426110166, 18.179146814179525, 83.90632205712556, 56.293714748560866};
	uint8_t job[16], device[32];

	(void)state;
	memset(job, 0xaa, sizeof(job));
	for (uint8_t n = 0; n < sizeof(want) / sizeof(*want); n++) {
		memset(device, n + 1, sizeof(device));
		assert_true(choice_percent(job, device) == want[n]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(smallest_hash_first),
	    cmocka_unit_test(order_of_asking),
	    cmocka_unit_test(fewer_askers),
	    cmocka_unit_test(nobody),
	    cmocka_unit_test(places_on_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
