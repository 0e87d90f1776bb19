/* stages: gcc clang address */
/* Where a net's memory lies: the sums of plan.h, written out by hand, and that no two things that live at once overlap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena.h"
#include "backend_cpu.h"
#include "graph.h"
#include "nets.h"
#include "plan.h"
#include "prng.h"

static size_t
lines(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

struct planned {
	struct graph graph;
	struct plan plan;
	struct plan_want want;
};

static struct planned
plan_of(const struct nets *n, struct plan_want want)
{
	struct planned p = {.want = want};
	struct why why = {""};

	const struct net_part whole = {.spec = &n->spec, .last = n->spec.layer_count};
	if (graph_build(&p.graph, &whole, &backend_cpu, &why) ||
	    plan_passes(&p.plan, p.graph.layers, p.graph.count, &want, &why))
		fail_msg("%s", why.text);
	return p;
}

/* 2NN: the flatten layer is the input; each ReLU writes over its input. The gradient of the last layer is gone when that of the first
 * begins. */
static void
two_layers(void **state)
{
	struct nets n;
	const size_t wide = 2 * lines(4 * 10 * 200), outputs = wide + lines(4 * 10 * 10);

	(void)state;
	nets_2nn(&n);
	struct planned p = plan_of(
	    &n, (struct plan_want){.max_batch = 10, .contexts = 3, .threads = 1, .train = true});
	assert_int_equal(p.plan.work_at, wide);
	assert_int_equal(p.plan.shared, wide + lines(4 * 200));
	assert_int_equal(p.plan.context, outputs);
	assert_int_equal(p.plan.passes, p.plan.shared + 3 * outputs);
	graph_deinit(&p.graph);
	p = plan_of(&n, (struct plan_want){.max_batch = 10, .contexts = 1, .threads = 1});
	assert_int_equal(p.plan.shared, wide + lines(4 * 200));
	assert_int_equal(p.plan.passes, outputs + lines(4 * 200));
	graph_deinit(&p.graph);
	/* As a later part the flatten layer hands a gradient on. */
	p = plan_of(&n,
	    (struct plan_want){.max_batch = 10,
		.contexts = 1,
		.threads = 1,
		.train = true,
		.input_gradient = true});
	assert_int_equal(p.graph.layers[0].dx_at[0], LAYER_OUTSIDE);
	graph_deinit(&p.graph);
}

/* Convolution, pool with what it keeps for the way back, dropout over its input. Nobody reads the convolution's output on the way back. */
static void
kept(void **state)
{
	struct nets n;
	const size_t batch = 5, conv = lines(4 * batch * 3 * 8 * 8), pool = lines(4 * batch * 48);

	(void)state;
	nets_start(&n, 2, 8, 8, LOSS_CROSS_ENTROPY);
	nets_conv(&n, "conv", 3, 3, 1);
	nets_window(&n, LAYER_MAXPOOL2D, "pool", 2, 2, 0);
	nets_add(&n, LAYER_DROPOUT, "drop")->rate = 0.5f;
	nets_add(&n, LAYER_FLATTEN, "flat");
	nets_linear(&n, "fc", 4);
	struct planned p = plan_of(
	    &n, (struct plan_want){.max_batch = 5, .contexts = 2, .threads = 1, .train = true});
	assert_int_equal(p.plan.work_at, conv + pool);
	assert_true(p.graph.layers[0].y_shared && p.graph.layers[1].x_shared[0]);
	/* The pool's output and places, a byte of the dropout for each. */
	assert_int_equal(p.plan.context, 2 * pool + lines(batch * 48) + lines(4 * batch * 4));
	assert_int_equal(p.plan.shared,
	    p.plan.work_at + lines(4 * (p.graph.layers[0].work + p.graph.layers[0].work_lane)));
	graph_deinit(&p.graph);
}

/* The gradient of the loss has a place even where nothing trains. */
static void
nothing_trains(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 100, 1, 1, LOSS_MSE);
	nets_add(&n, LAYER_DROPOUT, "a");
	nets_add(&n, LAYER_RELU, "b");
	struct planned p = plan_of(
	    &n, (struct plan_want){.max_batch = 2, .contexts = 1, .threads = 1, .train = true});
	assert_int_equal(p.graph.layers[0].dy_at, LAYER_NOWHERE);
	assert_int_equal(p.graph.layers[1].dy_at, 0);
	assert_int_equal(p.graph.layers[0].kept_at, LAYER_NOWHERE);
	assert_int_equal(p.plan.shared, lines(800) + lines(400));
	assert_int_equal(p.plan.context, lines(800));
	graph_deinit(&p.graph);
}

static void
state_block(void **state)
{
	size_t bytes;

	(void)state;
	assert_true(plan_state(35, 4, &bytes) && bytes == 4 * lines(140));
	assert_true(plan_state(16, 1, &bytes) && bytes == 64);
	assert_true(plan_state(0, 3, &bytes) && bytes == 0);
	assert_false(plan_state(UINT64_MAX, 1, &bytes));
	assert_false(plan_state(SIZE_MAX / 8, 4, &bytes));
}

struct stretch {
	size_t at, bytes;
};

