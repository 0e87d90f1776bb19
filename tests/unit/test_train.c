/* stages: gcc clang address */
/* Local training: order, stopping, the same bits in every run and on every machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fingerprint.h"
#include "glyphs.h"
#include "near.h"
#include "nets.h"
#include "prng.h"
#include "tensor.h"
#include "train.h"

static const struct data_spec plain = {.class_count = 10};

static struct net *
new_net(void (*make)(struct nets *n), uint32_t batch)
{
	struct nets n;
	struct net *net;
	struct why why = {""};

	make(&n);
	if (net_new(&net, &n.spec, 10, batch, true, 0, &why))
		fail_msg("%s", why.text);
	net_init(net, 3);
	return net;
}

static struct train_result
train(struct net *net, const struct dataset *d, const struct train_config *config)
{
	struct train_result result;
	struct why why = {""};

	if (train_run(stepper_net(net), d, config, &result, &why))
		fail_msg("%s", why.text);
	return result;
}

/* Every kind of layer that has a kernel of its own. */
static void
small_cnn(struct nets *n)
{
	nets_start(n, 1, 28, 28, LOSS_CROSS_ENTROPY);
	nets_conv(n, "conv1", 6, 5, 2);
	nets_add(n, LAYER_RELU, "relu1");
	nets_window(n, LAYER_MAXPOOL2D, "pool1", 2, 2, 0);
	nets_window(n, LAYER_CONV2D, "conv2", 3, 2, 0)->out = 8;
	nets_add(n, LAYER_RELU, "relu2");
	nets_window(n, LAYER_AVGPOOL2D, "pool2", 3, 3, 1);
	nets_add(n, LAYER_FLATTEN, "flatten");
	nets_linear(n, "fc1", 37);
	nets_add(n, LAYER_RELU, "relu3");
	nets_add(n, LAYER_DROPOUT, "drop")->rate = 0.25f;
	nets_linear(n, "fc2", 10);
}

/* The number below was computed once; any compiler, instruction set or library that gives another one breaks the
 * promise of net.h. */
static void
same_bits_everywhere(void **state)
{
	struct local_spec local = {.amount = 2,
	    .batch = 16,
	    .optimizer = {.rate = 0.05, .momentum = 0.9, .weight_decay = 1e-3}};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 11};
	struct dataset d;
	uint64_t prints[3];

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 100, 0), ERR_OK);
	for (int i = 0; i < 3; i++) {
		struct net *net = new_net(small_cnn, 16);
		config.seed = i < 2 ? 11 : 12;
		struct train_result r = train(net, &d, &config);
		assert_int_equal(r.steps, 14);
		assert_int_equal(r.examples, 100);
		prints[i] = fingerprint(net_params(net), net_tensors(net)->bytes);
		net_free(net);
	}
	dataset_deinit(&d);
	assert_true(prints[0] == prints[1]);
	assert_true(prints[0] != prints[2]);
	if (prints[0] != 0x2e575338267f289fu)
		fail_msg("fingerprint 0x%016llx", (unsigned long long)prints[0]);
}

/* Dropout by counter, with and without micro-batches; the masks of a step do not hang on how much was drawn before. */
static void
same_bits_by_counter(void **state)
{
	static const struct {
		uint32_t batch, accumulate;
		uint64_t print;
	} rows[] = {{16, 1, 0xb1627fa47bdf09d4u}, {8, 2, 0xb775fc809c9c1ce5u}};
	struct local_spec local = {.amount = 2,
	    .random = RANDOM_COUNTER,
	    .optimizer = {.rate = 0.05, .momentum = 0.9, .weight_decay = 1e-3}};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 11};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 100, 0), ERR_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct net *net = new_net(small_cnn, 16);
		local.batch = rows[i].batch;
		local.accumulate = rows[i].accumulate;
		assert_int_equal(train(net, &d, &config).steps, 14);
		uint64_t print = fingerprint(net_params(net), net_tensors(net)->bytes);
		/* Counted from the beginning again in the next local training. */
		net_init(net, 3);
		train(net, &d, &config);
		assert_true(print == fingerprint(net_params(net), net_tensors(net)->bytes));
		if (print != rows[i].print)
			fail_msg("row %zu: fingerprint 0x%016llx", i, (unsigned long long)print);
		net_free(net);
	}
	dataset_deinit(&d);
}

