/* stages: gcc clang address */
/* SCAFFOLD through the code that devices and coordinator run: local training, a device's variate, the fold of both vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "fold_round.h"
#include "job.h"
#include "train.h"
#include "training.h"
#include "variate.h"

#define DEVICES 2

/* Quadratics: device i has f(w) = a/2 (w - b)^2, which is the squared error of a linear
 * network without bias on the one example x = sqrt(a/2), target b x. The optimum of both together is 0.75. */
struct bench {
	struct net *net;
	float x[DEVICES], target[DEVICES];
	uint64_t steps[DEVICES];
	struct local_spec local;
	bool corrected; /* with control variates */
	struct tensor_table table;
	float w;
	float state[1], own[DEVICES]; /* c and c_i */
	float delta[DEVICES], change[DEVICES];
};

static enum err
read_vector(void *context, unsigned vector, size_t device, uint64_t first, size_t count, float *out)
{
	const struct bench *b = context;

	assert_true(first == 0 && count == 1);
	*out = vector == 0 ? b->delta[device] : b->change[device];
	return ERR_OK;
}

static void
train_device(struct bench *b, size_t i)
{
	static const struct data_spec plain = {.class_count = 0};
	const struct dataset data = {.count = 1,
	    .shape = {1, 1, 1},
	    .dims = 1,
	    .features = 1,
	    .floats = &b->x[i],
	    .targets = &b->target[i],
	    .target_width = 1};
	struct train_result result;
	struct local_spec local = b->local;
	float shift = *b->state - b->own[i];

	local.amount = (double)b->steps[i];
	const struct train_config config = {.local = &local,
	    .data = &plain,
	    .round = 1,
	    .shift = b->corrected && !(fabsf(shift) <= 0) ? &shift : NULL};
	net_params(b->net)[0] = b->w;
	assert_int_equal(train_run(stepper_net(b->net), &data, &config, &result, NULL), ERR_OK);
	assert_int_equal(result.steps, b->steps[i]);
	b->delta[i] = net_params(b->net)[0] - b->w;
	double rates = (double)result.steps * (double)(float)training_rate(&local, 1);
	variate_change(&b->change[i], b->state, &b->delta[i], rates, 1);
}

static void
one_round(struct bench *b, const bool *reports)
{
	const struct job_spec job = {.aggregate = {.rule = {.name = "mean", .bucket = 1},
					 .optimizer = "sgd",
					 .rate = 1,
					 .variates = b->corrected ? DEVICES : 0}};
	struct fold_round f = {.job = &job,
	    .table = &b->table,
	    .number = 1,
	    .factor = 1,
	    .threads = 1,
	    .read = read_vector,
	    .context = b,
	    .step = {.data = (uint8_t *)&b->w, .state = b->state}};
	float change[DEVICES];
	size_t n = 0;

	for (size_t i = 0; i < DEVICES; i++) {
		if (!reports[i])
			continue;
		train_device(b, i);
		change[i] = b->change[i];
		b->delta[n] = b->delta[i];
		b->change[n++] = b->change[i];
		assert_int_equal(fold_round_add(&f, 1, 0, 1), ERR_OK);
	}
	assert_int_equal(fold_round_plan(&f, NULL), ERR_OK);
	assert_int_equal(server_step_floats(&f.step), b->corrected);
	assert_int_equal(fold_round_begin(&f, NULL), ERR_OK);
	assert_int_equal(fold_round_run(&f), ERR_OK);
	fold_round_deinit(&f);
	for (size_t i = 0; i < DEVICES && b->corrected; i++)
		if (reports[i])
			variate_advance(&b->own[i], &change[i], 1);
}

