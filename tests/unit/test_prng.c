/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "prng.h"

/* splitmix64 of seed 1234567 (the values in the reference implementation's tests at rosettacode.org). */
static void
seeds_through_splitmix64(void **state)
{
	struct prng r;
	(void)state;

	prng_seed(&r, 1234567);
	assert_true(r.s[0] == 6457827717110365317u);
	assert_true(r.s[1] == 3203168211198807973u);
	assert_true(r.s[2] == 9817491932198370423u);
	assert_true(r.s[3] == 4593380528125082431u);
}

/* xoshiro256++ from the state 1, 2, 3, 4 (the vector of the Rust crate rand_xoshiro). */
static void
known_outputs(void **state)
{
	const uint64_t want[] = {41943041u, 58720359u, 3588806011781223u, 3591011842654386u,
	    9228616714210784205u, 9973669472204895162u, 14011001112246962877u,
	    12406186145184390807u, 15849039046786891736u, 10450023813501588000u};
	struct prng r = {{1, 2, 3, 4}};
	(void)state;

	for (size_t i = 0; i < 10; i++)
		assert_true(prng_u64(&r) == want[i]);
}

/* Frozen: models and codecs in the field depend on these. */
static void
derived_streams_are_frozen(void **state)
{
	struct prng r;
	(void)state;

	prng_seed2(&r, 1, 2);
	uint64_t first = prng_u64(&r);
	assert_true(first == 13502186381601466101u);
	prng_seed2(&r, 2, 1);
	assert_true(prng_u64(&r) == 8918059989756766578u);
}

static void
derived_streams_differ(void **state)
{
	uint64_t seen[400];
	size_t n = 0;
	(void)state;

	for (uint64_t seed = 0; seed < 20; seed++) {
		for (uint64_t stream = 0; stream < 20; stream++) {
			struct prng r;
			prng_seed2(&r, seed, stream);
			seen[n] = prng_u64(&r);
			for (size_t i = 0; i < n; i++)
				assert_true(seen[i] != seen[n]);
			n++;
		}
	}
}

static void
floats(void **state)
{
	struct prng r, same;
	(void)state;

	prng_seed(&r, 5);
	same = r;
	for (int i = 0; i < 1000; i++) {
		uint64_t v = prng_u64(&same);
		assert_true(prng_float(&r) == (float)(v >> 40) / 16777216.0f);
		v = prng_u64(&same);
		assert_true(prng_double(&r) == (double)(v >> 11) / 9007199254740992.0);
	}
	/* The largest outputs stay below one. */
	struct prng top = {{0, 0, 0, UINT64_MAX}};
	for (int i = 0; i < 3; i++)
		assert_true(prng_float(&top) < 1);
}

/* Chi-squared over 64 cells; the seed is fixed, so the test cannot fail by chance. With 63 degrees of freedom
 * a value above 120 has probability 2e-5. */
static double
chi_squared(const unsigned *count, size_t cells, double expected)
{
	double sum = 0;

	for (size_t i = 0; i < cells; i++) {
		double d = (double)count[i] - expected;
		sum += d * d / expected;
	}
	return sum;
}

static void
uniform(void **state)
{
	unsigned below[64] = {0}, real[64] = {0}, real32[64] = {0}, low[64] = {0};
	struct prng r;
	(void)state;

	prng_seed(&r, 2024);
	for (int i = 0; i < 64000; i++) {
		below[prng_below(&r, 64)]++;
		real[(int)(prng_double(&r) * 64)]++;
		real32[(int)(prng_float(&r) * 64)]++;
		low[prng_u64(&r) & 63]++;
	}
	assert_true(chi_squared(below, 64, 1000) < 120);
	assert_true(chi_squared(real, 64, 1000) < 120);
	assert_true(chi_squared(real32, 64, 1000) < 120);
	assert_true(chi_squared(low, 64, 1000) < 120);
}

/* 2^64 mod 3 * 2^62 = 2^62: plain modulo would hit the lowest third twice as often. */
static void
below_has_no_bias(void **state)
{
	const uint64_t n = 3ull << 62;
	unsigned third[3] = {0};
	struct prng r;
	(void)state;

	prng_seed(&r, 9);
	for (int i = 0; i < 30000; i++) {
		uint64_t v = prng_below(&r, n);
		assert_true(v < n);
		third[v >> 62]++;
	}
	assert_true(chi_squared(third, 3, 10000) < 25);
	for (int i = 0; i < 10; i++)
		assert_int_equal(prng_below(&r, 1), 0);
}

/* All 24 orders of four items come up equally often: 23 degrees of freedom. */
static void
shuffle_is_uniform(void **state)
{
	unsigned count[256] = {0}, orders[24];
	size_t kinds = 0;
	struct prng r;
	(void)state;

	prng_seed(&r, 77);
	for (int i = 0; i < 24000; i++) {
		uint32_t items[4] = {0, 1, 2, 3};
		prng_shuffle(&r, items, 4);
		assert_int_equal(1 << items[0] | 1 << items[1] | 1 << items[2] | 1 << items[3], 15);
		count[items[0] << 6 | items[1] << 4 | items[2] << 2 | items[3]]++;
	}
	for (size_t i = 0; i < 256; i++) {
		if (count[i] == 0)
			continue;
		assert_true(kinds < 24);
		orders[kinds++] = count[i];
	}
	assert_int_equal(kinds, 24);
	assert_true(chi_squared(orders, 24, 1000) < 65);
	prng_shuffle(&r, NULL, 0);
}

static void
floats_in_a_row(void **state)
{
	struct prng a, b;
	float x[100];
	(void)state;

	prng_seed(&a, 5);
	prng_seed(&b, 5);
	prng_floats(&a, x, 0);
	prng_floats(&a, x, 100);
	for (size_t i = 0; i < 100; i++)
		assert_true(x[i] == prng_float(&b));
	assert_true(prng_u64(&a) == prng_u64(&b));
}

/* Random123's tests/kat_vectors: counter, key, result. */
static void
philox(void **state)
{
	static const uint32_t rows[][10] = {
	    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
	    {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0x408f276d,
		0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
	    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
		0x94fdcceb, 0x5001e420, 0x24126ea1},
	};
	uint32_t got[4];
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		prng_philox(rows[i], rows[i] + 4, got);
		assert_memory_equal(got, rows[i] + 6, sizeof(got));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(seeds_through_splitmix64),
	    cmocka_unit_test(known_outputs),
	    cmocka_unit_test(derived_streams_are_frozen),
	    cmocka_unit_test(derived_streams_differ),
	    cmocka_unit_test(floats),
	    cmocka_unit_test(floats_in_a_row),
	    cmocka_unit_test(philox),
	    cmocka_unit_test(uniform),
	    cmocka_unit_test(below_has_no_bias),
	    cmocka_unit_test(shuffle_is_uniform),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
