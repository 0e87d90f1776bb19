#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "dataset.h"

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(subset),
	    cmocka_unit_test(fill_bytes),
	    cmocka_unit_test(fill_floats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