/* Likewise for steps that need the whole gradient. */
static void
same_bits_of_optimizers(void **state)
{
	static const struct {
		struct local_spec local;
		uint64_t print;
	} rows[] = {
	    {{.amount = 2,
		 .batch = 8,
		 .accumulate = 2,
		 .prox = 0.3,
		 .clip_norm = 0.5,
		 .optimizer =
		     {.rate = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-3}},
		0xf25b6ac7ee1ee3bcu},
	    {{.amount = 2,
		 .batch = 16,
		 .optimizer = {.type = OPTIMIZER_ADAM,
		     .rate = 3e-3,
		     .weight_decay = 1e-3,
		     .beta1 = 0.9,
		     .beta2 = 0.999,
		     .epsilon = 1e-8}},
		0x9a22543c3faa96d6u},
	    {{.amount = 2,
		 .batch = 16,
		 .clip_norm = 1,
		 .optimizer = {.type = OPTIMIZER_ADAMW,
		     .rate = 3e-3,
		     .weight_decay = 0.1,
		     .beta1 = 0.8,
		     .beta2 = 0.99,
		     .epsilon = 1e-6}},
		0xa7d8edcae08e638du},
	};
	struct train_config config = {.data = &plain, .round = 1, .seed = 11};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 100, 0), ERR_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct net *net = new_net(small_cnn, 16);
		config.local = &rows[i].local;
		assert_int_equal(train(net, &d, &config).steps, 14);
		uint64_t print = fingerprint(net_params(net), net_tensors(net)->bytes);
		if (print != rows[i].print)
			fail_msg("row %zu: fingerprint 0x%016llx", i, (unsigned long long)print);
		net_free(net);
	}
	dataset_deinit(&d);
}

/* One epoch in one batch is one step along the gradient over all examples, whatever their order. */
static void
full_batch_is_gradient_descent(void **state)
{
	struct local_spec local = {.amount = 1, .optimizer = {.rate = 0.5, .weight_decay = 0.01}};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 4};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 40, 0), ERR_OK);
	struct net *net = new_net(nets_2nn, 40), *by_hand = new_net(nets_2nn, 40);
	struct train_result r = train(net, &d, &config);
	assert_int_equal(r.steps, 1);
	size_t n = net_tensors(net)->elements;
	float *x = malloc(40 * 784 * sizeof(float)), *gradient = malloc(n * sizeof(float));
	for (uint32_t i = 0; i < 40; i++)
		dataset_fill(&d, &plain, i, x + i * 784);
	assert_int_equal(net_gradient(by_hand,
			     &(struct net_batch){.x = x, .labels = d.labels, .n = 40}, gradient),
	    ERR_OK);
	for (size_t i = 0; i < n; i++) {
		float w = net_params(by_hand)[i];
		float want = w - 0.5f * (gradient[i] + 0.01f * w);
		assert_true(fabsf(net_params(net)[i] - want) < 1e-6f);
	}
	free(x);
	free(gradient);
	net_free(net);
	net_free(by_hand);
	dataset_deinit(&d);
}

static bool
stop_after(void *context, uint64_t done, uint64_t planned)
{
	uint64_t *seen = context;

	seen[1] = planned;
	return done == seen[0];
}

static void
amounts(void **state)
{
	struct local_spec local = {.amount = 3, .batch = 10, .optimizer = {.rate = 0.05}};
	uint64_t seen[2] = {7, 0};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 4};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 25, 0), ERR_OK);
	struct net *net = new_net(nets_2nn, 10);
	struct train_result r = train(net, &d, &config);
	assert_int_equal(r.steps, 9); /* the third batch of an epoch has five examples */
	assert_false(r.partial);
	assert_true(r.normaliser == 9);
	local.unit = LOCAL_STEPS;
	local.amount = 4;
	r = train(net, &d, &config);
	assert_int_equal(r.steps, 4);
	assert_int_equal(r.examples, 25);
	local.amount = 2;
	assert_int_equal(train(net, &d, &config).examples, 20);
	local.amount = 4;
	r = train(net, &d, &config);
	assert_true(r.loss > 0 && r.accuracy >= 0 && r.accuracy <= 1);
	local.amount = 20;
	config.stop = stop_after;
	config.context = seen;
	r = train(net, &d, &config);
	assert_int_equal(r.steps, 7);
	assert_int_equal(seen[1], 20);
	assert_true(r.partial);
	net_free(net);
	dataset_deinit(&d);
}

