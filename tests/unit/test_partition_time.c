/* stages: gcc clang address */
/* What a step of a pipeline, a ring and replicas takes, by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "partition.h"

/* A network of three layers and four ranks. */
struct trial {
	struct partition_layer layers[3];
	struct partition_rank ranks[4];
	struct partition_in in;
};

/* Twice the gradient, and an output for each context. */
static uint64_t
bytes_of(void *context, const struct partition_range *r)
{
	struct trial *t = context;
	uint64_t bytes = r->leads ? 5000 : 0;

	for (size_t i = 0; i < t->in.count; i++)
		if (i >= r->first && i < r->last)
			bytes += 2 * t->layers[i].gradient + t->layers[i].out * r->contexts;
		else if (r->tail_first && i >= r->tail_first)
			bytes += 2 * t->layers[i].gradient + t->layers[i].out * r->tail_contexts;
	return bytes;
}

/* Passes of 1, 0.5 and 0.25 s; transfers over the cuts of 0.502 and 0.101 s, of an input 0.101 s and of an answer 0.051 s. */
static void
three_layers(struct trial *t)
{
	static const struct partition_layer layers[] = {
	    {.forward_s = 0.25, .back_s = 0.75, .out = 500000, .gradient = 4000000},
	    {.forward_s = 0.25, .back_s = 0.25, .out = 100000, .gradient = 1000},
	    {.forward_s = 0.125, .back_s = 0.125, .out = 1000, .gradient = 1000},
	};

	memset(t, 0, sizeof(*t));
	t->in = (struct partition_in){
	    .layers = t->layers, .ranks = t->ranks, .bytes = bytes_of, .context = t};
	memcpy(t->layers, layers, sizeof(layers));
	t->ranks[0].factor = t->ranks[3].factor = 1;
	t->ranks[1].factor = t->ranks[2].factor = 2;
	t->in.rank_count = 4;
	t->in.count = 3;
	t->in.bytes_per_s = 1e6;
	t->in.latency_s = 0.001;
	t->in.input = 100000;
	t->in.answer = 50000;
}

static bool
near(double a, double b)
{
	return fabs(a - b) < 1e-12;
}

static void
test_straight_time(void **state)
{
	(void)state;
	struct trial t;
	struct partition p;
	const struct layout l = {
	    .pipeline = 2, .replicas = 1, .cut = {0, 1, 3}, .pieces = 4, .run = 4};

	three_layers(&t);
	partition_time(&t.in, &l, &p);
	assert_true(near(p.stages[0].compute_s, 1) && near(p.stages[1].compute_s, 1.5));
	assert_true(near(p.stages[0].link_s, 0.553) && near(p.stages[1].link_s, 0.553));
	assert_true(near(p.step_s, 3 * 1.5 + (1 + 1.5 + 2 * 0.502)));
	assert_true(near(p.bubble, 1 - 4 * 1.5 / p.step_s) && !p.link_bound);
	assert_int_equal(p.stages[0].contexts, 3);
	assert_int_equal(p.stages[1].contexts, 1);
	/* The leader's 5000 and twice the gradient, and three outputs. */
	assert_int_equal(p.stages[0].bytes, 5000 + 8000000 + 3 * 500000);
	/* An answer of six messages: the last stage, too, waits for its link. */
	t.in.answer = 1500000;
	partition_time(&t.in, &l, &p);
	assert_true(near(p.stages[1].link_s, 1.506 + 0.502) && p.link_bound);
	assert_true(near(p.step_s, 3 * 2.008 + 3.504));
}

static void
test_ring_time(void **state)
{
	(void)state;
	struct trial t;
	struct partition p;
	const struct layout l = {
	    .pipeline = 2, .replicas = 1, .ring = true, .cut = {0, 1, 2, 3}, .pieces = 5, .run = 3};

	three_layers(&t);
	partition_time(&t.in, &l, &p);
	/* Rank 0 computes 1.25 s. It flushes after 3 pieces and after 2. */
	double through = 1 + 1 + 0.25 + 2 * (0.502 + 0.101);
	assert_true(near(p.step_s, (2 * 1.25 + through) + (1 * 1.25 + through)));
	assert_true(near(p.bubble, 1 - 5 * 1.25 / p.step_s) && !p.link_bound);
	assert_true(near(p.stages[0].link_s, 0.502) && near(p.stages[1].link_s, 0.603));
	assert_true(near(p.stages[2].link_s, 0.101));
	assert_int_equal(p.stages[0].contexts, 3);
	assert_int_equal(p.stages[2].contexts, 1);
	assert_int_equal(p.stages[0].bytes, 5000 + 2 * 4001000 + 3 * 500000 + 1000);
	assert_int_equal(p.stages[2].bytes, 0);
	/* Both edges of rank 0 together are slower than its passes. */
	t.in.bytes_per_s = 400000;
	partition_time(&t.in, &l, &p);
	assert_true(p.stages[0].link_s < 1.26 && p.stages[2].link_s < 0.26 && p.link_bound);
	through = 2.25 + 2 * (1.252 + 0.251);
	assert_true(near(p.step_s, 3 * 1.503 + 2 * through));
}

static void
test_replicas_time(void **state)
{
	(void)state;
	struct trial t;
	struct partition p;
	const struct layout l = {
	    .pipeline = 2, .replicas = 2, .cut = {0, 1, 3}, .pieces = 5, .run = 2};

	three_layers(&t);
	partition_time(&t.in, &l, &p);
	assert_true(near(p.stages[0].compute_s, 2) && near(p.stages[1].compute_s, 1.5));
	/* To the other replica an input and an answer, to the own last stage an answer. */
	assert_true(near(p.stages[0].link_s, 0.502 + 0.101 + 2 * 0.051));
	/* Runs of 2, 2 and 1 pieces are two waves; half of 4 MB takes 2.008 s, longer than the one piece of the second. */
	double through = 2 + 1.5 + 2 * 0.502, exchange = 2.008;
	assert_true(near(p.step_s, (2 + through) + exchange + 2 * exchange));
	assert_true(near(p.bubble, 1 - 3 * 1.5 / p.step_s) && !p.link_bound);
	/* A ring's later waves fill and drain. */
	struct layout ring = l;
	ring.ring = true;
	ring.cut[2] = 2;
	ring.cut[3] = 3;
	partition_time(&t.in, &ring, &p);
	through = 2 + 1 + 0.5 + 2 * (0.502 + 0.101);
	exchange = 4001000.0 / 2 / 1e6 + 0.008;
	assert_true(near(p.step_s, (2.5 + through) + through + 2 * exchange));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_straight_time),
	    cmocka_unit_test(test_ring_time),
	    cmocka_unit_test(test_replicas_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