static struct bench
make_bench(double rate, uint64_t first, uint64_t second, bool corrected)
{
	static const double a[DEVICES] = {1, 3}, target[DEVICES] = {0, 1};
	static const uint64_t one[] = {1, 1};
	struct layer_spec layer = {.type = LAYER_LINEAR,
	    .name = "w",
	    .inputs = {LAYER_INPUT},
	    .input_count = 1,
	    .out = 1,
	    .init = INIT_ZERO};
	const struct net_spec spec = {.input = {1, 1, 1},
	    .input_dims = 1,
	    .layers = &layer,
	    .layer_count = 1,
	    .loss = LOSS_MSE};
	struct bench b = {.corrected = corrected,
	    .steps = {first, second},
	    .local = {.unit = LOCAL_STEPS, .batch = 1, .accumulate = 1}};

	b.local.optimizer = (struct optimizer_spec){.name = "sgd", .rate = rate};
	for (size_t i = 0; i < DEVICES; i++) {
		b.x[i] = (float)sqrt(a[i] / 2);
		b.target[i] = (float)(target[i] * sqrt(a[i] / 2));
	}
	assert_int_equal(net_new(&b.net, &spec, 0, 1, true, 0, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(&b.table, "w", one, 2, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(&b.table, NULL, 0, NULL), ERR_OK);
	return b;
}

static void
free_bench(struct bench *b)
{
	net_free(b->net);
	tensor_table_deinit(&b->table);
}

static void
fixed_points(void **state)
{
	static const bool all[DEVICES] = {true, true};
	/* f32 weights stand still where a step is below half their last digit; that is at tolerance. */
	static const struct {
		double rate;
		uint64_t steps[DEVICES];
		int rounds;
		double plain, tolerance;
	} rows[] = {{0.1, {1, 10}, 400, 0.906695, 2e-6}, {0.001, {1, 10}, 20000, 0.967318, 2e-4},
	    {0.1, {5, 5}, 400, 0.670133, 2e-6}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int corrected = 0; corrected < 2; corrected++) {
			struct bench b = make_bench(
			    rows[i].rate, rows[i].steps[0], rows[i].steps[1], corrected != 0);
			double want = corrected ? 0.75 : rows[i].plain;
			for (int round = 0; round < rows[i].rounds; round++)
				one_round(&b, all);
			if (!(fabs((double)b.w - want) <= rows[i].tolerance))
				fail_msg("row %zu: %.9g instead of %.9g", i, (double)b.w, want);
			free_bench(&b);
		}
}

/* Also when one device reports seldom, whose steps weigh less then. */
static void
partial_participation(void **state)
{
	struct bench b = make_bench(0.1, 1, 10, true);

	(void)state;
	for (int round = 0; round < 3000; round++) {
		const bool reports[DEVICES] = {round % 3 != 1, round % 3 != 2};
		one_round(&b, reports);
	}
	assert_float_equal(b.w, 0.75f, 1e-5f);
	free_bench(&b);
}

/* c is the mean of the c_i after every round, and the first round is the plain one to the bit. */
static void
in_step(void **state)
{
	static const bool all[DEVICES] = {true, true};
	struct bench b = make_bench(0.1, 3, 10, true), plain = make_bench(0.1, 3, 10, false);

	(void)state;
	one_round(&b, all);
	one_round(&plain, all);
	assert_memory_equal(&b.w, &plain.w, sizeof(b.w));
	for (int round = 0; round < 50; round++) {
		assert_float_equal(b.state[0], (b.own[0] + b.own[1]) / 2, 1e-6f);
		one_round(&b, all);
	}
	/* At the optimum each is its own gradient, a (0.75 - b). */
	assert_float_equal(b.own[0], 0.75f, 1e-4f);
	assert_float_equal(b.own[1], -0.75f, 1e-4f);
	one_round(&plain, all);
	assert_true(b.w < plain.w || b.w > plain.w);
	free_bench(&b);
	free_bench(&plain);
}

/* By hand: K = 2 steps of rate 1/4 from 1 to 0.5 with c = 0.5 and c_i = 0.25: c_i+ = 0.25 - 0.5 + 0.5 / 0.5 = 0.75. */
static void
by_hand(void **state)
{
	const float server = 0.5f, delta = -0.5f;
	float own = 0.25f, change;

	(void)state;
	variate_change(&change, &server, &delta, 2 * 0.25, 1);
	assert_true(change == 0.5f);
	variate_advance(&own, &change, 1);
	assert_true(own == 0.75f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(in_step),
	    cmocka_unit_test(fixed_points), cmocka_unit_test(partial_participation)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
