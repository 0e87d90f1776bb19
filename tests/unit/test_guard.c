/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "rate_control.h"

/* When a metric has collapsed, row by row; what is held for going back; how a job's rounds go on. */

#define NONE (-1.0) /* the round was not evaluated */

/* Metrics of rounds 1, 2, ... and what is said of each: . calm, b bad, S stop, P pause, R rollback, Q rollback and pause. */
struct row {
	struct guard_spec spec;
	double values[12];
	const char *verdicts;
	uint64_t best; /* round of the best after the last one; 0: none */
};

#define ACCURACY(d, win, n, act, most) \
	{ \
		.on = true, .metric = GUARD_ACCURACY, .drop = d, .window = win, .rounds = n, \
		.action = act, .times = most \
	}
#define LOSS(f, win, n, act, most) \
	{ \
		.on = true, .metric = GUARD_LOSS, .factor = f, .window = win, .rounds = n, \
		.action = act, .times = most \
	}

static const struct row rows[] = {
    /* Off: nothing is ever said. */
    {{.on = false}, {.9, .1, .1}, "...", 0},
    /* More than the drop, not as much. Values that binary holds exactly. */
    {ACCURACY(.25, 10, 1, GUARD_DO_STOP, 0), {.5, .25, .875, .625, .75}, ".....", 3},
    {ACCURACY(.25, 10, 1, GUARD_DO_STOP, 0), {.5, .875, .5625}, "..S", 2},
    {ACCURACY(0, 10, 1, GUARD_DO_STOP, 0), {.5, .5, .4375}, "..S", 2},
    {ACCURACY(1, 10, 1, GUARD_DO_STOP, 0), {1, 0, 0}, "...", 1},
    {LOSS(2, 10, 1, GUARD_DO_STOP, 0), {.5, 1, 1.0625}, "..S", 1},
    {LOSS(1, 10, 1, GUARD_DO_STOP, 0), {.5, .5, .5625}, "..S", 2},
    /* A negative loss: above -2 + (3 - 1) * 2 = 2. */
    {LOSS(3, 10, 1, GUARD_DO_STOP, 0), {-2, 2, 2.5}, "..S", 1},
    /* The row of bad ones is broken by a good one, not by one that is not known. */
    {ACCURACY(.25, 10, 3, GUARD_DO_STOP, 0), {.875, .5, .5, .75, .5, .5, .5}, ".bb.bbS", 1},
    {ACCURACY(.25, 10, 2, GUARD_DO_STOP, 0), {.875, .5, NONE, .5}, ".b.S", 1},
    {ACCURACY(.25, 10, 2, GUARD_DO_STOP, 0), {.875, .5, NAN, .5}, ".b.S", 1},
    {ACCURACY(.25, 10, 1, GUARD_DO_STOP, 0), {NAN, NONE, .125}, "...", 3},
    /* A loss that is no number is a collapse, also before anything good is known: then there is nothing to go back to. */
    {LOSS(2, 10, 1, GUARD_DO_ROLLBACK, 9), {.5, NAN, INFINITY}, ".RR", 1},
    {LOSS(2, 10, 1, GUARD_DO_ROLLBACK, 9), {NAN, .5, 2}, "P.R", 2},
    /* So is the accuracy of a model that gives none, however much it may drop. */
    {ACCURACY(1, 10, 1, GUARD_DO_ROLLBACK, 9), {.5, -INFINITY, 0}, ".R.", 1},
    {ACCURACY(1, 10, 1, GUARD_DO_ROLLBACK, 9), {-INFINITY, .5, 0}, "P..", 2},
    /* The window: the best of the last 3 good rounds. After 1.0 left it, .5 is no fall. */
    {ACCURACY(.25, 3, 1, GUARD_DO_STOP, 0), {1, .875, .8125, .75, .625, .5}, ".....S", 3},
    {ACCURACY(.25, 3, 1, GUARD_DO_STOP, 0), {1, .875, .75, .75, .625}, ".....", 4},
    {ACCURACY(.25, 4, 1, GUARD_DO_STOP, 0), {1, .875, .75, .5}, "...S", 1},
    {ACCURACY(.25, 1, 1, GUARD_DO_STOP, 0), {1, .75, .5, .25}, "....", 4},
    /* Bad rounds do not move it. */
    {ACCURACY(.25, 2, 5, GUARD_DO_STOP, 0), {1, .5, .5, .5, .5, .5}, ".bbbbS", 1},
    /* Going back, `times` times, then a person looks; resumed, there are as many again. */
    {ACCURACY(.25, 10, 1, GUARD_DO_ROLLBACK, 2), {.875, .5, .5, .5, .5, .5, .5}, ".RRQRRQ", 1},
    {ACCURACY(.25, 10, 1, GUARD_DO_ROLLBACK, 0), {.875, .5, .875, .5}, ".Q.Q", 3},
    {ACCURACY(.25, 10, 2, GUARD_DO_ROLLBACK, 1), {.875, .5, .5, .5, .5}, ".bRbQ", 1},
    /* Paused: whoever resumes it is content with what there is, a new beginning. */
    {ACCURACY(.25, 10, 1, GUARD_DO_PAUSE, 0), {.875, .5, .5, .5, .125}, ".P..P", 4},
    /* The newer one of equals. */
    {ACCURACY(.25, 10, 1, GUARD_DO_STOP, 0), {.5, .875, .875, .75}, "....", 3},
    {LOSS(2, 10, 1, GUARD_DO_STOP, 0), {.5, .25, .25, .375}, "....", 3},
};

