/* stages: gcc clang address */
/* FedNova's scaling by hand; what it does to a training stands in test_quadratic.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "normalise.h"
#include "rule.h"
#include "tensor.h"

#define ELEMENTS 8

static float deltas[3][ELEMENTS];

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	(void)context;
	memcpy(out, deltas[delta] + first, count * sizeof(*out));
	return delta < 2 ? ERR_OK : ERR_CORRUPT;
}

/* "w" has elements 0 to 4, "mean" 5 and 6, "v" 7. */
static void
make_table(struct tensor_table *table, bool averages)
{
	static const uint64_t five[] = {5}, two[] = {2}, one[] = {1};
	static const struct tensor_rule rules[] = {{"mean", TENSOR_AVERAGE}};

	*table = (struct tensor_table){.items = NULL};
	assert_int_equal(tensor_table_add(table, "w", five, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(table, "mean", two, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(table, "v", one, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(table, rules, averages ? 1 : 0, NULL), ERR_OK);
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < ELEMENTS; k++)
			deltas[i][k] = (float)(i + 1) * (float)(k + 1);
}

/* Weights 1 and 3, normalisers 2 and 10: t = (2 + 30) / 4 = 8, factors 4 and 0.8. */
static void
scales(void **state)
{
	static const double weights[] = {1, 3}, normalisers[] = {2, 10};
	const float factors[] = {4, 0.8f};
	const struct rule_input in = {
	    .read_tile = read_tile, .elements = ELEMENTS, .deltas = 2, .weights = weights};
	struct tensor_table table;
	struct normalise *n;

	(void)state;
	for (int averages = 0; averages < 2; averages++) {
		make_table(&table, averages);
		assert_int_equal(
		    normalise_new(
			&n, &in, &(struct normalise_by){.normalisers = normalisers}, &table, NULL),
		    ERR_OK);
		struct rule_input scaled = normalise_input(n);
		assert_ptr_equal(scaled.weights, weights);
		for (size_t i = 0; i < 2; i++)
			for (size_t first = 0; first < ELEMENTS; first++) {
				float got[ELEMENTS];
				size_t count = ELEMENTS - first > 3 ? 3 : ELEMENTS - first;
				assert_int_equal(
				    scaled.read_tile(scaled.context, i, first, count, got), ERR_OK);
				for (size_t k = 0; k < count; k++) {
					bool mean = averages && (first + k == 5 || first + k == 6);
					assert_true(got[k] ==
					    deltas[i][first + k] * (mean ? 1 : factors[i]));
				}
			}
		normalise_free(n);
		tensor_table_deinit(&table);
	}
}

/* No delta counts for more than `most` times what it is; those that count for less than themselves stay. */
static void
bounds(void **state)
{
	static const double weights[] = {1, 3}, normalisers[] = {2, 10};
	static const struct {
		double most;
		float factor;
	} rows[] = {{-1, 4}, {0, 4}, {5, 4}, {4, 4}, {2, 2}, {1, 1}};
	const struct rule_input in = {
	    .read_tile = read_tile, .elements = ELEMENTS, .deltas = 2, .weights = weights};
	struct tensor_table table;
	struct normalise *n;
	float got[1];

	(void)state;
	make_table(&table, false);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct normalise_by by = {.normalisers = normalisers, .most = rows[i].most};
		assert_int_equal(normalise_new(&n, &in, &by, &table, NULL), ERR_OK);
		struct rule_input scaled = normalise_input(n);
		assert_int_equal(scaled.read_tile(scaled.context, 0, 1, 1, got), ERR_OK);
		assert_true(got[0] == deltas[0][1] * rows[i].factor);
		assert_int_equal(scaled.read_tile(scaled.context, 1, 1, 1, got), ERR_OK);
		assert_true(got[0] == deltas[1][1] * 0.8f);
		normalise_free(n);
	}
	tensor_table_deinit(&table);
}

static void
equal_are_left(void **state)
{
	static const double weights[] = {1, 3}, normalisers[] = {0.1, 0.1};
	const struct rule_input in = {
	    .read_tile = read_tile, .elements = ELEMENTS, .deltas = 2, .weights = weights};
	struct tensor_table table;
	struct normalise *n;

	(void)state;
	make_table(&table, false);
	assert_int_equal(normalise_new(&n, &in, &(struct normalise_by){.normalisers = normalisers},
			     &table, NULL),
	    ERR_OK);
	assert_true(normalise_input(n).read_tile == read_tile);
	normalise_free(n);
	tensor_table_deinit(&table);
}

static void
failures(void **state)
{
	static const double weights[] = {1, 3, 1};
	static const double bad[][3] = {
	    {0, 1, 1}, {1, -1, 1}, {1, 1, (double)INFINITY}, {(double)NAN, 1, 1}};
	static const double good[] = {1, 2, 3};
	const struct rule_input in = {
	    .read_tile = read_tile, .elements = ELEMENTS, .deltas = 3, .weights = weights};
	struct tensor_table table;
	struct normalise *n;
	float out[1];

	(void)state;
	make_table(&table, false);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(normalise_new(&n, &in,
				     &(struct normalise_by){.normalisers = bad[i]}, &table, NULL),
		    ERR_INVALID);
	assert_int_equal(
	    normalise_new(&n, &in, &(struct normalise_by){.normalisers = good}, &table, NULL),
	    ERR_OK);
	struct rule_input scaled = normalise_input(n);
	assert_int_equal(scaled.read_tile(scaled.context, 2, 0, 1, out), ERR_CORRUPT);
	normalise_free(n);
	normalise_free(NULL);
	tensor_table_deinit(&table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(scales),
	    cmocka_unit_test(bounds),
	    cmocka_unit_test(equal_are_left),
	    cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
