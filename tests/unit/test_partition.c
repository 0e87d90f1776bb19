/* stages: gcc clang address */
/* Divisions of networks among ranks: the same as by trying them all, and what slow links, slow ranks and little memory lead to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "partition.h"
#include "prng.h"

enum { LAYERS = 12, RANKS = 12, TRIALS = 8000, LARGE = 256 };
#define NONE UINT64_MAX

static const double slow = 12.5e6, fast = 1.25e9; /* bytes a second: 100 Mb/s, 10 Gb/s */

/* A network, its ranks, and what counts bytes. */
struct trial {
	struct partition_layer layers[LARGE];
	struct partition_rank ranks[RANKS];
	struct partition_in in;
	uint64_t salt; /* of bytes that no rule foretells; 0: none */
	size_t alone; /* this layer and the next in one stage are impossible; 0: none */
	unsigned calls;
};

static uint64_t
bytes_of(void *context, const struct partition_range *r)
{
	struct trial *t = context;
	uint64_t bytes = (r->leads ? 5000 : 0) + r->replicas * 100;

	t->calls++;
	for (size_t i = 0; i < t->in.count; i++) {
		bool tail = r->tail_first && i >= r->tail_first;
		if ((i < r->first || i >= r->last) && !tail)
			continue;
		bytes += 2 * t->layers[i].gradient +
		    t->layers[i].out * (tail ? r->tail_contexts : r->contexts);
	}
	if (t->alone && r->first <= t->alone && r->last > t->alone + 1)
		return UINT64_MAX;
	return t->salt ? bytes + (r->first * 31 + r->last * 17 + t->salt) % 7 * 1000 : bytes;
}

static void
prepare(struct trial *t)
{
	t->in.layers = t->layers;
	t->in.ranks = t->ranks;
	t->in.bytes = bytes_of;
	t->in.context = t;
}

/* --- all divisions */

struct brute {
	struct trial *t;
	struct layout layout; /* the division in question */
	struct partition best;
	bool found;
	uint64_t crossing, lacking;
};

static uint64_t
lacks(struct brute *b)
{
	const struct layout *l = &b->layout;
	unsigned last = layout_last(l);
	uint64_t most = 0;

	for (unsigned rank = 0; rank < layout_ranks(l); rank++) {
		unsigned stage = rank % l->pipeline;
		bool both = l->ring && stage == 0;
		struct partition_range range = {.first = l->cut[stage],
		    .last = l->cut[stage + 1],
		    .tail_first = both ? l->cut[last] : 0,
		    .contexts = layout_contexts(l, stage),
		    .tail_contexts = both ? layout_contexts(l, last) : 0,
		    .replicas = l->replicas,
		    .leads = rank == 0};
		uint64_t bytes = bytes_of(b->t, &range), memory = b->t->ranks[rank].memory;
		if (bytes == UINT64_MAX)
			return NONE;
		if (memory && bytes > memory && bytes - memory > most)
			most = bytes - memory;
	}
	return most;
}

static bool
legal(const struct brute *b)
{
	const struct layout *l = &b->layout;
	const struct partition_in *in = &b->t->in;

	for (unsigned stage = 0; stage <= layout_last(l); stage++) {
		bool works = false;
		for (size_t i = l->cut[stage]; i < l->cut[stage + 1]; i++)
			works |= in->layers[i].works;
		if (!works)
			return false;
	}
	return !l->ring || (l->cut[1] > in->lender && l->cut[layout_last(l)] <= in->first_sharer);
}

static void
judge(struct brute *b)
{
	struct partition p;
	uint64_t crossing = 0, lacking = legal(b) ? lacks(b) : NONE;

	b->lacking = lacking < b->lacking ? lacking : b->lacking;
	if (lacking > 0)
		return;
	for (unsigned stage = 1; stage <= layout_last(&b->layout); stage++)
		crossing += b->t->layers[b->layout.cut[stage] - 1].out;
	partition_time(&b->t->in, &b->layout, &p);
	/* Cuts come in ascending order: of equals the first stays. */
	if (b->found &&
	    (p.step_s > b->best.step_s || (p.step_s == b->best.step_s && crossing >= b->crossing)))
		return;
	b->found = true;
	b->best = p;
	b->crossing = crossing;
}

