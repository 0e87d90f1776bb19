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

#include "job.h"
#include "prng.h"
#include "rule.h"
#include "rule_inside.h"
#include "stop.h"

#define MOST 40

/* Deltas in memory. */
struct fleet {
	const float *data; /* deltas x elements */
	size_t elements;
};

static enum err
read_tile(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	const struct fleet *f = context;

	assert_true(count > 0 && count <= RULE_TILE && first + count <= f->elements);
	memcpy(out, f->data + delta * f->elements + first, count * sizeof(*out));
	return ERR_OK;
}

static const struct rule_spec *
spec(const char *name, unsigned hostile)
{
	static struct rule_spec s;

	s = (struct rule_spec){.hostile = hostile,
	    .picks = 1,
	    .bucket = 1,
	    .iterations = 8,
	    .smoothing = 1e-6,
	    .radius = 1};
	snprintf(s.name, sizeof(s.name), "%s", name);
	return &s;
}

static const double ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
/* What fold_cut's deltas weigh. */
static const double *claimed = ones;

/* Folds by the rule, cut into ranges of at most `most` elements. */
static enum err
fold_cut(const struct rule_spec *s, const float *data, size_t n, size_t elements,
    const float *centre, size_t most, float *out)
{
	struct fleet f = {data, elements};
	struct rule_input in = {read_tile, &f, elements, n, claimed, centre, 7, NULL};
	struct rule *r;
	struct why why = {""};
	unsigned strips;

	enum err e = rule_new(&r, s, &in, &why);
	if (e) {
		assert_true(why.text[0]);
		return e;
	}
	while (e == ERR_OK && (strips = rule_measures(r)) > 0) {
		/* Any order of the strips. */
		for (unsigned i = strips; i-- > 0 && e == ERR_OK;)
			e = rule_measure(r, i);
		if (e == ERR_OK)
			e = rule_plan(r);
	}
	for (size_t at = 0; at < elements && e == ERR_OK; at += most)
		e = rule_fold(r, at, elements - at < most ? elements - at : most, out + at);
	rule_free(r);
	return e;
}

static enum err
fold(const struct rule_spec *s, const float *data, size_t n, size_t elements, float *out)
{
	static float zeros[100000];

	return fold_cut(s, data, n, elements, zeros, RULE_TILE, out);
}

static float
one(const struct rule_spec *s, const float *data, size_t n)
{
	float out;

	assert_int_equal(fold(s, data, n, 1, &out), ERR_OK);
	return out;
}

static const char *const robust[] = {
    "median", "trimmed_mean", "krum", "bulyan", "geometric_median", "centered_clipping"};
#define ROBUST (sizeof(robust) / sizeof(robust[0]))

/* {0, .1, .2, .3, 10}: mean 2.12, median .2, trimmed(1) .2, geometric median .2, Krum(1) one of the tied .1 and .2. Centered
 * clipping around 0 with radius 1 of {.5, -.5, 100}: 1/3. Computed. */
static void
vectors(void **state)
{
	(void)state;
	static const float x[] = {0, .1f, .2f, .3f, 10}, y[] = {.5f, -.5f, 100};

	assert_true(fabsf(one(spec("mean", 0), x, 5) - 2.12f) < 1e-6f);
	assert_true(one(spec("median", 1), x, 5) == .2f);
	assert_true(fabsf(one(spec("trimmed_mean", 1), x, 5) - .2f) < 1e-7f);
	assert_true(fabsf(one(spec("geometric_median", 1), x, 5) - .2f) < 1e-3f);
	float k = one(spec("krum", 1), x, 5);
	assert_true(k == .1f || k == .2f);
	struct rule_spec clip = *spec("centered_clipping", 1);
	clip.iterations = 1;
	assert_true(fabsf(one(&clip, y, 3) - 1.0f / 3) < 1e-6f);
	/* The median of an even number is the mean of the two in the middle. */
	assert_true(one(spec("median", 1), x, 4) == (.1f + .2f) / 2);
}

static void
draw(float *x, size_t n, uint64_t seed)
{
	struct prng r;

	prng_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		x[i] = prng_float(&r) - 0.5f;
}