static struct guard_point
point(uint64_t round, double value)
{
	struct guard_point p = {.value = value, .round = round};

	memset(p.model, (int)round, sizeof(p.model));
	memset(p.state, (int)round + 100, sizeof(p.state));
	return p;
}

static void
table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct guard g = {.count = 0};
		char said[16] = "";
		for (size_t n = 0; r->verdicts[n]; n++) {
			struct guard_point p = point(n + 1, r->values[n]);
			bool known = isnan(p.value) || p.value != NONE;
			said[n] = ".bSPRQ"[guard_step(&g, &r->spec, &p, known)];
		}
		const struct guard_point *best = guard_best(&g);
		if (strcmp(said, r->verdicts) != 0 || (best ? best->round : 0) != r->best)
			fail_msg("row %zu: %s, not %s; best %d", i, said, r->verdicts,
			    best ? (int)best->round : 0);
	}
}

/* Held is what may still become the best: not what has left the window, nor what a newer one matches. */
static void
held(void **state)
{
	const struct guard_spec s = ACCURACY(1, 3, 1, GUARD_DO_STOP, 0);
	const double values[] = {.5, .3, .2, .1, .25};
	const char *const holds[] = {"1", "12", "123", "234", "5"};
	struct guard g = {.count = 0};

	(void)state;
	for (size_t n = 0; n < 5; n++) {
		struct guard_point p = point(n + 1, values[n]);
		assert_int_equal(guard_step(&g, &s, &p, true), GUARD_CALM);
		for (uint64_t r = 1; r < 9; r++) {
			struct guard_point q = point(r, 0);
			bool want = strchr(holds[n], '0' + (int)r) != NULL;
			assert_int_equal(guard_holds_model(&g, q.model), want);
			assert_int_equal(guard_holds_state(&g, q.state), want);
		}
	}
}

/* Any length of run keeps to the window's room. */
static void
falling(void **state)
{
	const struct guard_spec s = ACCURACY(1, GUARD_WINDOW_MAX, 1, GUARD_DO_STOP, 0);
	struct guard g = {.count = 0};

	(void)state;
	for (uint64_t n = 1; n < 200; n++) {
		struct guard_point p = point(n, 1.0 - (double)n / 256);
		assert_int_equal(guard_step(&g, &s, &p, true), GUARD_CALM);
		assert_true(g.count <= GUARD_WINDOW_MAX);
		assert_int_equal(
		    g.points[0].round, n > GUARD_WINDOW_MAX ? n - GUARD_WINDOW_MAX + 1 : 1);
	}
	/* A model that is measured again counts by the newer figure, once. */
	struct guard_point again = g.points[g.count - 2];
	again.value = 0;
	uint32_t count = g.count;
	assert_int_equal(guard_step(&g, &s, &again, true), GUARD_CALM);
	assert_int_equal(g.count, count - 1);
	assert_true(g.points[g.count - 1].value == 0);
}

/* --- the schedule of a job */

static struct schedule_round
round_of(const struct guard_point *base, const struct guard_point *made, double accuracy)
{
	return (struct schedule_round){.round = made->round,
	    .reports = 4,
	    .base = base->model,
	    .model = made->model,
	    .state = made->state,
	    .evaluated = true,
	    .accuracy = accuracy,
	    .loss = NAN};
}