static void
try_cuts(struct brute *b, unsigned stage)
{
	unsigned last = layout_last(&b->layout);

	if (stage > last) {
		b->layout.cut[stage] = (uint32_t)b->t->in.count;
		judge(b);
		return;
	}
	for (uint32_t at = b->layout.cut[stage - 1] + 1; at < b->t->in.count; at++)
		if (b->t->layers[at].cut) {
			b->layout.cut[stage] = at;
			try_cuts(b, stage + 1);
		}
}

static struct layout
layout_of(const struct partition_in *in, unsigned pipeline, unsigned replicas)
{
	return (struct layout){.pipeline = pipeline,
	    .replicas = replicas,
	    .ring = in->first_sharer > 0 && pipeline > 1,
	    .pieces = in->pieces,
	    .run = (in->pieces + in->groups - 1) / in->groups};
}

/* --- against the search */

/* Sums of these figures have no rounding; coarse ones are often equal. */
static void
draw(struct trial *t, struct prng *r)
{
	memset(t, 0, sizeof(*t));
	prepare(t);
	struct partition_in *in = &t->in;
	bool coarse = prng_below(r, 3) == 0, fixed = prng_below(r, 8) == 0;
	bool free_cuts = prng_below(r, 2), memory = prng_below(r, 2);

	in->count = LAYERS - prng_below(r, 1 + prng_below(r, LAYERS));
	for (size_t i = 0; i < in->count; i++)
		t->layers[i] = (struct partition_layer){
		    .forward_s = (double)prng_below(r, coarse ? 2 : 64) / (coarse ? 4 : 1024),
		    .back_s = coarse ? 0.25 : (double)prng_below(r, 128) / 1024,
		    .out = coarse ? 8192 * (1 + prng_below(r, 2)) : prng_below(r, 600000),
		    .gradient =
			fixed ? 0 : 6 * (coarse ? 1000 * prng_below(r, 3) : prng_below(r, 200000)),
		    .cut = free_cuts || prng_below(r, 4) > 0,
		    .works = free_cuts || prng_below(r, 4) > 0};
	in->rank_count = RANKS;
	for (unsigned i = 0; i < RANKS; i++)
		t->ranks[i] = (struct partition_rank){
		    .factor = coarse ? 1 : 0.5 * (double)(2 + prng_below(r, 4)),
		    .memory = memory ? 200000 + prng_below(r, 4000000) : 0};
	in->bytes_per_s = (double)((uint64_t)1 << (18 + prng_below(r, 9)));
	in->latency_s = (double)prng_below(r, 64) / 65536;
	if (coarse && prng_below(r, 2)) {
		in->bytes_per_s = INFINITY;
		in->latency_s = 0;
	}
	in->pieces = 1 + (uint32_t)prng_below(r, 13);
	in->groups = 1 + (uint32_t)prng_below(r, in->pieces);
	in->input = prng_below(r, 300000);
	in->answer = prng_below(r, 3000);
	t->salt = prng_below(r, 2) * prng_below(r, 100);
	t->alone = prng_below(r, 8) == 0 ? prng_below(r, LAYERS) : 0;
	if (prng_below(r, 2) && in->count > 1) {
		in->first_sharer = in->count - 1 - prng_below(r, (in->count + 1) / 2);
		in->lender = prng_below(r, in->first_sharer);
	}
}

/* How often the cases that matter came. */
struct seen {
	unsigned fits, short_of, none, rings, hybrids, linked;
};

