/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "num.h"

static void
whole_numbers(void **state)
{
	const char *bad[] = {"", "-1", "+1", " 1", "1 ", "0x10", "1e3", "1.0",
	    "18446744073709551616", "99999999999999999999999", "/", ":", "\xb2"};
	uint64_t v = 42;
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(num_u64(bad[i], UINT64_MAX, &v));
		assert_int_equal(v, 42);
	}
	assert_true(num_u64("0", 0, &v) && v == 0);
	assert_true(num_u64("18446744073709551615", UINT64_MAX, &v) && v == UINT64_MAX);
	assert_true(num_u64("007", 9, &v) && v == 7);
	v = 42;
	assert_false(num_u64("1", 0, &v));
	assert_int_equal(v, 42);
}

/* Every number against every small maximum, compared with plain arithmetic. */
static void
maximum_is_exact(void **state)
{
	(void)state;
	for (uint64_t max = 0; max < 130; max++) {
		for (uint64_t n = 0; n < 1500; n += n < 140 ? 1 : 97) {
			char text[24];
			uint64_t v = 9999;
			snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
			assert_int_equal(num_u64(text, max, &v), n <= max);
			assert_int_equal(v, n <= max ? n : 9999);
		}
	}
}

/* What it takes, it reads as num_double does, to the bit, and nothing behind the length. */
static void
short_doubles(void **state)
{
	static const char *const others[] = {"", "-", ".", "-.", "1e5", "1..2", "--1", " 1", "1 ",
	    "9007199254740993", "0.12345678901234567", "1.00000000000000000000000"};
	char text[40];
	double v = 42, slow;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(num_short(others[i], strlen(others[i]), &v));
	assert_true(v == 42);
	assert_true(num_short("-0.5x", 4, &v) && v == -0.5);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned long long whole =
		    (unsigned long long)rand() * (unsigned)rand() % 90071992547;
		snprintf(text, sizeof(text), "%s%llu.%0*d", i % 2 ? "-" : "",
		    whole % (1 + i * 5000ull), (int)(i % 6), rand() % 10000);
		assert_true(num_double(text, &slow));
		if (num_short(text, strlen(text), &v))
			assert_memory_equal(&v, &slow, sizeof(v));
		else
			assert_true(strlen(text) > 16);
	}
}

static void
doubles(void **state)
{
	const char *bad[] = {"", "-", ".", "e5", "1e", "1 ", " 1", "nan", "inf", "-inf", "0x1p3",
	    "1e999", "-1e999", "1,5", "1.5.2", "--1", "1e5e5", "1f"};
	double v = 42;
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(num_double(bad[i], &v));
		assert_true(v == 42);
	}
	assert_true(num_double("0.1", &v) && v == 0.1);
	assert_true(num_double("-1.5e-3", &v) && v == -0.0015);
	assert_true(num_double("+7", &v) && v == 7);
	assert_true(num_double("1.7976931348623157e308", &v) && v == DBL_MAX);
	assert_true(num_double("1e-999", &v) && v == 0);
}

/* Under a locale with a decimal comma, text from configuration files still means the same. */
static void
doubles_in_any_locale(void **state)
{
	const char *names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR"};
	const char *set = NULL;
	double v = 0;
	(void)state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !set; i++)
		set = setlocale(LC_NUMERIC, names[i]);
	if (!set)
		skip();
	bool good = num_double("1.5", &v) && v == 1.5 && !num_double("1,5", &v);
	setlocale(LC_NUMERIC, "C");
	assert_true(good);
}

static void
byte_sizes(void **state)
{
	const char *bad[] = {"", "K", "1T", "1KB", "1.5M", "-1K", "1 K", "17179869184G",
	    "18014398509481984K", "00000000000000000000000000001"};
	uint64_t v = 42;
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(num_bytes(bad[i], &v));
		assert_int_equal(v, 42);
	}
	assert_true(num_bytes("17", &v) && v == 17);
	assert_true(num_bytes("2K", &v) && v == 2048);
	assert_true(num_bytes("3m", &v) && v == 3u << 20);
	assert_true(num_bytes("4G", &v) && v == 4ull << 30);
	assert_true(num_bytes("17179869183G", &v) && v == 17179869183ull << 30);
	assert_true(num_bytes("18446744073709551615", &v) && v == UINT64_MAX);
}

static void
times(void **state)
{
	const char *bad[] = {"", "s", "1w", "1.5h", "-1d", "1 d", "d1", "213503982334602d",
	    "00000000000000000000000001"};
	uint64_t v = 42;
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(num_seconds(bad[i], &v));
		assert_int_equal(v, 42);
	}
	assert_true(num_seconds("17", &v) && v == 17);
	assert_true(num_seconds("0", &v) && v == 0);
	assert_true(num_seconds("90s", &v) && v == 90);
	assert_true(num_seconds("3m", &v) && v == 180);
	assert_true(num_seconds("12h", &v) && v == 43200);
	assert_true(num_seconds("365d", &v) && v == 31536000);
	assert_true(num_seconds("213503982334601d", &v) && v == 213503982334601ull * 86400);
}

static void
sums_and_products_do_not_wrap(void **state)
{
	size_t v = 42;
	(void)state;

	assert_false(num_mul(SIZE_MAX, 2, &v));
	assert_false(num_mul(SIZE_MAX / 2 + 1, 2, &v));
	assert_false(num_add(SIZE_MAX, 1, &v));
	assert_true(num_mul(SIZE_MAX, 1, &v) && v == SIZE_MAX);
	assert_true(num_round_up(0, 16, &v) && v == 0);
	assert_true(num_round_up(17, 16, &v) && v == 32);
	assert_true(num_round_up(SIZE_MAX - 15, 16, &v) && v == SIZE_MAX - 15);
	assert_false(num_round_up(SIZE_MAX - 14, 16, &v));
	assert_true(num_mul(0, SIZE_MAX, &v) && v == 0);
	assert_true(num_mul(12345, 54321, &v) && v == 670592745u);
	assert_true(num_add(SIZE_MAX - 1, 1, &v) && v == SIZE_MAX);
}

struct pair {
	double a, b;
};

/* Two at once, from memory to memory: without a call between, gcc 12 leaves both as they were. */
static void
floats_hold_less(void **state)
{
	static const struct pair from = {1.0 / 3, 1.0 / 7};
	volatile struct pair known = from;
	struct pair now = {known.a, known.b};
	struct pair *to = malloc(sizeof(*to));

	(void)state;
	assert_non_null(to);
	*to = (struct pair){.a = num_single(now.a), .b = num_single(now.b)};
	assert_true(to->a == 0x1.555556p-2 && to->b == 0x1.24924ap-3);
	assert_true(num_single(1.0 / 3) == 0x1.555556p-2 && num_single(1.5) == 1.5);
	free(to);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(whole_numbers),
	    cmocka_unit_test(maximum_is_exact),
	    cmocka_unit_test(short_doubles),
	    cmocka_unit_test(doubles),
	    cmocka_unit_test(doubles_in_any_locale),
	    cmocka_unit_test(byte_sizes),
	    cmocka_unit_test(times),
	    cmocka_unit_test(sums_and_products_do_not_wrap),
	    cmocka_unit_test(floats_hold_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