/* With nothing to bear, trimming, Multi-Krum of all and mixing of all are the mean, the first two to the bit. */
static void
neutral(void **state)
{
	(void)state;
	enum { N = 9, E = 3000 };
	static float data[N * E], mean[E], out[E];

	draw(data, N * E, 1);
	assert_int_equal(fold(spec("mean", 0), data, N, E, mean), ERR_OK);
	assert_int_equal(fold(spec("trimmed_mean", 0), data, N, E, out), ERR_OK);
	assert_memory_equal(out, mean, sizeof(mean));
	struct rule_spec s = *spec("krum", 0);
	s.picks = N;
	assert_int_equal(fold(&s, data, N, E, out), ERR_OK);
	assert_memory_equal(out, mean, sizeof(mean));
	s = *spec("median", 0);
	s.nearest = true;
	assert_int_equal(fold(&s, data, N, E, out), ERR_OK);
	assert_memory_equal(out, mean, sizeof(mean));
	/* A bound that nothing reaches, and buckets of one. */
	s = *spec("mean", 0);
	s.bound = 1e6;
	assert_int_equal(fold(&s, data, N, E, out), ERR_OK);
	assert_memory_equal(out, mean, sizeof(mean));
}

/* The bits do not depend on how ranges are cut, for each rule with each step before it. */
static void
cuts(void **state)
{
	(void)state;
	enum { N = 13, E = 40000 };
	static float data[N * E], whole[E], cut[E], centre[E];

	draw(data, N * E, 2);
	draw(centre, E, 3);
	for (size_t k = 0; k < ROBUST; k++)
		for (int step = 0; step < 4; step++) {
			struct rule_spec s = *spec(robust[k], 1);
			s.bucket = step == 1 ? 2 : 1;
			s.nearest = step == 2;
			s.bound_median = step == 3;
			/* Seven buckets bear one hostile in every rule. */
			assert_int_equal(
			    fold_cut(&s, data, N, E, centre, RULE_TILE, whole), ERR_OK);
			assert_int_equal(fold_cut(&s, data, N, E, centre, 777, cut), ERR_OK);
			assert_memory_equal(whole, cut, sizeof(whole));
		}
}

/* As many hostile deltas as the rule bears, of any size, leave the update among the honest ones. */
static void
breakdown(void **state)
{
	(void)state;
	enum { N = 15, F = 3, E = 500 };
	static const float sizes[] = {10, 1e6f, 1e30f};
	static float data[N * E], out[E];

	for (size_t k = 0; k < ROBUST; k++)
		for (size_t size = 0; size < 3; size++) {
			struct rule_spec s = *spec(robust[k], F);
			draw(data, N * E, 5);
			for (size_t i = 0; i < F * E; i++)
				data[i] = sizes[size] * (i % 2 ? 1 : -1);
			assert_int_equal(fold(&s, data, N, E, out), ERR_OK);
			for (size_t i = 0; i < E; i++)
				assert_true(fabsf(out[i]) <= 0.6f);
		}
	/* One more than half, and the median is theirs. */
	for (size_t i = 0; i < 8 * E; i++)
		data[i] = 1e30f;
	assert_int_equal(fold(spec("median", F), data, N, E, out), ERR_OK);
	assert_true(out[0] == 1e30f);
}

/* Those whom a rule bears may also claim nearly all of the examples; the geometric median counts them only if it need bear none. */
static void
claims(void **state)
{
	(void)state;
	enum { N = 25, F = 5, E = 100 };
	static float data[N * E], out[E], equal[E];
	double huge[N];

	draw(data, N * E, 6);
	for (size_t i = 0; i < F * E; i++)
		data[i] = 10;
	for (size_t i = 0; i < N; i++)
		huge[i] = i < F ? 1e6 : 600;
	for (size_t k = 0; k < ROBUST; k++)
		for (int step = 0; step < 3; step++) {
			struct rule_spec s = *spec(robust[k], F);
			s.nearest = step == 1;
			s.bound_median = step == 2;
			claimed = ones;
			assert_int_equal(fold(&s, data, N, E, equal), ERR_OK);
			claimed = huge;
			assert_int_equal(fold(&s, data, N, E, out), ERR_OK);
			assert_memory_equal(out, equal, sizeof(out));
			for (size_t i = 0; i < E; i++)
				assert_true(fabsf(out[i]) <= 0.6f);
		}
	assert_int_equal(fold(spec("geometric_median", 0), data, N, E, out), ERR_OK);
	assert_true(out[0] > 9);
	/* The bounded mean moves by the bound times the share of the weights. */
	struct rule_spec s = *spec("mean", 0);
	s.bound = 1;
	memset(data + F * E, 0, (N - F) * E * sizeof(float));
	assert_int_equal(fold(&s, data, N, E, out), ERR_OK);
	claimed = ones;
	assert_true(fabsf(out[0] - 0.1f * (float)(F * 1e6 / (F * 1e6 + (N - F) * 600.0))) < 1e-6f);
}

