/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "fold_sum.h"
#include "job.h"
#include "prng.h"
#include "server_step.h"

/* Deltas in memory, of two tensors: one is trained, the other averaged. */
#define N 5
#define TRAINED 700
#define ELEMENTS 1000

struct deltas {
	float values[N][ELEMENTS], changes[N][ELEMENTS];
	double weights[N], normalisers[N];
};

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct deltas *d = context;

	memcpy(out, d->values[delta] + first, count * sizeof(*out));
	return ERR_OK;
}

static enum err
read_change(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct deltas *d = context;

	memcpy(out, d->changes[delta] + first, count * sizeof(*out));
	return ERR_OK;
}

static struct tensor_table table;

static int
setup(void **state)
{
	static const uint64_t shapes[][1] = {{TRAINED}, {ELEMENTS - TRAINED}};
	static const struct tensor_rule rules[] = {{"mean", TENSOR_AVERAGE}};

	(void)state;
	return tensor_table_add(&table, "w", shapes[0], 1, NULL) ||
	    tensor_table_add(&table, "mean", shapes[1], 1, NULL) ||
	    tensor_table_assign(&table, rules, 1, NULL);
}

static int
teardown(void **state)
{
	(void)state;
	tensor_table_deinit(&table);
	return 0;
}

static void
draw_deltas(struct deltas *d)
{
	static const double weights[N] = {600, 13, 250, 1, 100}, normalisers[N] = {5, 1, 20, 4, 2};
	struct prng r;

	prng_seed(&r, 7);
	memcpy(d->weights, weights, sizeof(weights));
	memcpy(d->normalisers, normalisers, sizeof(normalisers));
	for (int i = 0; i < N; i++)
		for (int k = 0; k < ELEMENTS; k++) {
			d->values[i][k] = prng_float(&r) - 0.5f;
			d->changes[i][k] = prng_float(&r) - 0.5f;
		}
}

/* Deltas [from, from + count) as one delta of `to`: what a relay does, and hands on. */
static void
relay(const struct aggregate_spec *spec, struct deltas *d, size_t from, size_t count,
    struct deltas *to, size_t at)
{
	struct deltas part;
	double changes[ELEMENTS];

	memcpy(part.values, d->values + from, count * sizeof(*d->values));
	memcpy(part.changes, d->changes + from, count * sizeof(*d->changes));
	struct fold_sum s = {.spec = spec,
	    .table = &table,
	    .deltas = {.read_tile = read_tile,
		.context = &part,
		.deltas = count,
		.weights = d->weights + from},
	    .normalisers = d->normalisers + from};
	s.changes = s.deltas;
	s.changes.read_tile = read_change;
	assert_int_equal(fold_sum_begin(&s, NULL), ERR_OK);
	assert_int_equal(fold_sum_run(&s, 0, ELEMENTS, to->values[at]), ERR_OK);
	assert_int_equal(fold_sum_changes(&s, 0, ELEMENTS, changes), ERR_OK);
	for (int i = 0; i < ELEMENTS; i++)
		to->changes[at][i] = (float)changes[i];
	to->weights[at] = fold_sum_weight(&s).examples;
	to->normalisers[at] = fold_sum_weight(&s).normaliser;
	fold_sum_end(&s);
}

/* Two rounds of the same update with momentum and a control variate: weights and state. */
struct model {
	float weights[ELEMENTS], state[2 * ELEMENTS];
};

static void
move(const struct aggregate_spec *spec, const struct deltas *d, struct model *m)
{
	struct server_step s = {.table = &table, .data = (uint8_t *)m->weights, .state = m->state};
	double changes[ELEMENTS];

	memset(m, 0, sizeof(*m));
	for (int i = 0; i < ELEMENTS; i++)
		changes[i] = (double)d->changes[0][i];
	for (uint64_t round = 1; round <= 2; round++) {
		assert_int_equal(server_step_choose(&s, spec, round), ERR_OK);
		assert_int_equal(server_step_floats(&s), 2 * ELEMENTS);
		assert_int_equal(server_step_run(&s, 0, ELEMENTS, d->values[0]), ERR_OK);
		assert_int_equal(server_step_control(&s, 0, ELEMENTS, changes), ERR_OK);
	}
}

