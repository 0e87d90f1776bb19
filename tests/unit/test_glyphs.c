/* stages: gcc clang address */
/* The drawn data set: the same bytes on every machine, hands of their own, every digit in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fingerprint.h"
#include "glyphs.h"
#include "shapes.h"

#define PIXELS (GLYPHS_SIDE * GLYPHS_SIDE)

/* The number was computed once: see glyphs.h for the promise. */
static void
same_bytes_everywhere(void **state)
{
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 42, 7, 500, 0), ERR_OK);
	assert_int_equal(d.count, 500);
	assert_int_equal(d.features, PIXELS);
	assert_int_equal(d.classes, 10);
	uint64_t print = fingerprint(d.bytes, d.count * PIXELS);
	dataset_deinit(&d);
	if (print != 0xa0091006be19800au)
		fail_msg("fingerprint 0x%016llx", (unsigned long long)print);
}

/* A shorter set is the beginning of a longer one; a mixed set takes its hands in turn. */
static void
prefixes(void **state)
{
	struct dataset a, b, mixed;

	(void)state;
	assert_int_equal(glyphs_make(&a, 1, 5, 100, 0), ERR_OK);
	assert_int_equal(glyphs_make(&b, 1, 5, 30, 0), ERR_OK);
	assert_memory_equal(a.bytes, b.bytes, 30 * PIXELS);
	assert_memory_equal(a.labels, b.labels, 30 * sizeof(int32_t));
	assert_int_equal(glyphs_mixed(&mixed, 1, 4, 3, 31), ERR_OK);
	assert_int_equal(mixed.count, 31);
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(mixed.labels[3 * i + 1], a.labels[i]);
		assert_memory_equal(
		    mixed.bytes + (3 * i + 1) * PIXELS, a.bytes + i * PIXELS, PIXELS);
	}
	dataset_deinit(&a);
	dataset_deinit(&b);
	dataset_deinit(&mixed);
	assert_int_equal(glyphs_mixed(&mixed, 1, 4, 50, 7), ERR_OK);
	dataset_deinit(&mixed);
}

static void
hands_differ(void **state)
{
	struct dataset a, b;

	(void)state;
	assert_int_equal(glyphs_make(&a, 1, 5, 50, 0), ERR_OK);
	assert_int_equal(glyphs_make(&b, 1, 6, 50, 0), ERR_OK);
	assert_memory_not_equal(a.bytes, b.bytes, 50 * PIXELS);
	dataset_deinit(&b);
	assert_int_equal(glyphs_make(&b, 2, 5, 50, 0), ERR_OK);
	assert_memory_not_equal(a.bytes, b.bytes, 50 * PIXELS);
	dataset_deinit(&a);
	dataset_deinit(&b);
}

/* Every picture has ink, and paper around it: nothing is cut off at the border but a stroke's edge. */
static void
pictures(void **state)
{
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_mixed(&d, 3, 0, 200, 2000), ERR_OK);
	size_t border = 0;
	for (size_t i = 0; i < d.count; i++) {
		const uint8_t *p = d.bytes + i * PIXELS;
		size_t ink = 0, edge = 0;
		for (size_t k = 0; k < PIXELS; k++) {
			size_t x = k % GLYPHS_SIDE, y = k / GLYPHS_SIDE;
			ink += p[k] > 128;
			edge += p[k] > 128 && (x == 0 || y == 0 || x == 27 || y == 27);
		}
		assert_in_range(ink, 12, 330);
		border += edge > 0;
	}
	assert_true(border < d.count / 50);
	dataset_deinit(&d);
}

static void
count_classes(double skew, size_t counts[10])
{
	struct dataset d;

	memset(counts, 0, 10 * sizeof(*counts));
	assert_int_equal(glyphs_make(&d, 1, 3, 1000, skew), ERR_OK);
	for (size_t i = 0; i < 1000; i++)
		counts[d.labels[i]]++;
	dataset_deinit(&d);
}

static void
skew(void **state)
{
	size_t counts[10], used = 0, large = 0;

	(void)state;
	count_classes(0, counts);
	for (size_t i = 0; i < 10; i++)
		assert_in_range(counts[i], 60, 140);
	count_classes(1, counts);
	for (size_t i = 0; i < 10; i++) {
		used += counts[i] > 0;
		large += counts[i] > 400;
	}
	assert_int_equal(used, 2);
	assert_int_equal(large, 2);
	count_classes(0.5, counts);
	for (size_t i = 0, n = 0; i < 10; i++) {
		n += counts[i] > 200;
		assert_true(counts[i] > 20);
		assert_true(i < 9 || n == 2);
	}
}

/* The table itself: each way ends its last stroke and stays within its box. */
static void
shapes(void **state)
{
	(void)state;
	for (size_t d = 0; d < 10; d++) {
		assert_in_range(shapes_digits[d].ways, 1, SHAPES_WAYS_MAX);
		for (size_t w = 0; w < shapes_digits[d].ways; w++) {
			const struct shapes_way *way = &shapes_digits[d].way[w];
			assert_in_range(way->count, 2, SHAPES_POINTS_MAX);
			uint8_t last = way->points[way->count - 1].kind;
			assert_true(last == SHAPES_END || last == SHAPES_CLOSE);
			for (size_t i = 0; i < way->count; i++)
				assert_true(way->points[i].x <= 100 && way->points[i].y <= 100);
		}
	}
}

static void
failures(void **state)
{
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 1, 0, 0), ERR_INVALID);
	assert_int_equal(glyphs_make(&d, 1, 1, 10, -0.1), ERR_INVALID);
	assert_int_equal(glyphs_make(&d, 1, 1, 10, 1.1), ERR_INVALID);
	assert_int_equal(glyphs_make(&d, 1, 1, 10, (double)NAN), ERR_INVALID);
	assert_int_equal(glyphs_make(&d, 1, 1, UINT32_MAX, 0), ERR_LIMIT);
	assert_int_equal(glyphs_mixed(&d, 1, 1, 0, 10), ERR_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(same_bytes_everywhere),
	    cmocka_unit_test(prefixes),
	    cmocka_unit_test(hands_differ),
	    cmocka_unit_test(pictures),
	    cmocka_unit_test(skew),
	    cmocka_unit_test(shapes),
	    cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