static void
compare(struct trial *t, unsigned pipeline, unsigned replicas, struct seen *seen)
{
	struct brute b = {.t = t, .layout = layout_of(&t->in, pipeline, replicas), .lacking = NONE};
	struct partition p;
	uint64_t lacking;

	try_cuts(&b, 1);
	bool found = partition_best(&t->in, pipeline, replicas, &p, &lacking);
	assert_int_equal(found, b.found);
	seen->none += b.lacking == NONE;
	seen->short_of += !found && b.lacking != NONE;
	if (!found) {
		assert_int_equal(lacking, b.lacking);
		return;
	}
	assert_true(p.step_s == b.best.step_s);
	assert_memory_equal(p.layout.cut, b.best.layout.cut, sizeof(p.layout.cut));
	seen->fits++;
	seen->rings += p.layout.ring;
	seen->hybrids += pipeline > 1 && replicas > 1;
	seen->linked += p.link_bound;
}

static void
test_all_divisions(void **state)
{
	(void)state;
	struct seen seen = {0};
	struct trial t;
	struct prng r;

	prng_seed(&r, 33);
	for (int i = 0; i < TRIALS; i++) {
		draw(&t, &r);
		unsigned replicas = t.in.groups > 1 ? 1 + (unsigned)prng_below(&r, 3) : 1;
		unsigned pipeline = 1 + (unsigned)prng_below(&r, replicas > 1 ? 4 : 6);
		compare(&t, pipeline, replicas, &seen);
	}
	assert_true(seen.fits > TRIALS / 4 && seen.short_of > TRIALS / 20);
	assert_true(seen.none > TRIALS / 20 && seen.rings > TRIALS / 20);
	assert_true(seen.hybrids > TRIALS / 20 && seen.linked > TRIALS / 20);
}

/* --- the choice */

/* So many layers of 30 ms and as many ranks as there can be, all alike. */
static void
alike(struct trial *t, size_t count, double bytes_per_s)
{
	memset(t, 0, sizeof(*t));
	prepare(t);
	for (size_t i = 0; i < count; i++)
		t->layers[i] = (struct partition_layer){.forward_s = 0.01,
		    .back_s = 0.02,
		    .out = 4000,
		    .gradient = 40000,
		    .cut = true,
		    .works = true};
	for (unsigned i = 0; i < RANKS; i++)
		t->ranks[i].factor = 1;
	t->in.count = count;
	t->in.rank_count = 4;
	t->in.bytes_per_s = bytes_per_s;
	t->in.latency_s = 0.0001;
	t->in.pieces = 24;
	t->in.groups = 1;
	t->in.input = 4000;
	t->in.answer = 40;
}

static struct partition
choice(struct trial *t)
{
	struct partition p;
	uint64_t lacking;

	assert_true(partition_choose(&t->in, &p, &lacking));
	return p;
}

static unsigned
ranks_of(struct trial *t)
{
	struct partition p = choice(t);

	return layout_ranks(&p.layout);
}

static void
test_slow_links(void **state)
{
	(void)state;
	struct trial t;

	alike(&t, 8, slow);
	assert_int_equal(choice(&t).layout.pipeline, 4);
	/* An output of 1.5 MB takes 120 ms. With one cut that is what a rank computes; between two cuts it is twice as long. */
	for (size_t i = 0; i < 8; i++)
		t.layers[i].out = 1500000;
	assert_int_equal(choice(&t).layout.pipeline, 2);
	/* With 3.5 MB no cut pays. */
	for (size_t i = 0; i < 8; i++)
		t.layers[i].out = 3500000;
	struct partition p = choice(&t);
	assert_int_equal(p.layout.pipeline, 1);
	assert_false(p.link_bound);
	t.in.pipeline = 4;
	p = choice(&t);
	assert_int_equal(p.layout.pipeline, 4);
	assert_true(p.link_bound);
	t.in.pipeline = 0;
	t.in.bytes_per_s = fast;
	assert_int_equal(choice(&t).layout.pipeline, 4);
}

/* Pieces of 4 examples of 600 kB, or of 600 bytes. */
static void
test_large_examples(void **state)
{
	(void)state;
	struct trial t;

	alike(&t, 8, slow);
	t.in.rank_count = 3;
	t.in.groups = 6;
	t.in.replicable = true;
	for (size_t i = 1; i < 8; i++)
		t.layers[i].cut = false;
	assert_int_equal(choice(&t).layout.replicas, 3);
	t.in.input = 4 * 600000;
	assert_int_equal(ranks_of(&t), 2);
	t.in.replicas = 3;
	struct partition p = choice(&t);
	assert_int_equal(p.layout.replicas, 3);
	assert_true(p.link_bound);
	assert_true(p.stages[0].link_s > p.stages[0].compute_s);
}