/* The coordinator measures what a round made: 1 and 2 are good, 3 is not, 4 starts from 2 with the state of 2. */
static void
back_by_coordinator(void **state)
{
	struct job_spec spec = {.guard = ACCURACY(.25, 10, 1, GUARD_DO_ROLLBACK, 3),
	    .recipe.evaluate_by = EVALUATE_COORDINATOR};
	struct guard_point m[4] = {point(0, 0), point(1, 0), point(2, 0), point(3, 0)};
	const double accuracy[] = {.5, .875, .125};
	struct rate_control c = rate_control_start();
	struct rate_control_turn t;

	(void)state;
	for (size_t n = 1; n <= 3; n++) {
		struct schedule_round r = round_of(&m[n - 1], &m[n], accuracy[n - 1]);
		rate_control_step(&c, &spec, &r, &t);
		assert_int_equal(t.back, n == 3);
		assert_true(t.factor == 1);
	}
	assert_int_equal(t.verdict, GUARD_ROLLBACK);
	assert_memory_equal(t.base, m[2].model, 32);
	assert_memory_equal(t.state, m[2].state, 32);
	assert_int_equal(t.round, 2);
	assert_string_equal(
	    t.reason, "guard: accuracy 0.125, after 0.875 of round 2; back to its model");
	assert_int_equal(c.metric_round, 3);
	assert_int_equal(c.base_round, 2);
}

/* A job that is stopped ends with its best model, a paused one stays where it is. */
static void
where_it_ends(void **state)
{
	struct guard_point m[3] = {point(0, 0), point(1, 0), point(2, 0)};

	(void)state;
	for (int stop = 0; stop < 2; stop++) {
		struct job_spec spec = {.guard = ACCURACY(.25, 10, 1, GUARD_DO_PAUSE, 0),
		    .recipe.evaluate_by = EVALUATE_COORDINATOR};
		struct rate_control c = rate_control_start();
		struct rate_control_turn t;
		if (stop)
			spec.guard.action = GUARD_DO_STOP;
		struct schedule_round r = round_of(&m[0], &m[1], .875);
		rate_control_step(&c, &spec, &r, &t);
		r = round_of(&m[1], &m[2], .125);
		rate_control_step(&c, &spec, &r, &t);
		assert_int_equal(t.verdict, stop ? GUARD_STOP : GUARD_PAUSE);
		assert_int_equal(t.back, stop);
		assert_memory_equal(t.base, m[stop ? 1 : 2].model, 32);
		assert_memory_equal(t.state, m[stop ? 1 : 2].state, 32);
	}
}

/* Devices measure the base: what round 3 is told is of the model of round 2, and what it made is never measured. */
static void
back_by_devices(void **state)
{
	struct job_spec spec = {.guard = ACCURACY(.25, 10, 1, GUARD_DO_ROLLBACK, 3),
	    .recipe.evaluate_by = EVALUATE_DEVICES};
	struct guard_point m[5] = {point(0, 0), point(1, 0), point(2, 0), point(3, 0), point(4, 0)};
	struct rate_control c = rate_control_start();
	struct rate_control_turn t;

	(void)state;
	struct schedule_round r = round_of(&m[0], &m[1], .5);
	rate_control_step(&c, &spec, &r, &t);
	r = round_of(&m[1], &m[2], .875);
	rate_control_step(&c, &spec, &r, &t);
	assert_int_equal(t.back, false);
	r = round_of(&m[2], &m[3], .125);
	rate_control_step(&c, &spec, &r, &t);
	assert_int_equal(t.back, true);
	assert_memory_equal(t.base, m[1].model, 32);
	assert_memory_equal(t.state, m[1].state, 32);
	assert_int_equal(c.metric_round, 2);
	/* The initial model can be the good one, with no state at all. */
	c = rate_control_start();
	r = round_of(&m[0], &m[1], .875);
	rate_control_step(&c, &spec, &r, &t);
	r = round_of(&m[1], &m[2], .125);
	rate_control_step(&c, &spec, &r, &t);
	assert_int_equal(t.back, true);
	assert_memory_equal(t.base, m[0].model, 32);
	for (size_t i = 0; i < 32; i++)
		assert_int_equal(t.state[i], 0);
	/* The next round measures it again; its model is that of round 0 still. */
	r = round_of(&m[0], &m[4], .875);
	rate_control_step(&c, &spec, &r, &t);
	assert_int_equal(c.metric_round, 0);
	assert_int_equal(c.guard.points[0].round, 0);
}

/* Round n of a buffered job whose devices have measured the base of round b. */
static void
step_buffer(struct rate_control *c, const struct job_spec *spec, const struct guard_point *base,
    const struct guard_point *made, uint64_t b, double accuracy, struct rate_control_turn *t)
{
	static const uint8_t nobody_asks[32];
	struct schedule_round r = round_of(base, made, accuracy);

	r.measured = b;
	r.measured_base = nobody_asks;
	r.evaluated = b > 0;
	rate_control_step(c, spec, &r, t);
}