static void
assert_near(const float *a, const float *b, size_t n, double tolerance)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabs((double)a[i] - (double)b[i]) <= tolerance))
			fail_msg("element %zu: %.9g and %.9g", i, (double)a[i], (double)b[i]);
}

/* Each of the values is below 1/2: a sum of two sums is rounded to f32 three times, to at most 2^-25 each, FedNova's factors once more
 * per read, and they are at most 20. */
static void
sums_of_sums(const struct aggregate_spec *spec, double tolerance)
{
	static struct deltas d, relays, whole, twice;
	static struct model one, other;

	draw_deltas(&d);
	relay(spec, &d, 0, N, &whole, 0);
	relay(spec, &d, 0, 2, &relays, 0);
	relay(spec, &d, 2, N - 2, &relays, 1);
	relay(spec, &relays, 0, 2, &twice, 0);
	assert_true(whole.weights[0] == 964 && twice.weights[0] == 964);
	assert_true(fabs(whole.normalisers[0] - twice.normalisers[0]) <= 1e-12);
	assert_near(whole.values[0], twice.values[0], ELEMENTS, tolerance);
	assert_near(whole.changes[0], twice.changes[0], ELEMENTS, 4 * 0x1p-23);
	move(spec, &whole, &one);
	move(spec, &twice, &other);
	assert_near(one.weights, other.weights, ELEMENTS, 4 * tolerance);
	assert_near(one.state, other.state, ELEMENTS, 4 * tolerance);
	assert_near(one.state + ELEMENTS, other.state + ELEMENTS, ELEMENTS, 4 * 0x1p-23);
}

static const struct aggregate_spec mean = {.rule = {.name = "mean", .bucket = 1},
    .optimizer = "sgd",
    .rate = 0.5,
    .momentum = 0.5,
    .variates = 10};

static void
relays_of_a_mean(void **state)
{
	(void)state;
	sums_of_sums(&mean, 4 * 0x1p-25);
}

/* What a relay hands on as its normaliser makes devices of both sides count as if there were no relay. */
static void
relays_of_fednova(void **state)
{
	struct aggregate_spec spec = mean;
	static struct deltas d, whole;

	(void)state;
	spec.normalise = true;
	sums_of_sums(&spec, 20 * 4 * 0x1p-25);
	/* (600 * 5 + 13 * 1 + 250 * 20 + 1 * 4 + 100 * 2) / 964 */
	draw_deltas(&d);
	relay(&spec, &d, 0, N, &whole, 0);
	assert_true(whole.normalisers[0] == 8217. / 964);
}

/* A sum has the same bits with an optimizer and without: nothing of one gets into it, not even a name that is not known. */
static void
no_optimizer(void **state)
{
	static struct deltas d, whole, alone;
	const struct aggregate_spec bare = {.rule = mean.rule, .optimizer = "of another build"};

	(void)state;
	draw_deltas(&d);
	relay(&mean, &d, 0, N, &whole, 0);
	relay(&bare, &d, 0, N, &alone, 0);
	assert_memory_equal(whole.values[0], alone.values[0], sizeof(whole.values[0]));
}

/* Another rule, in parts, is not the rule: the header says so. Of 0, 1, 2 and 10, 11 the median is 2; of the medians 1 and 10.5 it is
 * 5.75. */
static void
medians_do_not_compose(void **state)
{
	static struct deltas d, relays, whole, twice;
	static const float values[N] = {0, 1, 2, 10, 11};
	const struct aggregate_spec spec = {.rule = {.name = "median", .bucket = 1}};

	(void)state;
	draw_deltas(&d);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < ELEMENTS; k++)
			d.values[i][k] = values[i];
	relay(&spec, &d, 0, N, &whole, 0);
	relay(&spec, &d, 0, 3, &relays, 0);
	relay(&spec, &d, 3, 2, &relays, 1);
	relay(&spec, &relays, 0, 2, &twice, 0);
	assert_true(whole.values[0][ELEMENTS - 1] == 2 && twice.values[0][ELEMENTS - 1] == 5.75f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(relays_of_a_mean),
	    cmocka_unit_test(relays_of_fednova),
	    cmocka_unit_test(no_optimizer),
	    cmocka_unit_test(medians_do_not_compose),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