/* Norm bounding: a delta of norm 5 counts as one of norm 1, in its direction. */
static void
bounding(void **state)
{
	(void)state;
	static const float data[] = {3, 4, 0.6f, 0, 0, -0.8f};
	struct rule_spec s = *spec("mean", 0);
	float out[2];

	s.bound = 1;
	assert_int_equal(fold(&s, data, 3, 2, out), ERR_OK);
	assert_true(fabsf(out[0] - (0.6f + 0.6f) / 3) < 1e-6f);
	assert_true(fabsf(out[1] - (0.8f - 0.8f) / 3) < 1e-6f);
	/* The median of 5, .6 and .8 is .8. */
	s.bound = 0;
	s.bound_median = true;
	assert_int_equal(fold(&s, data, 3, 2, out), ERR_OK);
	assert_true(fabsf(out[0] - (0.8f * 0.6f + 0.6f) / 3) < 1e-6f);
	/* Shortened, one hostile delta of n equal ones moves the mean by bound / n at most, whatever its size. */
	static const float huge[] = {1e30f, -1e30f, 0.6f, 0, 0, -0.8f};
	assert_int_equal(fold(&s, huge, 3, 2, out), ERR_OK);
	assert_true(fabsf(out[0]) < 1 && fabsf(out[1]) < 1);
}

/* R(x + c) = R(x) + c, for all but those that have a fixed point, and R(permuted x) = R(x). */
static void
equivariance(void **state)
{
	(void)state;
	enum { N = 11, E = 200 };
	static float data[N * E], moved[N * E], swapped[N * E], a[E], b[E], c[E];

	draw(data, N * E, 8);
	for (size_t i = 0; i < N * E; i++)
		moved[i] = data[i] + 2;
	for (size_t i = 0; i < N; i++)
		memcpy(swapped + i * E, data + (i * 4 + 3) % N * E, E * sizeof(float));
	for (size_t k = 0; k + 1 < ROBUST; k++) {
		const struct rule_spec s = *spec(robust[k], 1);
		assert_int_equal(fold(&s, data, N, E, a), ERR_OK);
		assert_int_equal(fold(&s, moved, N, E, b), ERR_OK);
		assert_int_equal(fold(&s, swapped, N, E, c), ERR_OK);
		for (size_t i = 0; i < E; i++) {
			assert_true(fabsf(a[i] + 2 - b[i]) < 1e-4f);
			/* Of the last two neighbours that Bulyan may pick, each is as near to the other:
			 * order decides. */
			assert_true(strcmp(s.name, "bulyan") == 0 || fabsf(a[i] - c[i]) < 1e-5f);
		}
	}
}