static const struct job_spec buffers = {.guard = ACCURACY(.25, 10, 1, GUARD_DO_ROLLBACK, 3),
    .round = {.mode = ROUND_MODE_BUFFERED, .max_staleness = 3},
    .recipe.evaluate_by = EVALUATE_DEVICES};

/* A base is measured when others are open, and is the best with the state that it had: of the model that round 1 made, round 4 is told,
 * of that of round 3, which is bad, round 5. What was made after it is given up. */
static void
back_by_buffers(void **state)
{
	struct guard_point m[8];
	struct rate_control c = rate_control_start();
	struct rate_control_turn t;

	(void)state;
	for (uint64_t n = 0; n < 8; n++)
		m[n] = point(n, 0);
	step_buffer(&c, &buffers, &m[0], &m[1], 1, .5, &t);
	step_buffer(&c, &buffers, &m[1], &m[2], 0, 0, &t);
	step_buffer(&c, &buffers, &m[2], &m[3], 0, 0, &t);
	assert_true(rate_control_holds(&c, m[1].state) && rate_control_holds(&c, m[2].state));
	assert_true(rate_control_holds_model(&c, m[2].model));
	step_buffer(&c, &buffers, &m[3], &m[4], 2, .875, &t);
	assert_int_equal(c.metric_round, 1);
	assert_int_equal(guard_best(&c.guard)->round, 1);
	assert_memory_equal(guard_best(&c.guard)->model, m[1].model, 32);
	assert_memory_equal(guard_best(&c.guard)->state, m[1].state, 32);
	step_buffer(&c, &buffers, &m[4], &m[5], 4, .125, &t);
	assert_int_equal(t.verdict, GUARD_ROLLBACK);
	assert_int_equal(t.round, 1);
	assert_memory_equal(t.base, m[1].model, 32);
	assert_memory_equal(t.state, m[1].state, 32);
	assert_false(rate_control_holds(&c, m[3].state) || rate_control_holds(&c, m[4].state));
	assert_int_equal(c.bases.count, 0);
	/* Round 6 starts from it again, and is told of it in round 7: it was made by round 1. */
	step_buffer(&c, &buffers, &m[1], &m[6], 0, 0, &t);
	step_buffer(&c, &buffers, &m[6], &m[7], 6, .75, &t);
	assert_int_equal(c.metric_round, 1);
	assert_int_equal(guard_best(&c.guard)->round, 1);
}

/* Of a base that is too old nothing is known; no more is held than may still be measured. */
static void
bases_that_are_held(void **state)
{
	struct job_spec spec = buffers;
	struct rate_control_turn t;

	(void)state;
	for (uint32_t oldest = 3; oldest <= 100; oldest += 97) {
		struct rate_control c = rate_control_start();
		const uint32_t most = oldest < LATE_BASES_MAX ? oldest : LATE_BASES_MAX;
		spec.round.max_staleness = oldest;
		for (uint64_t n = 1; n <= 60; n++) {
			struct guard_point base = point(n - 1, 0), made = point(n, 0);
			step_buffer(&c, &spec, &base, &made, 0, 0, &t);
			assert_int_equal(c.bases.count, n < most ? n : most);
		}
		struct guard_point base = point(60, 0), made = point(61, 0);
		step_buffer(&c, &spec, &base, &made, 20, .125, &t);
		assert_int_equal(c.guard.good, 0);
		base = point(61, 0), made = point(62, 0);
		step_buffer(&c, &spec, &base, &made, 60, .5, &t);
		assert_int_equal(c.guard.good, 1);
		assert_int_equal(guard_best(&c.guard)->round, 59);
		assert_int_equal(c.bases.count, 2);
	}
	/* A job that cannot go back holds none. */
	struct rate_control c = rate_control_start();
	struct guard_point base = point(0, 0), made = point(1, 0);
	spec.guard.action = GUARD_DO_PAUSE;
	step_buffer(&c, &spec, &base, &made, 0, 0, &t);
	assert_int_equal(c.bases.count, 0);
}

/* The newest base with a quorum, and none twice. */
static void
which_base_is_measured(void **state)
{
	const struct late_answers all[] = {{4, 1}, {2, 3}, {3, 2}, {1, 9}};

	(void)state;
	assert_int_equal(late_measured(all, 4, 0, 2), 3);
	assert_int_equal(late_measured(all, 4, 0, 1), 4);
	assert_int_equal(late_measured(all, 4, 0, 3), 2);
	assert_int_equal(late_measured(all, 4, 2, 3), 0);
	assert_int_equal(late_measured(all, 4, 3, 2), 0);
	assert_int_equal(late_measured(NULL, 0, 0, 1), 0);
}