/* What broken off work counts as: the planned examples times the share of the steps; of less than an epoch, those it took. */
static void
partial_work(void **state)
{
	static const struct {
		enum local_unit unit;
		double amount;
		uint64_t stop_at, examples;
	} rows[] = {
	    {LOCAL_EPOCHS, 1, 1, 8}, /* 25 x 1 / 3 */
	    {LOCAL_EPOCHS, 5, 6, 10}, /* 25 x 6 / 15 */
	    {LOCAL_EPOCHS, 100, 1, 1}, /* 25 / 300, but not none */
	    {LOCAL_STEPS, 2, 1, 10},
	    {LOCAL_STEPS, 30, 12, 10},
	    {LOCAL_SECONDS, 0, 2, 20},
	    {LOCAL_SECONDS, 0, 7, 25},
	};
	struct local_spec local = {.batch = 10, .optimizer = {.rate = 0.05}};
	uint64_t seen[2] = {0, 0};
	struct train_config config = {.local = &local,
	    .data = &plain,
	    .round = 1,
	    .seed = 4,
	    .stop = stop_after,
	    .context = seen};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 25, 0), ERR_OK);
	struct net *net = new_net(nets_2nn, 10);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		local.unit = rows[i].unit;
		local.amount = rows[i].amount;
		local.seconds = rows[i].unit == LOCAL_SECONDS ? 1e6 : 0;
		seen[0] = rows[i].stop_at;
		struct train_result r = train(net, &d, &config);
		assert_true(r.partial);
		assert_int_equal(r.steps, rows[i].stop_at);
		assert_int_equal(r.examples, rows[i].examples);
	}
	net_free(net);
	dataset_deinit(&d);
}

static double
clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each step of this device takes some time more. */
static bool
slow_step(void *context, uint64_t done, uint64_t planned)
{
	const struct timespec *pause = context;

	(void)done;
	(void)planned;
	nanosleep(pause, NULL);
	return false;
}

/* One of two devices is several times as slow, and they end together: within a step of the slow one. A bound of steps comes first
 * where it is near. */
static void
unequal_devices(void **state)
{
	struct local_spec local = {
	    .unit = LOCAL_SECONDS, .seconds = 1, .batch = 10, .optimizer = {.rate = 0.001}};
	struct timespec pause = {.tv_nsec = 200000000};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 4};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 25, 0), ERR_OK);
	struct net *net = new_net(nets_2nn, 10);
	double at = clock_now();
	struct train_result fast = train(net, &d, &config);
	double fast_took = clock_now() - at;
	config.stop = slow_step;
	config.context = &pause;
	at = clock_now();
	struct train_result slow = train(net, &d, &config);
	double slow_took = clock_now() - at;
	assert_false(fast.partial || slow.partial);
	assert_true(slow.steps >= 1 && slow.steps <= 6 && fast.steps > slow.steps);
	assert_true(fast_took >= 0.4 && slow_took >= 0.4);
	assert_true(fabs(fast_took - slow_took) < 0.8);
	local.unit = LOCAL_EPOCHS;
	local.amount = 1;
	local.seconds = 1000;
	assert_int_equal(train(net, &d, &config).steps, 3);
	local.amount = 1000000;
	local.seconds = 0.3;
	slow = train(net, &d, &config);
	assert_true(slow.steps <= 4 && !slow.partial);
	net_free(net);
	dataset_deinit(&d);
}

/* Batches joined before the step give the step of the joined batch, also where an epoch ends in a smaller one; one batch a step is
 * what there was before, to the bit. */
