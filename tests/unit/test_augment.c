/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "augment.h"
#include "draw.h"
#include "recipe.h"

enum { CHANNELS = 2, HEIGHT = 5, WIDTH = 7, PLANE = HEIGHT * WIDTH, ALL = CHANNELS * PLANE };

static const uint32_t shape[3] = {CHANNELS, HEIGHT, WIDTH};
static float plain[ALL], x[ALL], scratch[ALL];

static int
set_up(void **state)
{
	(void)state;
	for (int i = 0; i < ALL; i++)
		plain[i] = (float)(i + 1);
	return 0;
}

static void
change(const struct augment_spec *a, uint64_t step, uint64_t example)
{
	const struct draw draw = {.seed = 77, .step = step, .micro_batch = 3};

	memcpy(x, plain, sizeof(x));
	augment_example(a, shape, &draw, example, x, scratch);
}

/* About half of them are mirrored, the others as they were. */
static void
flips(void **state)
{
	const struct augment_spec a = {.flip = true};
	int mirrored = 0;

	(void)state;
	for (uint64_t n = 0; n < 400; n++) {
		change(&a, n / 20, n % 20);
		bool is = x[0] != plain[0];
		for (int i = 0; i < ALL; i++) {
			int row = i / WIDTH * WIDTH, at = i % WIDTH;
			assert_true(x[i] == plain[row + (is ? WIDTH - 1 - at : at)]);
		}
		mirrored += is;
	}
	assert_in_range(mirrored, 160, 240);
}

/* Every shift within the bound comes, and none beyond; all channels move together. */
static void
crops(void **state)
{
	const struct augment_spec a = {.crop = 2};
	bool seen[5][5] = {{false}};

	(void)state;
	for (uint64_t n = 0; n < 2000; n++) {
		int found = 0;
		change(&a, n, 0);
		for (int down = -2; down <= 2; down++)
			for (int right = -2; right <= 2; right++) {
				bool same = true;
				for (int i = 0; i < ALL; i++) {
					int c = i / PLANE, from_y = i % PLANE / WIDTH - down,
					    from_x = i % WIDTH - right;
					bool inside = from_y >= 0 && from_y < HEIGHT &&
					    from_x >= 0 && from_x < WIDTH;
					float want =
					    inside ? plain[c * PLANE + from_y * WIDTH + from_x] : 0;
					same = same && x[i] == want;
				}
				found += same;
				seen[down + 2][right + 2] |= same;
			}
		assert_int_equal(found, 1);
	}
	for (int i = 0; i < 25; i++)
		assert_true(seen[i / 5][i % 5]);
}

/* The whole width and height: nothing may be left of the picture, and nothing beyond it is touched. */
static void
largest(void **state)
{
	const struct augment_spec a = {.crop = 5, .cutout = 5, .flip = true};
	float guarded[ALL + 2];
	const struct draw draw = {.seed = 1};

	(void)state;
	guarded[0] = guarded[ALL + 1] = 99;
	for (uint64_t n = 0; n < 500; n++) {
		memcpy(guarded + 1, plain, sizeof(plain));
		augment_example(&a, shape, &draw, n, guarded + 1, scratch);
		assert_true(guarded[0] == 99 && guarded[ALL + 1] == 99);
	}
}

static void
noises(void **state)
{
	const struct augment_spec a = {.noise = 0.5};
	double sum = 0, squares = 0;
	int n = 0;

	(void)state;
	for (uint64_t step = 0; step < 500; step++) {
		change(&a, step, step % 7);
		for (int i = 0; i < ALL; i++, n++) {
			double d = (double)(x[i] - plain[i]);
			sum += d;
			squares += d * d;
		}
	}
	assert_true(fabs(sum / n) < 0.01);
	assert_true(fabs(sqrt(squares / n) - 0.5) < 0.01);
}

static void
cuts(void **state)
{
	const struct augment_spec a = {.cutout = 3};
	int most = 0;

	(void)state;
	for (uint64_t n = 0; n < 500; n++) {
		int holes = 0;
		change(&a, n, 1);
		for (int i = 0; i < PLANE; i++) {
			holes += x[i] == 0;
			assert_true((x[i] == 0) == (x[i + PLANE] == 0));
			assert_true(x[i] == 0 || x[i] == plain[i]);
		}
		assert_in_range(holes, 4, 9);
		most = holes > most ? holes : most;
	}
	assert_int_equal(most, 9);
}

/* What a place gives is its own: it hangs on no other, in no order. */
static void
by_place(void **state)
{
	const struct augment_spec a = {.flip = true, .crop = 2, .noise = 0.1, .cutout = 2};
	float first[ALL];

	(void)state;
	change(&a, 5, 2);
	memcpy(first, x, sizeof(x));
	change(&a, 5, 3);
	assert_memory_not_equal(first, x, sizeof(x));
	change(&a, 6, 2);
	assert_memory_not_equal(first, x, sizeof(x));
	change(&a, 5, 2);
	assert_memory_equal(first, x, sizeof(x));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(flips),
	    cmocka_unit_test(crops),
	    cmocka_unit_test(largest),
	    cmocka_unit_test(noises),
	    cmocka_unit_test(cuts),
	    cmocka_unit_test(by_place),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