/* A gradient of 40 MB is 2 x 1.6 s of a step whose waves take 0.96 s. */
static void
test_large_gradient(void **state)
{
	(void)state;
	struct trial t;

	alike(&t, 8, slow);
	t.in.groups = 6;
	t.in.replicable = true;
	t.in.replicas = 2;
	t.in.pipeline = 1;
	assert_false(choice(&t).link_bound);
	t.layers[3].gradient = 40000000;
	assert_true(choice(&t).link_bound);
	/* The two later waves of three take E, and so do the end and the sums. */
	double exchange = 40280000 / 2 / slow + 77 * 0.0001, wave = 4 * 8 * 0.03;
	assert_true(fabs(choice(&t).step_s - (wave + 4 * exchange)) < 1e-9);
}

static void
test_unequal_ranks(void **state)
{
	(void)state;
	struct trial t;

	alike(&t, 10, fast);
	t.in.pipeline = 3;
	t.ranks[0].factor = t.ranks[1].factor = 2;
	t.ranks[2].factor = 4;
	struct layout l = choice(&t).layout;
	assert_int_equal(l.cut[1], 4);
	assert_int_equal(l.cut[2], 8);
	assert_int_equal(l.cut[3], 10);
	/* The ranks' order stays: the slow one may come first. */
	t.ranks[0].factor = 4;
	t.ranks[2].factor = 2;
	l = choice(&t).layout;
	assert_int_equal(l.cut[1], 2);
	assert_int_equal(l.cut[2], 6);
}

/* 8 layers take 0.24 s a piece; what one more rank gains is decided by the pieces, since filling and draining costs a piece. */
static void
test_a_tenth(void **state)
{
	(void)state;
	struct trial t;
	struct partition one, two;
	uint64_t lacking;

	alike(&t, 8, fast);
	t.in.rank_count = 2;
	unsigned taken = 0;
	for (t.in.pieces = 2; t.in.pieces < 8; t.in.pieces++)
		for (int k = 0; k < 40; k++) {
			t.ranks[1].factor = 1 + k;
			assert_true(partition_best(&t.in, 1, 1, &one, &lacking));
			assert_true(partition_best(&t.in, 2, 1, &two, &lacking));
			bool pays = two.step_s <= 0.9 * one.step_s;
			assert_int_equal(choice(&t).layout.pipeline, pays ? 2 : 1);
			taken += pays;
		}
	assert_in_range(taken, 10, 200);
}

static void
test_freedom(void **state)
{
	(void)state;
	struct trial t;
	struct partition p;
	uint64_t lacking;

	alike(&t, 8, fast);
	/* Nothing to cut: replicas, where they are allowed. */
	for (size_t i = 1; i < 8; i++)
		t.layers[i].cut = false;
	t.in.groups = 8;
	assert_int_equal(ranks_of(&t), 1);
	t.in.replicable = true;
	assert_int_equal(choice(&t).layout.replicas, 4);
	t.in.groups = 1;
	assert_int_equal(ranks_of(&t), 1);
	/* A piece alone: no pipeline. */
	for (size_t i = 1; i < 8; i++)
		t.layers[i].cut = true;
	assert_int_equal(choice(&t).layout.pipeline, 4);
	t.in.pieces = 1;
	assert_int_equal(choice(&t).layout.pipeline, 1);
	t.in.pieces = 24;
	/* What is fixed and cannot be. */
	t.in.replicas = 2;
	assert_false(partition_choose(&t.in, &p, &lacking));
	assert_true(lacking == NONE);
	t.in.replicas = 0;
	t.in.pipeline = 5;
	assert_false(partition_choose(&t.in, &p, &lacking));
	assert_true(lacking == NONE);
}