static void
accumulate(void **state)
{
	struct local_spec local = {.amount = 3,
	    .batch = 12,
	    .optimizer = {.rate = 0.1, .momentum = 0.5, .weight_decay = 1e-3}};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 4};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 29, 0), ERR_OK);
	struct net *large = new_net(nets_2nn, 12), *small = new_net(nets_2nn, 12);
	struct train_result want = train(large, &d, &config);
	size_t n = net_tensors(large)->elements;
	local.batch = 4;
	local.accumulate = 3;
	struct train_result got = train(small, &d, &config);
	assert_int_equal(want.steps, 9);
	assert_int_equal(got.steps, 9);
	assert_int_equal(got.examples, 29);
	near(got.normaliser, want.normaliser);
	assert_true(fabs(got.loss - want.loss) < 1e-6);
	assert_true(fabs(got.accuracy - want.accuracy) < 1e-12);
	for (size_t i = 0; i < n; i++)
		assert_true(fabsf(net_params(small)[i] - net_params(large)[i]) < 1e-6f);
	local.batch = 12;
	local.accumulate = 1;
	net_init(small, 3);
	train(small, &d, &config);
	assert_memory_equal(net_params(small), net_params(large), n * sizeof(float));
	net_free(large);
	net_free(small);
	dataset_deinit(&d);
}

/* Formula (FedNova): 4 steps with momentum 1/2 weigh 1 + 3/2 + 7/4 + 15/8. */
static void
normaliser(void **state)
{
	struct local_spec local = {.unit = LOCAL_STEPS,
	    .amount = 4,
	    .batch = 10,
	    .optimizer = {.rate = 0.01, .momentum = 0.5}};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 4};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 25, 0), ERR_OK);
	struct net *net = new_net(nets_2nn, 10);
	near(train(net, &d, &config).normaliser, 6.125);
	/* [t - m(1-m^t)/(1-m)]/(1-m) */
	local.optimizer.momentum = 0.75;
	near(train(net, &d, &config).normaliser, (4 - 3 * (1 - 0.31640625)) * 4);
	/* [1-(1-rate mu)^t]/(rate mu), in f32 as the step has them */
	local.optimizer.momentum = 0;
	local.optimizer.rate = 0.0625;
	local.prox = 4;
	near(train(net, &d, &config).normaliser, (1 - 0.31640625) / 0.25);
	/* Nesterov: 1 + m, 1 + m (1 + m), ... */
	local.prox = 0;
	local.optimizer.momentum = 0.5;
	local.optimizer.nesterov = true;
	local.amount = 2;
	near(train(net, &d, &config).normaliser, 1.5 + 1.75);
	local.optimizer = (struct optimizer_spec){
	    .type = OPTIMIZER_ADAM, .rate = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
	near(train(net, &d, &config).normaliser, 2);
	net_free(net);
	dataset_deinit(&d);
}

/* Momentum of one training does not leak into the next. */
static void
fresh_momentum(void **state)
{
	struct local_spec local = {
	    .amount = 1, .batch = 5, .optimizer = {.rate = 0.05, .momentum = 0.9}};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 4};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 25, 0), ERR_OK);
	struct net *net = new_net(nets_2nn, 5);
	train(net, &d, &config);
	uint64_t first = fingerprint(net_params(net), net_tensors(net)->bytes);
	net_init(net, 3);
	train(net, &d, &config);
	assert_true(first == fingerprint(net_params(net), net_tensors(net)->bytes));
	net_free(net);
	dataset_deinit(&d);
}

static void
learns(void **state)
{
	struct local_spec local = {.amount = 15, .batch = 10, .optimizer = {.rate = 0.1}};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 4};
	struct dataset d, test;
	struct train_score before, after;

	(void)state;
	assert_int_equal(glyphs_mixed(&d, 1, 0, 20, 1000), ERR_OK);
	assert_int_equal(glyphs_mixed(&test, 1, 100, 20, 500), ERR_OK);
	struct net *net = new_net(nets_2nn, 10);
	assert_int_equal(train_evaluate(stepper_net(net), &test, &plain, &before, NULL), ERR_OK);
	assert_int_equal(before.examples, 500);
	train(net, &d, &config);
	assert_int_equal(train_evaluate(stepper_net(net), &test, &plain, &after, NULL), ERR_OK);
	assert_true(before.accuracy < 0.4 && after.accuracy > 0.9);
	assert_true(after.loss < before.loss);
	net_free(net);
	dataset_deinit(&d);
	dataset_deinit(&test);
}