/* An accuracy of 0 with a loss is one, without a loss it is none; and a round that nobody reported to is no smaller fleet. */
static void
no_numbers(void **state)
{
	struct job_spec spec = {.guard = ACCURACY(.75, 10, 1, GUARD_DO_ROLLBACK, 3),
	    .aggregate.scale = {.by = SCALE_LINEAR, .reports = 2},
	    .recipe.evaluate_by = EVALUATE_DEVICES};
	struct guard_point m[3] = {point(0, 0), point(1, 0), point(2, 0)};
	struct rate_control c = rate_control_start();
	struct rate_control_turn t;

	(void)state;
	struct schedule_round r = round_of(&m[0], &m[1], .5);
	r.reports = 3;
	rate_control_step(&c, &spec, &r, &t);
	assert_true(t.factor == 1.5);
	r = round_of(&m[1], &m[1], 0);
	r.reports = 0;
	r.failed = true;
	r.loss = 1;
	struct rate_control with_loss = c;
	rate_control_step(&with_loss, &spec, &r, &t);
	assert_int_equal(t.verdict, GUARD_CALM);
	r.loss = NAN;
	rate_control_step(&c, &spec, &r, &t);
	assert_int_equal(t.verdict, GUARD_ROLLBACK);
	assert_memory_equal(t.base, m[0].model, 32);
	assert_true(t.factor == 1.5);
	assert_string_equal(t.reason, "guard: accuracy 0, after 0.5 of round 0; back to its model");
}

/* Off, it is the plain schedule. */
static void
neutral(void **state)
{
	struct job_spec spec = {.recipe.evaluate_by = EVALUATE_COORDINATOR};
	struct guard_point m[2] = {point(0, 0), point(1, 0)};
	struct rate_control c = rate_control_start();
	struct rate_control_turn t;

	(void)state;
	assert_false(rate_control_matters(&spec));
	for (int i = 0; i < 50; i++) {
		struct schedule_round r = round_of(&m[0], &m[1], i % 2 ? .875 : .0625);
		rate_control_step(&c, &spec, &r, &t);
		assert_false(t.back);
		assert_int_equal(t.verdict, GUARD_CALM);
		assert_memory_equal(t.base, m[1].model, 32);
		assert_true(t.factor == 1 && !t.reason[0]);
	}
}

/* --- the rate after the number of reports */

static void
factors(const struct scale_spec *spec, const uint64_t *reports, const double *want, size_t n)
{
	struct scale s = scale_start();

	for (size_t i = 0; i < n; i++) {
		double got = scale_next(&s, spec, reports[i]);
		if (got != want[i])
			fail_msg("round %zu: %.17g, not %.17g", i + 1, got, want[i]);
	}
}

static void
scales(void **state)
{
	const struct scale_spec none = {.by = SCALE_NONE}, linear = {SCALE_LINEAR, 8, 0},
				root = {SCALE_SQRT, 4, 1}, warm = {SCALE_LINEAR, 8, 4};
	(void)state;

	factors(&none, (uint64_t[]){1, 100}, (double[]){1, 1}, 2);
	factors(&linear, (uint64_t[]){8, 16, 4, 8}, (double[]){1, 2, .5, 1}, 4);
	factors(&root, (uint64_t[]){4, 16, 1, 64}, (double[]){1, 2, .5, 4}, 4);
	/* At m = m_ref always exactly 1, warm-up or not. */
	factors(&warm, (uint64_t[]){8, 8, 8}, (double[]){1, 1, 1}, 3);
	/* From 1 to 2 in four rounds, there it stays; then down, and on the way up again from where it was. */
	factors(&warm, (uint64_t[]){16, 16, 16, 16, 16, 8, 8, 24, 24, 24, 24, 24},
	    (double[]){1.25, 1.5, 1.75, 2, 2, 1.75, 1.5, 1.875, 2.25, 2.625, 3, 3}, 12);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(table),
	    cmocka_unit_test(held),
	    cmocka_unit_test(falling),
	    cmocka_unit_test(back_by_coordinator),
	    cmocka_unit_test(where_it_ends),
	    cmocka_unit_test(back_by_devices),
	    cmocka_unit_test(back_by_buffers),
	    cmocka_unit_test(bases_that_are_held),
	    cmocka_unit_test(which_base_is_measured),
	    cmocka_unit_test(no_numbers),
	    cmocka_unit_test(neutral),
	    cmocka_unit_test(scales),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
