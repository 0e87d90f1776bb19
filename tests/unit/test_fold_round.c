/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fold_cost.h"
#include "fold_round.h"
#include "job.h"
#include "tensor.h"

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
	struct fold_tile f = {.step = {.table = table, .data = data},
	    .sum.deltas = {.read_tile = read_tile, .context = d, .deltas = 2, .weights = weights}};

	spec = (struct aggregate_spec){
	    .rule.name = "mean", .optimizer = "sgd", .rate = rate, .momentum = momentum};
	assert_int_equal(fold_tile_choose(&f, &spec, 1, NULL), ERR_OK);
	assert_int_equal(fold_tile_begin(&f, NULL), ERR_OK);
	assert_int_equal(fold_sum_measures(&f.sum), 0);
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
	assert_int_equal(server_step_floats(&f.step), 0);
	assert_int_equal(fold_tile_count(&f), 1);
	assert_int_equal(fold_tile_run(&f, 0, &squares), ERR_OK);
	assert_memory_equal(data, want, sizeof(data));
	assert_true(squares == 9 + 16 + 4 + 4);
	assert_true(fold_tile_norm(&squares, 1) == sqrt(33));
	fold_sum_end(&f.sum);
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
	assert_int_equal(server_step_floats(&f.step), 1);
	f.step.state = moved;
	assert_int_equal(fold_tile_run(&f, 0, &squares), ERR_OK);
	assert_true(data[0] == 4 && moved[0] == 4);
	assert_int_equal(fold_tile_run(&f, 0, &squares), ERR_OK);
	assert_true(data[0] == 10 && moved[0] == 6);
	fold_sum_end(&f.sum);
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
	fold_sum_end(&f.sum);
	fold_sum_end(&g.sum);
	tensor_table_deinit(&table);
	free(values);
	free(a);
	free(b);
}

#define SPREAD (2 * RULE_TILE + 777)

/* Weights of two tensors, one deltas' vector, one folded round. */
struct round {
	struct tensor_table table;
	struct fold_tile f;
	float *old, *data, *values;
};

