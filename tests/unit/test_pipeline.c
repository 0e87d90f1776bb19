/* stages: gcc clang address */
/* The passes of a pipeline, played with sends that complete only when they are received, and passes of any length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"
#include "prng.h"

enum { RANKS = 8, BATCHES = 32, STAGES = RANKS + 1, GRADIENTS = 2 };

/* A batch at a stage: when it is there, and when it was done; 0: not yet. */
struct passes {
	double forward[STAGES][BATCHES], back[STAGES][BATCHES];
	/* A stage's output, and the gradient of its input, as its receiver has it. */
	double output[STAGES][BATCHES], gradient[STAGES][BATCHES];
};

struct play {
	const struct pipeline *s;
	struct passes p;
	double free_at[RANKS]; /* of a rank: its last pass ended */
	struct pipeline_op next[RANKS];
	bool has[RANKS];
	struct pipeline_at at[RANKS];
	struct prng random;
};

static uint32_t
contexts(const struct play *g, unsigned stage)
{
	return pipeline_contexts(g->s, stage);
}

static double
later(double a, double b)
{
	return a > b ? a : b;
}

/* When a receive for the batch can be posted: its room is free from then on. < 0: not yet known. */
static double
room(const double *freed, uint32_t batch, uint32_t rooms)
{
	if (batch < rooms)
		return 0.001;
	return freed[batch - rooms] > 0 ? freed[batch - rooms] : -1;
}

/* A message that was sent arrives once there is room for it. */
static double
arrives(struct play *g, double sent, double posted)
{
	return sent > 0 && posted >= 0 ? later(sent, posted) + prng_float(&g->random) : 0;
}

static void
travel(struct play *g)
{
	unsigned last = pipeline_last(g->s);

	for (unsigned s = 0; s <= last; s++)
		for (uint32_t b = 0; b < g->s->batches; b++) {
			struct passes *p = &g->p;
			if (s < last && p->output[s][b] <= 0)
				p->output[s][b] = arrives(g, p->forward[s][b],
				    room(p->back[s + 1], b, contexts(g, s + 1)));
			if (s > 0 && p->gradient[s][b] <= 0)
				p->gradient[s][b] =
				    arrives(g, p->back[s][b], room(p->back[s - 1], b, GRADIENTS));
		}
}

/* When the rank's next pass can begin: its operands are there, and what it writes over was received. 0: not yet. */
static double
begins(const struct play *g, const struct pipeline_op *op)
{
	const struct passes *p = &g->p;
	unsigned last = pipeline_last(g->s), s = op->stage;
	uint32_t b = op->batch, k = contexts(g, s);
	double need[3] = {1e-9, 1e-9, 1e-9};

	if (!op->back) {
		need[0] = s > 0 ? p->output[s - 1][b] : 1e-9;
		need[1] = b >= k ? p->back[s][b - k] : 1e-9;
		need[2] = b >= k && s < last ? p->output[s][b - k] : 1e-9;
	} else {
		need[0] = s < last ? p->gradient[s + 1][b] : 1e-9;
		need[1] = p->forward[s][b];
		need[2] = b >= GRADIENTS && s > 0 ? p->gradient[s][b - GRADIENTS] : 1e-9;
	}
	for (size_t i = 0; i < 3; i++)
		if (need[i] <= 0)
			return 0;
	return later(need[0], later(need[1], need[2]));
}

static bool
work(struct play *g, unsigned rank)
{
	const struct pipeline_op op = g->next[rank];
	double from = g->has[rank] ? begins(g, &op) : 0;

	if (from <= 0)
		return false;
	double *done = op.back ? &g->p.back[op.stage][op.batch] : &g->p.forward[op.stage][op.batch];
	assert_true(*done == 0);
	assert_int_equal(op.stage % g->s->ranks, rank);
	if (op.batch > 0)
		assert_true((op.back ? g->p.back : g->p.forward)[op.stage][op.batch - 1] > 0);
	g->free_at[rank] = later(g->free_at[rank], from) + 0.1 + prng_float(&g->random) * 9;
	*done = g->free_at[rank];
	g->has[rank] = pipeline_next(&g->at[rank], &g->next[rank]);
	return true;
}

/* No stage has more batches between forward and back than its contexts. */
static void
few_enough(const struct play *g, unsigned stage)
{
	uint32_t there = 0, back = 0;

	for (uint32_t b = 0; b < g->s->batches; b++) {
		there += g->p.forward[stage][b] > 0;
		back += g->p.back[stage][b] > 0;
	}
	assert_true(there - back <= contexts(g, stage));
}

static void
play(const struct pipeline *s, uint64_t seed)
{
	struct play g = {.s = s};
	unsigned last = pipeline_last(s);

	prng_seed(&g.random, seed);
	for (unsigned r = 0; r < s->ranks; r++) {
		g.at[r] = pipeline_begin(s, r);
		g.has[r] = pipeline_next(&g.at[r], &g.next[r]);
	}
	for (bool moves = true; moves;) {
		moves = false;
		travel(&g);
		for (unsigned r = 0; r < s->ranks; r++)
			while (work(&g, r))
				moves = true;
		for (unsigned stage = 0; stage <= last; stage++)
			few_enough(&g, stage);
	}
	for (unsigned r = 0; r < s->ranks; r++)
		assert_false(g.has[r]);
	for (unsigned stage = 0; stage <= last; stage++)
		for (uint32_t b = 0; b < s->batches; b++)
			assert_true(g.p.forward[stage][b] > 0 &&
			    g.p.back[stage][b] > g.p.forward[stage][b]);
}

static void
every_shape_ends(void **state)
{
	(void)state;
	for (unsigned ranks = 1; ranks <= RANKS; ranks++)
		for (uint32_t batches = 1; batches <= BATCHES; batches++)
			for (int ring = 0; ring <= (ranks > 1); ring++)
				for (uint64_t seed = 0; seed < 4; seed++)
					play(&(struct pipeline){ranks, ring, batches}, seed);
}

/* As the field's eager 1F1B has it: so many forward, then one each, then those that are left back. */
static void
order_of_a_stage(void **state)
{
	const struct pipeline s = {3, false, 6};
	char text[64] = "";
	struct pipeline_op op;

	(void)state;
	for (unsigned rank = 0; rank < 3; rank++) {
		struct pipeline_at at = pipeline_begin(&s, rank);
		size_t n = strlen(text);
		while (pipeline_next(&at, &op))
			text[n++] = op.back ? 'B' : 'F';
		text[n++] = ' ';
		text[n] = 0;
	}
	assert_string_equal(text, "FFFFFBFBBBBB FFFBFBFBFBBB FBFBFBFBFBFB ");
	assert_int_equal(pipeline_contexts(&s, 0), 5);
	assert_int_equal(pipeline_contexts(&s, 2), 1);
	const struct pipeline ring = {2, true, 6};
	assert_int_equal(pipeline_contexts(&ring, 0), 5);
	assert_int_equal(pipeline_contexts(&ring, 1), 3);
	assert_int_equal(pipeline_contexts(&ring, 2), 1);
	assert_int_equal(pipeline_contexts(&(struct pipeline){2, true, 3}, 0), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_shape_ends),
	    cmocka_unit_test(order_of_a_stage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
