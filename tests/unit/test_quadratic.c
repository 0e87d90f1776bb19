/* stages: gcc clang address */
/* Local training and the fold together, on problems whose answer is known: two quadratics, and
 * synchronous data-parallel SGD. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "fold_round.h"
#include "glyphs.h"
#include "job.h"
#include "nets.h"
#include "prng.h"
#include "train.h"

#define DEVICES_MAX 3

/* A round's deltas in memory, and what their manifests would say. */
struct reports {
	float *deltas[DEVICES_MAX];
	double examples[DEVICES_MAX], normalisers[DEVICES_MAX];
	size_t count;
};

static enum err
read_vector(void *context, unsigned vector, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct reports *r = context;

	assert_int_equal(vector, 0);
	memcpy(out, r->deltas[delta] + first, count * sizeof(*out));
	return ERR_OK;
}

static void
train(struct reports *r, struct net *net, const float *base, const struct dataset *d,
    const struct train_config *config)
{
	size_t n = net_tensors(net)->elements;
	struct train_result result;
	struct why why = {""};
	float *delta = malloc(n * sizeof(float));

	memcpy(net_params(net), base, n * sizeof(float));
	if (train_run(stepper_net(net), d, config, &result, &why))
		fail_msg("%s", why.text);
	for (size_t i = 0; i < n; i++)
		delta[i] = net_params(net)[i] - base[i];
	r->deltas[r->count] = delta;
	r->examples[r->count] = (double)result.examples;
	r->normalisers[r->count++] = (double)(float)result.normaliser;
}

/* base becomes the next model. */
static void
fold(struct reports *r, const struct tensor_table *table, bool normalise, float *base)
{
	const struct job_spec job = {
	    .aggregate = {
		.rule.name = "mean", .optimizer = "sgd", .rate = 1, .normalise = normalise}};
	struct fold_round f = {.job = &job,
	    .table = table,
	    .number = 1,
	    .factor = 1,
	    .threads = 1,
	    .read = read_vector,
	    .context = r,
	    .step.data = (uint8_t *)base};

	assert_int_equal(fold_round_plan(&f, NULL), ERR_OK);
	for (size_t i = 0; i < r->count; i++)
		assert_int_equal(fold_round_add(&f, r->examples[i], r->normalisers[i], 1), ERR_OK);
	assert_int_equal(fold_round_begin(&f, NULL), ERR_OK);
	assert_int_equal(fold_round_run(&f), ERR_OK);
	fold_round_deinit(&f);
	for (size_t i = 0; i < r->count; i++)
		free(r->deltas[i]);
	*r = (struct reports){.count = 0};
}

/* --- f(w) = a/2 (w - b)^2 as a layer w x with targets: the gradient 2 x (w x - y) is a (w - b) for x = sqrt(a/2), y = b x */

struct bench {
	double rate, steps[2], prox;
	bool normalise;
	int rounds;
};

static double
fixed_point(const struct bench *b)
{
	static float x[2], y[2];
	static const struct data_spec spec = {.class_count = 0};
	struct local_spec local = {
	    .unit = LOCAL_STEPS, .batch = 1, .prox = b->prox, .optimizer = {.rate = b->rate}};
	struct reports r = {.count = 0};
	struct nets n;
	struct net *net;
	float base = 0.3f;

	x[0] = sqrtf(0.5f);
	x[1] = sqrtf(1.5f);
	y[1] = x[1];
	nets_start(&n, 1, 1, 1, LOSS_MSE);
	nets_linear(&n, "w", 1)->bias = false;
	assert_int_equal(net_new(&net, &n.spec, 0, 1, true, 0, NULL), ERR_OK);
	for (int round = 0; round < b->rounds; round++) {
		for (size_t i = 0; i < 2; i++) {
			const struct dataset d = {.count = 1,
			    .shape = {1, 1, 1},
			    .dims = 1,
			    .features = 1,
			    .floats = &x[i],
			    .targets = &y[i],
			    .target_width = 1};
			const struct train_config config = {
			    .local = &local, .data = &spec, .round = 1, .seed = 1};
			local.amount = b->steps[i];
			train(&r, net, &base, &d, &config);
		}
		fold(&r, net_tensors(net), b->normalise, &base);
	}
	net_free(net);
	return (double)base;
}

/* Rounding to f32 shifts a fixed point by about an ulp over the share that a round moves: more where the rate is small. */
static void
quadratics(void **state)
{
	static const struct {
		struct bench bench;
		double want, tolerance;
	} rows[] = {
	    {{0.1, {1, 10}, 0, false, 200}, 0.906695, 2e-6},
	    {{0.1, {1, 10}, 0, true, 200}, 0.492837, 2e-6},
	    {{0.001, {1, 10}, 0, false, 2000}, 0.967318, 5e-5},
	    {{0.001, {1, 10}, 0, true, 2000}, 0.747463, 5e-5},
	    {{0.1, {5, 5}, 0, false, 200}, 0.670133, 2e-6},
	    {{0.1, {5, 5}, 0, true, 200}, 0.670133, 2e-6},
	    {{0.1, {300, 300}, 1, false, 100}, 0.6, 2e-6},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double got = fixed_point(&rows[i].bench);
		if (!(fabs(got - rows[i].want) <= rows[i].tolerance))
			fail_msg("row %zu: %.8f is not %.6f", i, got, rows[i].want);
	}
}