static void
round_setup(struct round *r)
{
	static const uint64_t shapes[][1] = {{RULE_TILE + 5}, {3}, {SPREAD - RULE_TILE - 5}};
	static const struct tensor_rule rules[] = {{"fixed", TENSOR_FROZEN}};
	static struct deltas d;

	*r = (struct round){.table = {.items = NULL}};
	assert_int_equal(tensor_table_add(&r->table, "a", shapes[0], 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(&r->table, "fixed", shapes[1], 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(&r->table, "b", shapes[2], 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(&r->table, rules, 1, NULL), ERR_OK);
	assert_int_equal(r->table.elements, SPREAD);
	r->old = malloc((SPREAD + 3) * sizeof(float));
	r->data = malloc((SPREAD + 3) * sizeof(float));
	r->values = malloc(SPREAD * sizeof(float));
	assert_true(r->old && r->data && r->values);
	for (int i = 0; i < SPREAD + 3; i++)
		r->old[i] = cosf((float)i);
	for (int i = 0; i < SPREAD; i++)
		r->values[i] = sinf((float)i) / 50;
	memcpy(r->data, r->old, (SPREAD + 3) * sizeof(float));
	d = (struct deltas){{r->values, r->values}};
	r->f = plan(&d, &r->table, r->data, 1, 0);
}

/* Folds with a download; what the optimizer keeps must be in place. */
static void
round_run(struct round *r, const char *codec, bool feedback, uint64_t number)
{
	struct download_spec spec = {.feedback = feedback};
	double squares;

	strcpy(spec.codec, codec);
	assert_int_equal(server_step_download(&r->f.step, &spec, 9, number, NULL), ERR_OK);
	for (uint64_t i = 0; i < fold_tile_count(&r->f); i++)
		assert_int_equal(fold_tile_run(&r->f, i, &squares), ERR_OK);
}

static void
round_teardown(struct round *r)
{
	fold_sum_end(&r->f.sum);
	tensor_table_deinit(&r->table);
	free(r->old);
	free(r->data);
	free(r->values);
}

/* What a device does: the old weights plus the decoded payload, tile by tile. */
static void
apply(const struct round *r, const uint8_t *payload, float *model)
{
	float sent[RULE_TILE];

	for (uint64_t n = 0; n * RULE_TILE < SPREAD; n++) {
		struct difference_tile t = difference_tile(&r->f.step.download.difference, n);
		assert_int_equal(difference_tile_decode(
				     &r->f.step.download.difference, &t, payload + t.at, sent),
		    ERR_OK);
		/* The frozen tensor lies between the elements. */
		for (size_t i = 0; i < t.count; i++) {
			uint64_t at = t.first + i;
			difference_add(&model[at < RULE_TILE + 5 ? at : at + 3], &sent[i], 1);
		}
	}
}

static const char *const codecs[] = {"f32", "f16", "bf16", "int8", "int4"};

static void
the_difference_is_the_model(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof(codecs) / sizeof(*codecs); c++) {
		struct round r;
		round_setup(&r);
		uint8_t *payload = malloc(SPREAD * sizeof(float));
		assert_non_null(payload);
		r.f.step.download.payload = payload;
		round_run(&r, codecs[c], false, 1);
		assert_memory_not_equal(r.data, r.old, SPREAD * sizeof(float));
		apply(&r, payload, r.old);
		assert_memory_equal(r.data, r.old, (SPREAD + 3) * sizeof(float));
		round_teardown(&r);
		free(payload);
	}
}

/* Who verifies keeps no payload and gets the same bits. With f32 nothing is lost but the rounding of w + (w' - w), which need not
 * be w'. */
static void
without_a_payload(void **state)
{
	struct round kept, plain, lossless;
	(void)state;
	round_setup(&kept);
	uint8_t *payload = malloc(SPREAD * sizeof(float));
	assert_non_null(payload);
	kept.f.step.download.payload = payload;
	round_run(&kept, "int8", false, 4);
	round_setup(&plain);
	round_run(&plain, "int8", false, 4);
	assert_memory_equal(kept.data, plain.data, (SPREAD + 3) * sizeof(float));
	/* Another round rounds differently. */
	memcpy(plain.data, plain.old, (SPREAD + 3) * sizeof(float));
	round_run(&plain, "int8", false, 5);
	assert_memory_not_equal(kept.data, plain.data, SPREAD * sizeof(float));
	memcpy(plain.data, plain.old, (SPREAD + 3) * sizeof(float));
	round_run(&plain, "", false, 4);
	round_setup(&lossless);
	round_run(&lossless, "f32", false, 4);
	for (int i = 0; i < SPREAD + 3; i++)
		assert_true(fabsf(plain.data[i] - lossless.data[i]) <= 0x1p-23f);
	round_teardown(&kept);
	round_teardown(&plain);
	round_teardown(&lossless);
	free(payload);
}

/* Twenty rounds of the same update: with feedback the whole way is right but for what the last round lost. */
static double
wrong_after(const char *codec, bool feedback)
{
	struct round r;
	double wrong = 0, all = 0;

	round_setup(&r);
	float *lost = calloc(SPREAD, sizeof(float));
	assert_non_null(lost);
	r.f.step.state = lost;
	for (uint64_t n = 1; n <= 20; n++)
		round_run(&r, codec, feedback, n);
	assert_int_equal(server_step_floats(&r.f.step), feedback ? SPREAD : 0);
	for (int i = 0; i < SPREAD; i++) {
		int at = i < RULE_TILE + 5 ? i : i + 3;
		wrong += pow((double)(r.data[at] - r.old[at] - 20 * r.values[i]), 2);
		all += pow((double)(20 * r.values[i]), 2);
	}
	round_teardown(&r);
	free(lost);
	return wrong / all;
}

static void
feedback(void **state)
{
	(void)state;
	/* Unbiased without it: the error of a sum of 20 is that of one divided by 20. */
	double plain = wrong_after("int4", false), fed = wrong_after("int4", true);
	assert_true(plain > 9e-3 / 20 / 2 && plain < 9e-3 / 20 * 2);
	assert_true(fed < plain / 10);
	assert_true(wrong_after("sign", true) < 0.6 / 20);
}

static void
unknown_downloads(void **state)
{
	struct tensor_table table = {.items = NULL};
	struct fold_tile f = {.step.table = &table};
	struct download_spec spec = {.codec = "guess"};

	(void)state;
	assert_int_equal(server_step_download(&f.step, &spec, 1, 1, NULL), ERR_UNSUPPORTED);
}

/* A difference that overflows the codec fails the round like any number that is not finite. */
static void
too_large(void **state)
{
	struct download_spec spec = {.codec = "f16"};
	struct round r;
	double squares;

	(void)state;
	round_setup(&r);
	r.values[3] = 1e6f;
	assert_int_equal(server_step_download(&r.f.step, &spec, 9, 1, NULL), ERR_OK);
	assert_int_equal(fold_tile_run(&r.f, 0, &squares), ERR_NUMERIC);
	round_teardown(&r);
}

static void
unknown_names(void **state)
{
	struct aggregate_spec a = {.rule.name = "guess", .optimizer = "sgd", .rate = 1};
	struct aggregate_spec b = {.rule.name = "mean", .optimizer = "guess", .rate = 1};
	struct fold_tile f = {.step.table = NULL};

	(void)state;
	assert_int_equal(fold_tile_choose(&f, &a, 1, NULL), ERR_UNSUPPORTED);
	assert_int_equal(fold_tile_choose(&f, &b, 1, NULL), ERR_UNSUPPORTED);
}

/* The new model, what is kept, and the rule's tiles; more of each for more of it. */
static void
costs(void **state)
{
	struct aggregate_spec spec = {.rule.name = "mean", .optimizer = "sgd", .rate = 1};
	const struct download_spec whole = {.feedback = false};
	struct tensor_table table = {.items = NULL};
	static const uint64_t shape[] = {1000, 1000};

	(void)state;
	assert_int_equal(tensor_table_add(&table, "fc.weight", shape, 2, NULL), ERR_OK);
	struct fold_cost plain = fold_cost(&spec, &whole, &table, 10, 2);
	assert_true(plain.work == 1e6 * 18);
	assert_true(plain.bytes > 4000000 && plain.bytes < 4000000 + (3 << 20));
	snprintf(spec.optimizer, sizeof(spec.optimizer), "adam");
	spec.beta1 = 0.9;
	spec.beta2 = 0.99;
	spec.tau = 1e-3;
	struct fold_cost adam = fold_cost(&spec, &whole, &table, 10, 2);
	assert_true(adam.work == plain.work + 8e6 && adam.bytes == plain.bytes + 8000000);
	snprintf(spec.rule.name, sizeof(spec.rule.name), "median");
	struct fold_cost median = fold_cost(&spec, &whole, &table, 10, 2);
	assert_true(median.work > adam.work && median.bytes == adam.bytes + (14 << 20));
	snprintf(spec.rule.name, sizeof(spec.rule.name), "none");
	assert_true(fold_cost(&spec, &whole, &table, 10, 2).work < plain.work);
	snprintf(spec.optimizer, sizeof(spec.optimizer), "none");
	assert_true(fold_cost(&spec, &whole, &table, 10, 2).bytes == 0);
	tensor_table_deinit(&table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(roles),
	    cmocka_unit_test(momentum),
	    cmocka_unit_test(order_of_tiles),
	    cmocka_unit_test(the_difference_is_the_model),
	    cmocka_unit_test(without_a_payload),
	    cmocka_unit_test(feedback),
	    cmocka_unit_test(unknown_downloads),
	    cmocka_unit_test(too_large),
	    cmocka_unit_test(unknown_names),
	    cmocka_unit_test(costs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
