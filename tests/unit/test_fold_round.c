/* stages: gcc clang address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fold_round.h"
#include "job.h"
#include "prng.h"
#include "stop.h"
#include "tensor.h"

#define DELTAS_MAX 12

/* Deltas held in memory. Who reads any of the tiles from `from` on gets their errors, one each and none behind the last. */
struct deltas {
	const float *values[DELTAS_MAX];
	size_t count;
	double scale; /* of the last; 0: 1 */
	uint64_t from;
	enum err errors[2];
	size_t waits; /* 1, 2: that error comes once the other has come */
	atomic_bool came[2];
	struct stop *stop; /* is asked for when `from` is read */
	atomic_uint reads;
};

static enum err
read_vector(void *context, unsigned vector, size_t delta, uint64_t first, size_t count, float *out)
{
	struct deltas *d = context;

	assert_true(vector == 0 && delta < d->count && count > 0 && count <= RULE_TILE);
	atomic_fetch_add(&d->reads, 1);
	if (d->stop && first == d->from)
		stop_ask(d->stop);
	for (size_t i = 0; i < 2; i++) {
		if (!d->errors[i] || first / RULE_TILE != d->from / RULE_TILE + i)
			continue;
		while (d->waits == i + 1 && !atomic_load(&d->came[1 - i]))
			sched_yield();
		atomic_store(&d->came[i], true);
		return d->errors[i];
	}
	memcpy(out, d->values[delta] + first, count * sizeof(*out));
	return ERR_OK;
}

static struct job_spec
job_of(const char *rule, double rate, double momentum)
{
	struct job_spec job = {
	    .seed = 9, .aggregate = {.optimizer = "sgd", .rate = rate, .momentum = momentum}};

	snprintf(job.aggregate.rule.name, sizeof(job.aggregate.rule.name), "%s", rule);
	return job;
}

static double
weight_of(size_t delta)
{
	return (double)(1 + 2 * delta);
}

/* Given are the factor, the threads, data and state; round 1 unless there is a number. */
static void
begin(struct fold_round *r, const struct job_spec *job, const struct tensor_table *table,
    struct deltas *d)
{
	r->job = job;
	r->table = table;
	r->number += r->number == 0;
	r->read = read_vector;
	r->context = d;
	assert_int_equal(fold_round_plan(r, NULL), ERR_OK);
	for (size_t i = 0; i < d->count; i++)
		assert_int_equal(fold_round_add(r, weight_of(i), 1,
				     i + 1 == d->count && d->scale > 0 ? d->scale : 1),
		    ERR_OK);
	assert_int_equal(fold_round_begin(r, NULL), ERR_OK);
}

