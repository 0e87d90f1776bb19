#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fold_tile.h"

/* Two deltas held in memory. */
struct deltas {
	const float *values[2];
};

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct deltas *d = context;

	memcpy(out, d->values[delta] + first, count * sizeof(*out));
	return ERR_OK;
}

static const double weights[] = {1, 3};

static struct fold_tile
plan(struct deltas *d, const struct tensor_table *table, void *data, double rate, double momentum)
{
	static struct aggregate_spec spec;
	struct fold_tile f = {.table = table,
	    .deltas = {.read_tile = read_tile, .context = d, .deltas = 2, .weights = weights},
	    .data = data};

	spec = (struct aggregate_spec){
	    .rule.name = "mean", .optimizer = "sgd", .rate = rate, .momentum = momentum};
	assert_int_equal(fold_tile_choose(&f, &spec, 1, NULL), ERR_OK);
	assert_int_equal(fold_tile_begin(&f, NULL), ERR_OK);
	assert_int_equal(fold_tile_measures(&f), 0);
	return f;
}

/* Trained tensors move by the optimizer, averaged ones by the mean itself, frozen ones not at all. Worked by hand: the means are
 * (0 + 3 * 4) / 4 = 3 and so on. */
static void
roles(void **state)
{
	static const float first[] = {0, 4, 8, -4}, second[] = {4, 4, 0, 4};
	static const uint64_t two[] = {2}, one[] = {1};
	static const struct tensor_rule rules[] = {
	    {"mean", TENSOR_AVERAGE}, {"fixed", TENSOR_FROZEN}};
	float data[] = {1, 2, 10, 20, 30};
	const float want[] = {1 + 1.5f, 2 + 2, 10, 20 + 2, 30 + 1};
	struct deltas d = {{first, second}};
	struct tensor_table table = {.items = NULL};
	double squares;

	(void)state;
	assert_int_equal(tensor_table_add(&table, "w", two, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(&table, "fixed", one, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(&table, "mean", one, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(&table, "v", one, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(&table, rules, 2, NULL), ERR_OK);
	struct fold_tile f = plan(&d, &table, data, 0.5, 0);
	assert_int_equal(fold_tile_state_floats(&f), 0);
	assert_int_equal(fold_tile_count(&f), 1);
	assert_int_equal(fold_tile_run(&f, 0, &squares), ERR_OK);
	assert_memory_equal(data, want, sizeof(data));
	assert_true(squares == 9 + 16 + 4 + 4);
	assert_true(fold_tile_norm(&squares, 1) == sqrt(33));
	fold_tile_end(&f);
	tensor_table_deinit(&table);
}

/* Two rounds with momentum 1/2: the state is what moved the weights, and moves them again by half. */
static void
momentum(void **state)
{
	static const float step[] = {4};
	static const uint64_t one[] = {1};
	float data[] = {0}, moved[] = {0};
	struct deltas d = {{step, step}};
	struct tensor_table table = {.items = NULL};
	double squares;

	(void)state;
	assert_int_equal(tensor_table_add(&table, "w", one, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(&table, NULL, 0, NULL), ERR_OK);
	struct fold_tile f = plan(&d, &table, data, 1, 0.5);
	assert_int_equal(fold_tile_state_floats(&f), 1);
	f.state = moved;
	assert_int_equal(fold_tile_run(&f, 0, &squares), ERR_OK);
	assert_true(data[0] == 4 && moved[0] == 4);
	assert_int_equal(fold_tile_run(&f, 0, &squares), ERR_OK);
	assert_true(data[0] == 10 && moved[0] == 6);
	fold_tile_end(&f);
	tensor_table_deinit(&table);
}

/* Many tiles, in any order, and tensors that begin and end inside them. */
static void
order_of_tiles(void **state)
{
	static const uint64_t shapes[][1] = {{10000}, {20000}, {5}, {12345}};
	enum { ELEMENTS = 10000 + 20000 + 5 + 12345, TILES = 3 };
	struct tensor_table table = {.items = NULL};
	float *values = malloc(ELEMENTS * sizeof(float));
	float *a = calloc(ELEMENTS, sizeof(float)), *b = calloc(ELEMENTS, sizeof(float));
	char name[] = "t0";
	double squares[TILES];

	(void)state;
	assert_true(values && a && b);
	for (int i = 0; i < ELEMENTS; i++)
		values[i] = (float)(i % 101) / 7;
	struct deltas d = {{values, values}};
	for (size_t i = 0; i < 4; i++, name[1]++)
		assert_int_equal(tensor_table_add(&table, name, shapes[i], 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(&table, NULL, 0, NULL), ERR_OK);
	struct fold_tile f = plan(&d, &table, a, 1, 0), g = plan(&d, &table, b, 1, 0);
	assert_int_equal(fold_tile_count(&f), TILES);
	for (uint64_t i = 0; i < TILES; i++) {
		assert_int_equal(fold_tile_run(&f, i, &squares[i]), ERR_OK);
		assert_int_equal(fold_tile_run(&g, TILES - 1 - i, &squares[TILES - 1 - i]), ERR_OK);
	}
	assert_memory_equal(a, b, ELEMENTS * sizeof(float));
	assert_memory_equal(a, values, ELEMENTS * sizeof(float));
	fold_tile_end(&f);
	fold_tile_end(&g);
	tensor_table_deinit(&table);
	free(values);
	free(a);
	free(b);
}

static void
unknown_names(void **state)
{
	struct aggregate_spec a = {.rule.name = "guess", .optimizer = "sgd", .rate = 1};
	struct aggregate_spec b = {.rule.name = "mean", .optimizer = "guess", .rate = 1};
	struct fold_tile f = {.table = NULL};

	(void)state;
	assert_int_equal(fold_tile_choose(&f, &a, 1, NULL), ERR_UNSUPPORTED);
	assert_int_equal(fold_tile_choose(&f, &b, 1, NULL), ERR_UNSUPPORTED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(roles),
	    cmocka_unit_test(momentum),
	    cmocka_unit_test(order_of_tiles),
	    cmocka_unit_test(unknown_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
