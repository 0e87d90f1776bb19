/* stages: gcc clang address */
/* What aggregation rules owe whatever the deltas are: scale, a box around honest values, a bound on what one device moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "prng.h"
#include "rule.h"

#define E 300

static enum err
read_fleet(void *context, size_t delta, uint64_t first, size_t count, float *out)
{
	memcpy(out, (const float *)context + delta * E + first, count * sizeof(*out));
	return ERR_OK;
}

static void
fold_rule(const struct rule_spec *s, float *data, size_t n, const float *centre, float *out)
{
	static const double ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	const struct rule_input in = {read_fleet, data, E, n, ones, centre, 3, NULL};
	struct rule *r;
	struct why why = {""};

	if (rule_new(&r, s, &in, &why) != ERR_OK)
		fail_msg("%s: %s", s->name, why.text);
	for (unsigned strips; (strips = rule_measures(r)) > 0;) {
		for (unsigned i = 0; i < strips; i++)
			assert_int_equal(rule_measure(r, i), ERR_OK);
		assert_int_equal(rule_plan(r), ERR_OK);
	}
	assert_int_equal(rule_fold(r, 0, E, out), ERR_OK);
	rule_free(r);
}

static struct rule_spec
rule(const char *name, unsigned hostile)
{
	struct rule_spec s = {.hostile = hostile,
	    .picks = 1,
	    .bucket = 1,
	    .iterations = strcmp(name, "geometric_median") == 0 ? 8 : 1,
	    .smoothing = 1e-6,
	    .radius = 1};

	snprintf(s.name, sizeof(s.name), "%s", name);
	return s;
}

static void
draw_fleet(float *x, size_t n, uint64_t seed)
{
	struct prng r;

	prng_seed(&r, seed);
	for (size_t i = 0; i < n * E; i++)
		x[i] = prng_float(&r) - 0.5f;
}

/* R(4 x) = 4 R(x) to the bit, four being a power of two; bounds, radius and smoothing are lengths and grow with it. */
static void
scale_equivariance(void **state)
{
	static const char *const names[] = {"mean", "median", "trimmed_mean", "krum", "bulyan",
	    "geometric_median", "centered_clipping"};
	static float data[15 * E], larger[15 * E], centre[E], centre4[E], a[E], b[E];

	(void)state;
	draw_fleet(data, 15, 21);
	draw_fleet(centre, 1, 22);
	for (size_t i = 0; i < 15 * E; i++)
		larger[i] = 4 * data[i];
	for (size_t i = 0; i < E; i++)
		centre4[i] = 4 * centre[i];
	for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
		for (int step = 0; step < 4; step++) {
			struct rule_spec s = rule(names[k], k ? 1 : 0);
			s.bucket = step == 1 ? 2 : 1;
			s.nearest = step == 2;
			s.bound = step == 3 ? 4 : 0;
			struct rule_spec s4 = s;
			s4.bound *= 4;
			s4.radius *= 4;
			s4.smoothing *= 4;
			fold_rule(&s, data, 15, centre, a);
			fold_rule(&s4, larger, 15, centre4, b);
			for (size_t i = 0; i < E; i++)
				if (b[i] != 4 * a[i])
					fail_msg("%s, step %d, element %zu: %.9g, not %.9g", s.name,
					    step, i, (double)b[i], (double)(4 * a[i]));
		}
}

/* f deltas of 1e30 and no value leaves what the honest ones span, coordinate by coordinate; f + 1 may take it where they want. */
static void
honest_box(void **state)
{
	enum { F = 4, ALL = 2 * F + 1 };
	static const char *const names[] = {"median", "trimmed_mean"};
	static float data[ALL * E], out[E];

	(void)state;
	for (size_t k = 0; k < 2; k++)
		for (int sign = -1; sign <= 1; sign++) {
			const struct rule_spec s = rule(names[k], F);
			draw_fleet(data, ALL, 31);
			/* Up, down, or each of them another way. */
			for (size_t i = 0; i < F * E; i++)
				data[i] = sign ? (float)sign * 1e30f : (i % 3 ? 1e30f : -1e30f);
			fold_rule(&s, data, ALL, NULL, out);
			for (size_t i = 0; i < E; i++) {
				float low = INFINITY, high = -INFINITY;
				for (size_t n = F; n < ALL; n++) {
					low = fminf(low, data[n * E + i]);
					high = fmaxf(high, data[n * E + i]);
				}
				assert_true(out[i] >= low && out[i] <= high);
			}
			for (size_t i = 0; i < (F + 1) * E; i++)
				data[i] = 1e30f;
			fold_rule(&s, data, ALL, NULL, out);
			assert_true(out[0] == 1e30f);
		}
}

/* One delta, whatever it is, moves clipping by radius / n per iteration, and a bounded mean by twice the bound / n. */
static void
one_alone(void **state)
{
	enum { ALL = 11 };
	static float data[ALL * E], centre[E], a[E], b[E];

	(void)state;
	for (uint32_t iterations = 1; iterations <= 3; iterations++)
		for (int bounded = 0; bounded < 2; bounded++) {
			struct rule_spec s = rule(bounded ? "mean" : "centered_clipping", !bounded);
			s.iterations = iterations;
			s.bound = bounded ? 2 : 0;
			double most = bounded ? 2.0 * 2 / ALL : 2.0 * s.radius * iterations / ALL;
			draw_fleet(data, ALL, 41 + iterations);
			fold_rule(&s, data, ALL, centre, a);
			for (size_t i = 0; i < E; i++)
				data[5 * E + i] = i % 2 ? 1e30f : -1e29f;
			fold_rule(&s, data, ALL, centre, b);
			double sum = 0;
			for (size_t i = 0; i < E; i++)
				sum +=
				    ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
			assert_true(sqrt(sum) <= most * 1.0001);
			assert_true(sum > 0);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(scale_equivariance),
	    cmocka_unit_test(honest_box),
	    cmocka_unit_test(one_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