static void
apart(const struct stretch *s, size_t count, size_t end)
{
	for (size_t i = 0; i < count; i++) {
		assert_true(s[i].at % 64 == 0 && s[i].at + s[i].bytes <= end);
		for (size_t k = 0; k < i; k++)
			assert_true(s[i].at + s[i].bytes <= s[k].at ||
			    s[k].at + s[k].bytes <= s[i].at || s[i].bytes == 0 || s[k].bytes == 0);
	}
}

/* In three networks, outputs that stay and what is kept have places of their own, and so have gradients of neighbours. */
static void
nothing_overlaps(void **state)
{
	void (*const makes[])(struct nets *) = {nets_2nn, nets_lenet, nets_cnn};

	(void)state;
	for (size_t m = 0; m < 3; m++) {
		struct nets n;
		struct stretch forward[64];
		size_t f = 0;
		makes[m](&n);
		struct planned p = plan_of(&n,
		    (struct plan_want){.max_batch = 7,
			.contexts = 2,
			.threads = 1,
			.train = true,
			.input_gradient = true});
		for (size_t i = 0; i < p.graph.count; i++) {
			const struct layer *l = &p.graph.layers[i];
			if (l->kept_at != LAYER_NOWHERE)
				forward[f++] = (struct stretch){l->kept_at, 7 * l->saved};
			if (!l->in_place && !l->y_shared && l->y_at != LAYER_OUTSIDE)
				forward[f++] = (struct stretch){l->y_at, 28 * l->out.size};
			const struct stretch near[2] = {
			    {l->dy_at, 28 * l->out.size}, {l->dx_at[0], 28 * l->in[0].size}};
			if (!l->in_place && l->trains && l->dx_at[0] < LAYER_OUTSIDE)
				apart(near, 2, p.plan.work_at);
			if (i > 0 && l->spec.inputs[0] >= 0)
				assert_int_equal(
				    l->x_at[0], p.graph.layers[l->spec.inputs[0]].y_at);
		}
		apart(forward, f, p.plan.context);
		graph_deinit(&p.graph);
	}
}

/* Two that live at once never overlap, whatever their lives; fewer bytes than one place each. */
static void
arena(void **state)
{
	struct arena_item items[60];
	struct prng r;
	size_t end, sum = 0;

	(void)state;
	prng_seed(&r, 3);
	for (size_t i = 0; i < 60; i++) {
		unsigned from = (unsigned)prng_below(&r, 40), again = (unsigned)prng_below(&r, 40);
		items[i] = (struct arena_item){.bytes = prng_below(&r, 1000),
		    .from = {from, again},
		    .to = {from + (unsigned)prng_below(&r, 6), i % 3 ? 0 : again + 2}};
		if (i % 3 && again == 0)
			items[i].from[1] = 1;
		sum += lines(items[i].bytes);
	}
	assert_true(arena_place(items, 60, &end));
	assert_true(end < sum * 3 / 4);
	for (size_t i = 0; i < 60; i++)
		for (size_t k = 0; k < i; k++) {
			const struct arena_item *a = &items[i], *b = &items[k];
			bool meet = false;
			for (unsigned t = 0; t < 50; t++)
				meet |= ((t >= a->from[0] && t <= a->to[0]) ||
					    (t >= a->from[1] && t <= a->to[1])) &&
				    ((t >= b->from[0] && t <= b->to[0]) ||
					(t >= b->from[1] && t <= b->to[1]));
			assert_true(!meet || a->at + a->bytes <= b->at ||
			    b->at + b->bytes <= a->at || a->bytes == 0 || b->bytes == 0);
		}
	items[0].bytes = SIZE_MAX;
	assert_false(arena_place(items, 60, &end));
}

static void
too_large(void **state)
{
	struct nets n;
	struct graph g;
	struct plan p;
	struct why why = {""};
	struct plan_want want = {
	    .max_batch = UINT32_MAX, .contexts = UINT32_MAX, .threads = 1, .train = true};

	(void)state;
	nets_start(&n, 1 << 20, 1, 1, LOSS_MSE);
	nets_linear(&n, "wide", 1 << 20);
	assert_int_equal(
	    graph_build(&g, &(struct net_part){.spec = &n.spec, .last = 1}, &backend_cpu, &why),
	    ERR_OK);
	assert_int_equal(plan_passes(&p, g.layers, g.count, &want, &why), ERR_LIMIT);
	assert_true(*why.text);
	graph_deinit(&g);
}

/* A table without a layer refuses the whole net, by the layer's name. */
static void
missing_layer(void **state)
{
	struct backend some = backend_cpu;
	struct nets n;
	struct graph g;
	struct why why = {""};

	(void)state;
	some.name = "some";
	some.layers[LAYER_RELU] = NULL;
	nets_2nn(&n);
	assert_int_equal(
	    graph_build(&g, &(struct net_part){.spec = &n.spec, .last = 6}, &some, &why),
	    ERR_UNSUPPORTED);
	assert_string_equal(why.text, "layer \"relu1\": not on the back end some");
	assert_int_equal(
	    graph_build(&g, &(struct net_part){.spec = &n.spec, .last = 2}, &some, &why), ERR_OK);
	graph_deinit(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(two_layers),
	    cmocka_unit_test(kept),
	    cmocka_unit_test(nothing_trains),
	    cmocka_unit_test(state_block),
	    cmocka_unit_test(nothing_overlaps),
	    cmocka_unit_test(arena),
	    cmocka_unit_test(too_large),
	    cmocka_unit_test(missing_layer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