/* y = 2 a - b + 0.5 */
static void
regression(void **state)
{
	struct local_spec local = {.amount = 200, .batch = 8, .optimizer = {.rate = 0.2}};
	struct data_spec spec = {.class_count = 0};
	struct train_config config = {.local = &local, .data = &spec, .round = 1, .seed = 4};
	float x[64], y[32];
	struct dataset d = {.count = 32,
	    .shape = {2, 1, 1},
	    .dims = 1,
	    .features = 2,
	    .floats = x,
	    .targets = y,
	    .target_width = 1};
	struct nets n;
	struct net *net;
	struct prng r;

	(void)state;
	prng_seed(&r, 1);
	for (size_t i = 0; i < 32; i++) {
		x[2 * i] = prng_float(&r);
		x[2 * i + 1] = prng_float(&r);
		y[i] = 2 * x[2 * i] - x[2 * i + 1] + 0.5f;
	}
	nets_start(&n, 2, 1, 1, LOSS_MSE);
	nets_linear(&n, "a", 1);
	assert_int_equal(net_new(&net, &n.spec, 0, 8, true, 0, NULL), ERR_OK);
	struct train_result result = train(net, &d, &config);
	assert_true(isnan(result.accuracy));
	assert_true(fabsf(net_params(net)[0] - 2) < 1e-3f);
	assert_true(fabsf(net_params(net)[1] + 1) < 1e-3f);
	assert_true(fabsf(net_params(net)[2] - 0.5f) < 1e-3f);
	struct train_score score;
	assert_int_equal(train_evaluate(stepper_net(net), &d, &spec, &score, NULL), ERR_OK);
	assert_true(score.loss < 1e-6 && isnan(score.accuracy));
	net_free(net);
}

static void
failures(void **state)
{
	struct local_spec local = {.amount = 2, .batch = 20, .optimizer = {.rate = 0.1}};
	struct train_config config = {.local = &local, .data = &plain, .round = 1, .seed = 4};
	struct train_result result;
	struct train_score score;
	struct dataset d;
	struct why why;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 25, 0), ERR_OK);
	struct net *net = new_net(nets_2nn, 10);
	assert_int_equal(train_run(stepper_net(net), &d, &config, &result, &why), ERR_LIMIT);
	local.batch = 10;
	local.optimizer.rate = 1e30;
	assert_int_equal(train_run(stepper_net(net), &d, &config, &result, &why), ERR_NUMERIC);
	assert_true(strlen(why.text) > 0);
	local.optimizer.rate = 0.1;
	net_init(net, 1);
	d.labels[3] = 10;
	assert_int_equal(train_run(stepper_net(net), &d, &config, &result, &why), ERR_INVALID);
	assert_int_equal(train_evaluate(stepper_net(net), &d, &plain, &score, &why), ERR_INVALID);
	d.labels[3] = 1;
	d.features = 783;
	assert_int_equal(train_run(stepper_net(net), &d, &config, &result, &why), ERR_INVALID);
	d.features = 784;
	d.count = 0;
	assert_int_equal(train_run(stepper_net(net), &d, &config, &result, &why), ERR_INVALID);
	d.count = 25;
	int32_t *labels = d.labels;
	d.labels = NULL;
	assert_int_equal(train_run(stepper_net(net), &d, &config, &result, &why), ERR_INVALID);
	d.labels = labels;
	assert_int_equal(train_run(stepper_net(net), &d, &config, &result, &why), ERR_OK);
	net_free(net);
	dataset_deinit(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(same_bits_everywhere),
	    cmocka_unit_test(same_bits_by_counter),
	    cmocka_unit_test(same_bits_of_optimizers),
	    cmocka_unit_test(full_batch_is_gradient_descent),
	    cmocka_unit_test(amounts),
	    cmocka_unit_test(partial_work),
	    cmocka_unit_test(unequal_devices),
	    cmocka_unit_test(accumulate),
	    cmocka_unit_test(normaliser),
	    cmocka_unit_test(fresh_momentum),
	    cmocka_unit_test(learns),
	    cmocka_unit_test(regression),
	    cmocka_unit_test(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