static void
one_tensor(struct tensor_table *table, uint64_t elements)
{
	*table = (struct tensor_table){.items = NULL};
	assert_int_equal(tensor_table_add(table, "w", &elements, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(table, NULL, 0, NULL), ERR_OK);
}

/* --- what moves, and how far */

/* Trained tensors move by the optimizer, averaged ones by the mean itself, frozen ones not at all. Worked by hand: the means are
 * (0 + 3 * 4) / 4 = 3 and so on. */
static void
roles(void **state)
{
	static const float first[] = {0, 4, 8, -4}, second[] = {4, 4, 0, 4};
	static const uint64_t two[] = {2}, one[] = {1};
	static const struct tensor_rule rules[] = {
	    {"mean", TENSOR_AVERAGE}, {"fixed", TENSOR_FROZEN}};
	const struct job_spec job = job_of("mean", 0.5, 0);
	float data[] = {1, 2, 10, 20, 30};
	const float want[] = {1 + 1.5f, 2 + 2, 10, 20 + 2, 30 + 1};
	struct deltas d = {.values = {first, second}, .count = 2};
	struct tensor_table table = {.items = NULL};
	struct fold_round r = {.factor = 1, .threads = 1, .step.data = (uint8_t *)data};

	(void)state;
	assert_int_equal(tensor_table_add(&table, "w", two, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(&table, "fixed", one, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(&table, "mean", one, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(&table, "v", one, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_assign(&table, rules, 2, NULL), ERR_OK);
	begin(&r, &job, &table, &d);
	assert_int_equal(server_step_floats(&r.step), 0);
	assert_int_equal(fold_round_run(&r), ERR_OK);
	assert_memory_equal(data, want, sizeof(data));
	assert_true(r.norm == sqrt(9 + 16 + 4 + 4));
	fold_round_deinit(&r);
	tensor_table_deinit(&table);
}

/* Two rounds with momentum 1/2 and a rate of 4, of which the round has a quarter: the state is what moved the weights, and moves them
 * again by half. */
static void
momentum(void **state)
{
	static const float step[] = {4};
	const struct job_spec job = job_of("mean", 4, 0.5);
	float data[] = {0}, moved[] = {0};
	struct deltas d = {.values = {step, step}, .count = 2};
	struct tensor_table table;

	(void)state;
	one_tensor(&table, 1);
	for (int i = 0; i < 2; i++) {
		struct fold_round r = {.factor = 0.25,
		    .threads = 1,
		    .step = {.data = (uint8_t *)data, .state = moved}};
		begin(&r, &job, &table, &d);
		assert_int_equal(fold_round_run(&r), ERR_OK);
		assert_true(data[0] == (i == 0 ? 4 : 10) && moved[0] == (i == 0 ? 4 : 6));
		fold_round_deinit(&r);
	}
	tensor_table_deinit(&table);
}

/* A delta's scale counts in a job that takes late ones. */
static void
late_deltas(void **state)
{
	static const float eight[] = {8};
	struct job_spec job = job_of("mean", 1, 0);
	struct deltas d = {.values = {eight, eight}, .count = 2, .scale = 0.5};
	struct tensor_table table;

	(void)state;
	one_tensor(&table, 1);
	for (unsigned staleness = 0; staleness < 2; staleness++) {
		float data[] = {0};
		struct fold_round r = {.factor = 1, .threads = 1, .step.data = (uint8_t *)data};
		job.round.max_staleness = staleness;
		begin(&r, &job, &table, &d);
		assert_int_equal(fold_round_run(&r), ERR_OK);
		assert_true(data[0] == (staleness > 0 ? (8 + 3 * 4) / 4.f : 8));
		fold_round_deinit(&r);
	}
	tensor_table_deinit(&table);
}

/* --- tiles and threads */

#define SPREAD (2 * RULE_TILE + 777)

static void
draw_deltas(struct deltas *d, size_t count, size_t elements)
{
	struct prng r;

	*d = (struct deltas){.count = count};
	prng_seed(&r, elements);
	for (size_t i = 0; i < count; i++) {
		float *x = malloc(elements * sizeof(*x));
		assert_non_null(x);
		prng_floats(&r, x, elements);
		for (size_t k = 0; k < elements; k++)
			x[k] -= 0.5f;
		d->values[i] = x;
	}
}

static void
free_deltas(struct deltas *d)
{
	for (size_t i = 0; i < d->count; i++)
		free((void *)(uintptr_t)d->values[i]);
}

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	return read_vector(context, 0, delta, first, count, out);
}

/* What the rule itself makes of the deltas, and nothing else. */
static void
rule_alone(
    const struct rule_spec *spec, struct deltas *d, const float *centre, float *out, size_t n)
{
	double weights[DELTAS_MAX];
	const struct rule_input in = {.read_tile = read_tile,
	    .context = d,
	    .elements = n,
	    .deltas = d->count,
	    .weights = weights,
	    .centre = centre,
	    .seed = fold_sum_seed(9, 1)};
	struct rule *r;

	for (size_t i = 0; i < d->count; i++)
		weights[i] = weight_of(i);
	assert_int_equal(rule_new(&r, spec, &in, NULL), ERR_OK);
	for (unsigned strips; (strips = rule_measures(r)) > 0;) {
		for (unsigned i = strips; i-- > 0;)
			assert_int_equal(rule_measure(r, i), ERR_OK);
		assert_int_equal(rule_plan(r), ERR_OK);
	}
	for (size_t at = 0; at < n; at += RULE_TILE)
		assert_int_equal(
		    rule_fold(r, at, n - at < RULE_TILE ? n - at : RULE_TILE, out + at), ERR_OK);
	rule_free(r);
}

/* From zeros at rate 1 the model is the update, and the norm is its length; with the comparing as a step of its own, and without. */
static void
is_the_rule(const struct rule_spec *rule, size_t n)
{
	struct job_spec job = job_of(rule->name, 1, 0);
	float *want = calloc(2 * n, sizeof(float)), *centre = want + n;
	struct tensor_table table;
	struct deltas d;
	double sum = 0;

	job.aggregate.rule = *rule;
	one_tensor(&table, n);
	draw_deltas(&d, DELTAS_MAX, n);
	rule_alone(rule, &d, centre, want, n);
	for (size_t i = 0; i < n; i++) {
		want[i] += 0; /* -0 became 0 */
		sum += (double)want[i] * (double)want[i];
	}
	for (unsigned way = 0; way < 4; way++) {
		float *data = calloc(2 * n, sizeof(float)), *state = data + n;
		struct fold_round r = {.factor = 1,
		    .threads = way & 1 ? 4 : 1,
		    .step = {.data = (uint8_t *)data, .state = state}};
		begin(&r, &job, &table, &d);
		if (way & 2)
			assert_int_equal(fold_round_compare(&r), ERR_OK);
		assert_int_equal(fold_sum_measures(&r.sum) > 0 && way & 2, 0);
		assert_int_equal(fold_round_run(&r), ERR_OK);
		if (memcmp(data, want, n * sizeof(float)) != 0)
			fail_msg("%s, %zu elements, way %u", rule->name, n, way);
		assert_memory_equal(state, rule_keeps(rule) ? want : centre, n * sizeof(float));
		assert_true(fabs(r.norm - sqrt(sum)) <= 1e-12 * sqrt(sum));
		fold_round_deinit(&r);
		free(data);
	}
	free_deltas(&d);
	tensor_table_deinit(&table);
	free(want);
}

static void
every_rule(void **state)
{
	static const struct rule_spec rules[] = {{.name = "mean"},
	    {.name = "mean", .bound_median = true}, {.name = "mean", .bound = 20},
	    {.name = "median", .hostile = 2}, {.name = "median", .bucket = 2},
	    {.name = "median", .hostile = 2, .nearest = true},
	    {.name = "trimmed_mean", .hostile = 2}, {.name = "krum", .hostile = 2, .picks = 3},
	    {.name = "bulyan", .hostile = 2},
	    {.name = "geometric_median", .iterations = 2, .smoothing = 1e-6},
	    {.name = "centered_clipping", .iterations = 2, .radius = 0.7}};

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		is_the_rule(&rules[i], SPREAD);
}

static const struct rule_spec mean = {.name = "mean"},
			      krum = {.name = "krum", .hostile = 2, .picks = 3};

static void
odd_sizes(void **state)
{
	static const size_t sizes[] = {
	    1, 777, RULE_TILE - 1, RULE_TILE, RULE_TILE + 1, 5 * RULE_TILE + 3};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		is_the_rule(&mean, sizes[i]);
		is_the_rule(&krum, sizes[i]);
	}
}

/* --- what ends a round early */

/* A round that ends with this error, after so many reads at most. */
static void
ends_with(const struct rule_spec *rule, struct deltas *d, enum err error, unsigned threads,
    unsigned reads)
{
	struct job_spec job = job_of(rule->name, 1, 0);
	struct stop stop = {.asked = false};
	struct tensor_table table;
	float *data = calloc(SPREAD, sizeof(float));

	job.aggregate.rule = *rule;
	one_tensor(&table, SPREAD);
	struct fold_round r = {
	    .factor = 1, .threads = threads, .stop = &stop, .step.data = (uint8_t *)data};
	d->stop = d->stop ? &stop : NULL;
	d->reads = 0;
	d->came[0] = d->came[1] = false;
	begin(&r, &job, &table, d);
	assert_int_equal(fold_round_run(&r), error);
	assert_in_range(atomic_load(&d->reads), 1, reads);
	fold_round_deinit(&r);
	assert_true(!r.sum.rule && !r.weights && !r.normalisers && !r.scales && r.count == 0);
	fold_round_deinit(&r);
	tensor_table_deinit(&table);
	free(data);
}

/* The error is that of the first of the tiles that have one, whoever reads which first. What lies behind is left. */
static void
reader_fails(void **state)
{
	struct deltas d;

	(void)state;
	draw_deltas(&d, 7, SPREAD);
	d.errors[0] = ERR_IO;
	d.errors[1] = ERR_CORRUPT;
	for (uint64_t tile = 0; tile < 3; tile++) {
		d.from = tile * RULE_TILE;
		ends_with(&mean, &d, ERR_IO, 1, (unsigned)tile * 7 + 1);
		ends_with(&krum, &d, ERR_IO, 1, 3 * 7);
		for (unsigned again = 0; again < 40 && tile < 2; again++) {
			d.waits = 1 + again % 2;
			ends_with(&mean, &d, ERR_IO, 4, 3 * 7);
		}
		d.waits = 0;
	}
	free_deltas(&d);
}

static void
stops(void **state)
{
	struct stop any;
	struct deltas d;

	(void)state;
	draw_deltas(&d, 7, SPREAD);
	d.stop = &any;
	ends_with(&mean, &d, ERR_CLOSED, 1, 7);
	ends_with(&krum, &d, ERR_CLOSED, 1, 3 * 7);
	free_deltas(&d);
}

/* --- downloads */

/* Weights of two tensors, one deltas' vector, one folded round. */
struct round {
	struct tensor_table table;
	struct job_spec job;
	struct deltas d;
	struct fold_round r;
	float *old, *data, *values;
};

static void
round_setup(struct round *r)
{
	static const uint64_t shapes[][1] = {{RULE_TILE + 5}, {3}, {SPREAD - RULE_TILE - 5}};
	static const struct tensor_rule rules[] = {{"fixed", TENSOR_FROZEN}};

	*r = (struct round){.job = job_of("mean", 1, 0)};
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
	r->d = (struct deltas){.values = {r->values, r->values}, .count = 2};
	r->r = (struct fold_round){.factor = 1, .threads = 1, .step.data = (uint8_t *)r->data};
}

/* Folds with a download; what the optimizer keeps, and the payload, must be in place. */
static enum err
round_run(struct round *r, const char *codec, bool feedback, uint64_t number)
{
	struct fold_round *f = &r->r;

	r->job.download = (struct download_spec){.feedback = feedback};
	snprintf(r->job.download.codec, sizeof(r->job.download.codec), "%s", codec);
	f->number = number;
	begin(f, &r->job, &r->table, &r->d);
	enum err e = fold_round_run(f);
	fold_round_deinit(f);
	return e;
}

static void
round_teardown(struct round *r)
{
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
		struct difference_tile t = difference_tile(&r->r.step.download.difference, n);
		assert_int_equal(difference_tile_decode(
				     &r->r.step.download.difference, &t, payload + t.at, sent),
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
		r.r.step.download.payload = payload;
		assert_int_equal(round_run(&r, codecs[c], false, 1), ERR_OK);
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
	kept.r.step.download.payload = payload;
	assert_int_equal(round_run(&kept, "int8", false, 4), ERR_OK);
	round_setup(&plain);
	assert_int_equal(round_run(&plain, "int8", false, 4), ERR_OK);
	assert_memory_equal(kept.data, plain.data, (SPREAD + 3) * sizeof(float));
	/* Another round rounds differently. */
	memcpy(plain.data, plain.old, (SPREAD + 3) * sizeof(float));
	assert_int_equal(round_run(&plain, "int8", false, 5), ERR_OK);
	assert_memory_not_equal(kept.data, plain.data, SPREAD * sizeof(float));
	memcpy(plain.data, plain.old, (SPREAD + 3) * sizeof(float));
	assert_int_equal(round_run(&plain, "", false, 4), ERR_OK);
	round_setup(&lossless);
	assert_int_equal(round_run(&lossless, "f32", false, 4), ERR_OK);
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
	r.r.step.state = lost;
	for (uint64_t n = 1; n <= 20; n++)
		assert_int_equal(round_run(&r, codec, feedback, n), ERR_OK);
	assert_int_equal(server_step_floats(&r.r.step), feedback ? SPREAD : 0);
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

/* A difference that overflows the codec fails the round like any number that is not finite. */
static void
too_large(void **state)
{
	struct round r;

	(void)state;
	round_setup(&r);
	r.values[3] = 1e6f;
	assert_int_equal(round_run(&r, "f16", false, 1), ERR_NUMERIC);
	round_teardown(&r);
}

static void
unknown_names(void **state)
{
	static const char *const names[][3] = {
	    {"guess", "sgd", ""}, {"mean", "guess", ""}, {"mean", "sgd", "guess"}};
	struct tensor_table table;

	(void)state;
	one_tensor(&table, 1);
	for (size_t i = 0; i < 3; i++) {
		struct job_spec job = job_of(names[i][0], 1, 0);
		struct fold_round r = {.job = &job, .table = &table, .number = 1, .factor = 1};
		snprintf(
		    job.aggregate.optimizer, sizeof(job.aggregate.optimizer), "%s", names[i][1]);
		snprintf(job.download.codec, sizeof(job.download.codec), "%s", names[i][2]);
		assert_int_equal(fold_round_plan(&r, NULL), ERR_UNSUPPORTED);
	}
	tensor_table_deinit(&table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(roles),
	    cmocka_unit_test(momentum),
	    cmocka_unit_test(late_deltas),
	    cmocka_unit_test(every_rule),
	    cmocka_unit_test(odd_sizes),
	    cmocka_unit_test(reader_fails),
	    cmocka_unit_test(stops),
	    cmocka_unit_test(the_difference_is_the_model),
	    cmocka_unit_test(without_a_payload),
	    cmocka_unit_test(feedback),
	    cmocka_unit_test(too_large),
	    cmocka_unit_test(unknown_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