/* Equal work: the mean, to the bit, whatever the weights. */
static void
equal_work(void **state)
{
	struct local_spec local = {.unit = LOCAL_STEPS,
	    .amount = 3,
	    .batch = 10,
	    .optimizer = {.rate = 0.1, .momentum = 0.9}};
	static const struct data_spec spec = {.class_count = 10};
	struct train_config config = {.local = &local, .data = &spec, .round = 1};
	struct reports r = {.count = 0};
	struct nets n;
	struct net *net;
	float *base[2];

	(void)state;
	nets_2nn(&n);
	assert_int_equal(net_new(&net, &n.spec, 10, 10, true, 0, NULL), ERR_OK);
	net_init(net, 3);
	size_t bytes = net_tensors(net)->bytes;
	float *start = malloc(bytes);
	memcpy(start, net_params(net), bytes);
	for (int way = 0; way < 2; way++) {
		base[way] = malloc(bytes);
		memcpy(base[way], start, bytes);
		for (uint32_t i = 0; i < 3; i++) {
			struct dataset d;
			assert_int_equal(glyphs_make(&d, 1, 2 + i, 13 + 7 * i, 0), ERR_OK);
			config.seed = i;
			train(&r, net, start, &d, &config);
			dataset_deinit(&d);
		}
		fold(&r, net_tensors(net), way == 1, base[way]);
	}
	assert_memory_equal(base[0], base[1], bytes);
	assert_memory_not_equal(base[0], start, bytes);
	free(base[0]);
	free(base[1]);
	free(start);
	net_free(net);
}

/* A device alone: what it trained is the next model, but for the rounding of w + (w' - w). */
static void
one_device(void **state)
{
	struct local_spec local = {.amount = 2, .batch = 5, .optimizer = {.rate = 0.1}};
	static const struct data_spec spec = {.class_count = 10};
	struct train_config config = {.local = &local, .data = &spec, .round = 1, .seed = 4};
	struct reports r = {.count = 0};
	struct dataset d;
	struct nets n;
	struct net *net;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 20, 0), ERR_OK);
	nets_2nn(&n);
	assert_int_equal(net_new(&net, &n.spec, 10, 5, true, 0, NULL), ERR_OK);
	net_init(net, 3);
	size_t elements = net_tensors(net)->elements;
	float *base = malloc(elements * sizeof(float)), *next = malloc(elements * sizeof(float));
	memcpy(base, net_params(net), elements * sizeof(float));
	memcpy(next, base, elements * sizeof(float));
	train(&r, net, base, &d, &config);
	fold(&r, net_tensors(net), true, next);
	for (size_t i = 0; i < elements; i++) {
		float trained = net_params(net)[i];
		float top = fmaxf(fabsf(base[i]), fabsf(trained));
		assert_true(fabsf(next[i] - trained) <= nextafterf(top, INFINITY) - top);
	}
	free(base);
	free(next);
	net_free(net);
	dataset_deinit(&d);
}

/* --- one step of every device is one step on all their batches together */

#define RATE 0.25f

/* Appends what a device of this seed takes in its first batch. */
static void
join(struct dataset *all, const struct dataset *d, uint64_t seed, uint32_t batch)
{
	uint32_t order[64];
	struct prng shuffle;

	for (uint32_t i = 0; i < d->count; i++)
		order[i] = i;
	prng_seed2(&shuffle, seed, 0);
	prng_shuffle(&shuffle, order, d->count);
	for (uint32_t i = 0; i < (batch ? batch : d->count); i++) {
		static const struct data_spec plain = {.class_count = 10};
		dataset_fill(d, &plain, order[i], all->floats + all->count * d->features);
		all->labels[all->count++] = d->labels[order[i]];
	}
}

static void
one_step(uint32_t batch)
{
	struct local_spec local = {
	    .unit = LOCAL_STEPS, .amount = 1, .batch = batch, .optimizer = {.rate = (double)RATE}};
	static const struct data_spec spec = {.class_count = 10};
	struct train_config config = {.local = &local, .data = &spec, .round = 1};
	struct dataset all = {.features = 784,
	    .floats = malloc(64 * 784 * sizeof(float)),
	    .labels = malloc(64 * sizeof(int32_t))};
	struct reports r = {.count = 0};
	struct nets n;
	struct net *net;

	nets_2nn(&n);
	assert_int_equal(net_new(&net, &n.spec, 10, 64, true, 0, NULL), ERR_OK);
	net_init(net, 3);
	size_t elements = net_tensors(net)->elements;
	float *base = malloc(elements * sizeof(float)), *next = malloc(elements * sizeof(float));
	float *gradient = malloc(elements * sizeof(float));
	memcpy(base, net_params(net), elements * sizeof(float));
	memcpy(next, base, elements * sizeof(float));
	for (uint32_t i = 0; i < 3; i++) {
		struct dataset d;
		assert_int_equal(glyphs_make(&d, 1, 2 + i, 9 + 8 * i, 0), ERR_OK);
		config.seed = 100 + i;
		train(&r, net, base, &d, &config);
		join(&all, &d, config.seed, batch);
		dataset_deinit(&d);
	}
	fold(&r, net_tensors(net), false, next);
	memcpy(net_params(net), base, elements * sizeof(float));
	assert_int_equal(net_gradient(net,
			     &(struct net_batch){
				 .x = all.floats, .labels = all.labels, .n = (uint32_t)all.count},
			     gradient),
	    ERR_OK);
	for (size_t i = 0; i < elements; i++)
		assert_true(fabsf(next[i] - (base[i] - RATE * gradient[i])) <= 1e-6f);
	assert_memory_not_equal(next, base, elements * sizeof(float));
	free(all.floats);
	free(all.labels);
	free(base);
	free(next);
	free(gradient);
	net_free(net);
}

/* With shares of 9, 17 and 25 examples in one batch each, and with batches of four of them. */
static void
data_parallel(void **state)
{
	(void)state;
	one_step(0);
	one_step(4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(quadratics),
	    cmocka_unit_test(equal_work),
	    cmocka_unit_test(one_device),
	    cmocka_unit_test(data_parallel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