/* What is lacking is that of the nearest division: here four ranks of two layers each. */
static void
test_lacking(void **state)
{
	(void)state;
	struct trial t;
	struct partition p;
	uint64_t lacking;

	alike(&t, 8, fast);
	for (unsigned i = 0; i < RANKS; i++)
		t.ranks[i].memory = 100000;
	assert_false(partition_choose(&t.in, &p, &lacking));
	struct layout l = layout_of(&t.in, 4, 1);
	/* Rank 0 leads and has 7 contexts: it gets one layer, and another rank three. */
	struct partition_range three = {
	    .first = 5, .last = 8, .contexts = layout_contexts(&l, 3), .replicas = 1};
	struct partition_range two = {.first = 0,
	    .last = 2,
	    .contexts = layout_contexts(&l, 0),
	    .replicas = 1,
	    .leads = true};
	uint64_t a = bytes_of(&t, &three), b = bytes_of(&t, &two);
	assert_true(lacking == (a < b ? a : b) - 100000);
	for (unsigned i = 0; i < RANKS; i++)
		t.ranks[i].memory += lacking;
	assert_int_equal(choice(&t).layout.pipeline, 4);
	t.ranks[0].memory = t.ranks[1].memory = t.ranks[2].memory = t.ranks[3].memory -= 1;
	assert_false(partition_choose(&t.in, &p, &lacking));
	assert_true(lacking == 1);
}

/* --- large networks: bytes are counted for few of all ranges */

static void
draw_large(struct trial *t, size_t count, size_t every)
{
	struct prng r;

	alike(t, count, slow);
	prng_seed(&r, count);
	t->in.rank_count = 8;
	for (size_t i = 0; i < count; i++) {
		t->layers[i].forward_s = prng_double(&r) / 100;
		t->layers[i].back_s = prng_double(&r) / 50;
		t->layers[i].out = prng_below(&r, 100000);
		t->layers[i].gradient = prng_below(&r, 100000);
		t->layers[i].cut = i % every == 0;
	}
	for (unsigned i = 0; i < 8; i++)
		t->ranks[i] =
		    (struct partition_rank){.factor = 1 + prng_double(&r), .memory = 1000000000};
}

/* No cut can move by one place and make a step quicker. */
static void
assert_least(struct trial *t, const struct partition *p)
{
	for (unsigned stage = 1; stage <= layout_last(&p->layout); stage++)
		for (int by = -1; by <= 1; by += 2) {
			struct brute b = {.t = t, .layout = p->layout, .lacking = NONE};
			do
				b.layout.cut[stage] += (uint32_t)by;
			while (b.layout.cut[stage] < t->in.count &&
			    !t->layers[b.layout.cut[stage]].cut);
			judge(&b);
			assert_true(!b.found || b.best.step_s > p->step_s - 1e-9);
		}
}

static void
test_large_networks(void **state)
{
	(void)state;
	const struct {
		unsigned pipeline, replicas;
		size_t every, sharer;
	} cases[] = {{8, 1, 1, 0}, {4, 2, 1, 0}, {8, 1, 4, 255}};
	struct trial t;
	struct partition p;
	uint64_t lacking;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		draw_large(&t, LARGE, cases[i].every);
		t.in.groups = 6;
		t.in.replicable = true;
		t.in.first_sharer = cases[i].sharer;
		assert_true(
		    partition_best(&t.in, cases[i].pipeline, cases[i].replicas, &p, &lacking));
		/* Of more than 30,000 ranges a middle stage may have, 2,000 of them with 64 cuts. */
		assert_in_range(t.calls, 8, 5000);
		assert_least(&t, &p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_all_divisions),
	    cmocka_unit_test(test_slow_links),
	    cmocka_unit_test(test_large_examples),
	    cmocka_unit_test(test_large_gradient),
	    cmocka_unit_test(test_unequal_ranks),
	    cmocka_unit_test(test_a_tenth),
	    cmocka_unit_test(test_freedom),
	    cmocka_unit_test(test_lacking),
	    cmocka_unit_test(test_large_networks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
