/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "recipe.h"

static void
subset(void **state)
{
	(void)state;
	static const uint32_t pick[] = {2, 0}, bad[] = {0, 3};
	static const uint8_t bytes[18] = {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 250};
	struct dataset d, s;

	d = (struct dataset){.count = 3, .features = 6, .classes = 256};
	d.bytes = malloc(18);
	d.labels = malloc(3 * sizeof(*d.labels));
	memcpy(d.bytes, bytes, sizeof(bytes));
	memcpy(d.labels, (int32_t[]){7, 0, 255}, 3 * sizeof(*d.labels));
	assert_int_equal(dataset_subset(&s, &d, pick, 2), ERR_OK);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.classes, 256);
	assert_int_equal(s.bytes[0], 250);
	assert_int_equal(s.bytes[6], 0);
	assert_int_equal(s.labels[0], 255);
	assert_int_equal(s.labels[1], 7);
	dataset_deinit(&s);
	assert_int_equal(dataset_subset(&s, &d, bad, 2), ERR_INVALID);
	assert_int_equal(dataset_subset(&s, &d, NULL, 0), ERR_OK);
	assert_int_equal(s.count, 0);
	dataset_deinit(&s);
	dataset_deinit(&d);
}

/* Every byte value, for widths around the vectorised step, against the formula in plain scalar code. */
static void
fill_bytes(void **state)
{
	(void)state;
	static uint8_t bytes[600];
	static float out[300 + 1];
	struct data_spec spec = {.channels = 1, .mean = {0.1307f}, .std = {0.3081f}};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t width = 1; width <= 300; width++) {
		struct dataset d = {.count = 2, .features = width, .bytes = bytes};
		out[width] = 77;
		for (int with = 0; with < 2; with++) {
			dataset_fill(&d, with ? &spec : NULL, 1, out);
			for (size_t i = 0; i < width; i++) {
				volatile float x = (float)bytes[width + i] / 255.0f;
				volatile float centred = x - 0.1307f;
				assert_true(out[i] == (with ? centred / 0.3081f : x));
			}
		}
		assert_true(out[width] == 77);
	}
}

static void
fill_floats(void **state)
{
	(void)state;
	static float values[] = {1, 2, 3, 4, 5, 6};
	struct dataset d = {
	    .count = 1, .shape = {3, 1, 2}, .dims = 3, .features = 6, .floats = values};
	struct data_spec spec = {.channels = 3, .mean = {1, 2, 3}, .std = {1, 2, 0.5f}};
	float out[6];

	dataset_fill(&d, NULL, 0, out);
	assert_memory_equal(out, values, sizeof(out));
	dataset_fill(&d, &spec, 0, out);
	assert_memory_equal(out, ((float[]){0, 1, 0.5f, 1, 4, 6}), sizeof(out));
}

static void
shapes(void **state)
{
	static const struct {
		unsigned have, want;
		uint32_t here[3], there[3];
		bool fits;
	} rows[] = {{1, 0, {6, 1, 1}, {0}, true}, {1, 1, {6, 1, 1}, {6, 0, 0}, true},
	    {3, 3, {1, 2, 3}, {1, 2, 3}, true}, {3, 3, {2, 3, 1}, {1, 2, 3}, false},
	    {3, 2, {1, 2, 3}, {2, 3, 0}, true}, {3, 2, {1, 3, 2}, {2, 3, 0}, false},
	    {3, 2, {2, 2, 3}, {2, 3, 0}, false}, {1, 2, {6, 1, 1}, {2, 3, 0}, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dataset d = {.dims = rows[i].have};
		struct data_spec spec = {.dims = rows[i].want};
		memcpy(d.shape, rows[i].here, sizeof(d.shape));
		memcpy(spec.shape, rows[i].there, sizeof(spec.shape));
		assert_true(dataset_shape_fits(&d, &spec) == rows[i].fits);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(subset),
	    cmocka_unit_test(fill_bytes),
	    cmocka_unit_test(fill_floats),
	    cmocka_unit_test(shapes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