static void
refusals(void **state)
{
	(void)state;
	struct why why;
	static const struct {
		const char *name;
		unsigned hostile;
		size_t least;
	} cases[] = {{"median", 2, 5}, {"trimmed_mean", 2, 5}, {"krum", 2, 7}, {"bulyan", 2, 11},
	    {"geometric_median", 2, 5}, {"centered_clipping", 2, 5}, {"mean", 0, 1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rule_spec *s = spec(cases[i].name, cases[i].hostile);
		assert_true(rule_known(cases[i].name));
		assert_int_equal(rule_check(s, cases[i].least, &why), ERR_OK);
		if (cases[i].least > 1)
			assert_int_equal(rule_check(s, cases[i].least - 1, &why), ERR_INVALID);
	}
	assert_false(rule_known("average"));
	assert_int_equal(rule_check(spec("average", 0), 5, &why), ERR_INVALID);
	assert_int_equal(rule_check(spec("mean", 1), 5, &why), ERR_INVALID);
	assert_int_equal(rule_check(spec("median", 1), RULE_DELTAS_MAX + 1, &why), ERR_LIMIT);
	assert_int_equal(rule_check(spec("mean", 0), 1000000, &why), ERR_OK);
	struct rule_spec s = *spec("krum", 1);
	s.bucket = 2;
	assert_int_equal(rule_check(&s, 9, &why), ERR_OK);
	assert_int_equal(rule_check(&s, 8, &why), ERR_INVALID);
	s = *spec("krum", 1);
	s.picks = 5;
	assert_int_equal(rule_check(&s, 5, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "pick"));
}

/* Once the program is to end: each rule that looks at all deltas first says so in the middle of it. */
static void
told_to_end(void **state)
{
	static const char *const names[] = {
	    "krum", "bulyan", "geometric_median", "centered_clipping"};
	static float data[8 * 100];
	static const float centre[100];
	struct fleet f = {data, 100};
	struct why why = {""};
	(void)state;

	for (size_t i = 0; i < sizeof(data) / sizeof(*data); i++)
		data[i] = (float)(i % 17);
	for (size_t k = 0; k < 2 * sizeof(names) / sizeof(*names); k++) {
		struct stop stop = {.sees_signals = false};
		const struct rule_input in = {read_tile, &f, 100, 8, ones, centre, 7, &stop};
		struct rule_spec s = *spec(names[k / 2], 1);
		struct rule *r = NULL;

		s.nearest = k % 2;
		assert_int_equal(rule_new(&r, &s, &in, &why), ERR_OK);
		for (unsigned strip = 0; strip < rule_measures(r); strip++)
			assert_int_equal(rule_measure(r, strip), ERR_OK);
		stop_ask(&stop);
		assert_int_equal(rule_measure(r, rule_measures(r) - 1), ERR_CLOSED);
		/* Krum's own part is short. */
		if (k > 0)
			assert_int_equal(rule_plan(r), ERR_CLOSED);
		rule_free(r);
	}
}

/* Operations on each element, by hand: reading n, pairs of n, sorting n. */
static void
costs(void **state)
{
	struct rule_cost mean, median, krum, bulyan, clip;
	struct rule_spec bounded = *spec("mean", 0), nearest = *spec("median", 1);
	(void)state;

	mean = rule_cost(spec("mean", 0), 1000, 4);
	assert_true(mean.each == 1000 && mean.once == 0);
	median = rule_cost(spec("median", 1), 64, 4);
	assert_true(median.each == 64 + 64 * 36 / 4 && median.bytes > mean.bytes);
	krum = rule_cost(spec("krum", 1), 64, 4);
	assert_true(krum.each == 64 + 64 + 64 * 64 / 2 && krum.once == 64 * 64 * 6);
	bulyan = rule_cost(spec("bulyan", 1), 64, 4);
	assert_true(bulyan.each == krum.each + 64 * 36 / 4 && bulyan.once == 64 * krum.once);
	clip = rule_cost(spec("centered_clipping", 1), 63, 4);
	assert_true(clip.each == krum.each && clip.once == 64 * 64 * 9);
	bounded.bound = 1;
	assert_true(rule_cost(&bounded, 100, 1).each == 200);
	nearest.nearest = true;
	assert_true(rule_cost(&nearest, 64, 1).each > krum.each + median.each - 64);
	assert_true(rule_cost(spec("median", 1), 5000, 1).each == 0);
	assert_true(rule_cost(spec("none", 1), 5, 1).each == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(vectors),
	    cmocka_unit_test(neutral),
	    cmocka_unit_test(cuts),
	    cmocka_unit_test(breakdown),
	    cmocka_unit_test(claims),
	    cmocka_unit_test(bounding),
	    cmocka_unit_test(equivariance),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(told_to_end),
	    cmocka_unit_test(costs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
