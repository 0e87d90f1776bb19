/* stages: gcc clang address */
/* A network whose first and last layers share a weight, cut into a ring: one part has both ends. With clipping and runs of batches it
 * learns what the whole learns, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "fingerprint.h"
#include "net_trial.h"
#include "tensor.h"

#define BATCH 2
#define MICRO 5 /* batches of a step */
#define STEPS 3
#define WORDS "\"window\": 6"
#define MODEL \
	"{\"layers\": [{\"type\": \"embedding\", \"name\": \"e\", \"vocabulary\": 23, \"out\": " \
	"8}, " \
	"{\"type\": \"dropout\", \"rate\": 0.2}, {\"type\": \"attention\", \"heads\": 2}, " \
	"{\"type\": \"layernorm\"}, " \
	"{\"type\": \"linear\", \"name\": \"a\", \"out\": 8}, {\"type\": \"gelu\"}, {\"type\": " \
	"\"linear\", \"out\": 8}, " \
	"{\"type\": \"linear\", \"name\": \"head\", \"out\": 23, \"weights\": \"e\"}], \"loss\": " \
	"\"cross_entropy\"}"

struct fixture {
	struct net_trial trial; /* BATCH x MICRO examples */
	struct net_update how;
};

/* Runs of two batches, the last of one. */
static bool
folds(const struct net_update *how, uint32_t i)
{
	return how->groups > 1 && (i % 2 == 1 || i + 1 == MICRO);
}

static struct net *
part(const struct fixture *f, struct net_part p)
{
	struct why why = {""};
	struct net *net;

	p.spec = &f->trial.recipe.net;
	p.max_batch = BATCH;
	p.train = true;
	if (net_new_part(&net, &p, &why) || net_prepare(net, &f->how, &why))
		fail_msg("%s", why.text);
	net_init(net, 4);
	return net;
}

static struct net_batch
micro(const struct fixture *f, uint32_t i, const struct draw *draw)
{
	const struct net_batch *all = &f->trial.batch;

	return (struct net_batch){.x = all->x + i * BATCH * 6,
	    .labels = all->labels + i * BATCH * 6,
	    .n = BATCH,
	    .draw = draw};
}

/* What is complete of a run's gradient. */
struct heard {
	size_t tensors, elements;
	double sum; /* of the elements */
};

static void
hear(void *context, size_t first, const float *gradient, size_t count)
{
	struct heard *h = context;

	(void)first;
	for (size_t i = 0; i < count; i++)
		h->sum += (double)gradient[i];
	h->elements += count;
	h->tensors++;
}

struct ring {
	struct net *ends, *middle; /* layers [0, 3) and [7, 8); [3, 7) */
	float gradient[2][BATCH * 6 * 8];
	struct heard heard[2];
};

static void
go(struct ring *r, const struct fixture *f, uint32_t i, const struct draw *draw, bool last,
    struct net_result *result)
{
	struct net_batch b = micro(f, i, draw), next = b;
	struct net_gradients g = {.share = 1.0f / MICRO, .input = r->gradient[1]};

	assert_int_equal(net_forward(r->ends, i % 2, &b), ERR_OK);
	next.x = net_context_output(r->ends, i % 2);
	assert_int_equal(net_forward(r->middle, 0, &next), ERR_OK);
	b.x = net_context_output(r->middle, 0);
	/* Behind those of the first range. */
	assert_int_equal(net_forward(r->ends, 2, &b), ERR_OK);
	if (last) {
		memset(r->heard, 0, sizeof(r->heard));
		g.complete = hear;
		g.context = &r->heard[0];
	}
	assert_int_equal(net_backward(r->ends, 2, &g, result), ERR_OK);
	g.output = r->gradient[1];
	g.input = r->gradient[0];
	g.context = &r->heard[1];
	assert_int_equal(net_backward(r->middle, 0, &g, NULL), ERR_OK);
	g.output = r->gradient[0];
	g.input = NULL;
	g.context = &r->heard[0];
	assert_int_equal(net_backward(r->ends, i % 2, &g, NULL), ERR_OK);
}

static void
move(struct ring *r, const struct net_update *how)
{
	double lanes[NET_NORM_LANES] = {0};
	float factor = 1;

	if (how->clip > 0) {
		net_norm(r->ends, how, 0, lanes);
		net_norm(r->middle, how, 0, lanes);
		net_norm(r->ends, how, 1, lanes);
		factor = net_norm_factor(how, lanes);
		assert_true(factor < 1);
	}
	net_move_scaled(r->ends, how, factor);
	net_move_scaled(r->middle, how, factor);
}

static void
same_tensors(struct net *whole, struct net *other)
{
	const struct tensor_table *all = net_tensors(whole), *some = net_tensors(other);

	for (size_t i = 0; i < some->count; i++) {
		const struct tensor *t = tensor_table_find(all, some->items[i].name);
		assert_memory_equal(net_params(whole) + t->begin / sizeof(float),
		    net_params(other) + some->items[i].begin / sizeof(float), t->end - t->begin);
	}
}

/* Every tensor once. */
static void
heard_all(const struct ring *r, const struct net *whole)
{
	assert_int_equal(r->heard[0].tensors + r->heard[1].tensors, net_tensors(whole)->count);
	assert_int_equal(r->heard[0].elements, net_tensors(r->ends)->elements);
	assert_int_equal(r->heard[1].elements, net_tensors(r->middle)->elements);
	assert_true(r->heard[0].sum != 0 && r->heard[1].sum != 0);
}

/* print: of the parameters after the last step, on every machine. */
static void
check(const struct net_update *how, bool recompute, uint64_t print)
{
	struct fixture f;
	struct ring r = {.ends = NULL};
	struct net_result want, got;

	net_trial_begin(&f.trial, BATCH * MICRO, WORDS, MODEL);
	f.how = *how;
	f.how.parts = MICRO;
	struct net *whole = part(&f, (struct net_part){.last = 8, .contexts = 1});
	r.ends = part(&f,
	    (struct net_part){.last = 3, .contexts = 2, .tail = {7, 8, 1}, .recompute = recompute});
	r.middle = part(
	    &f, (struct net_part){.first = 3, .last = 7, .contexts = 1, .recompute = recompute});
	assert_int_equal(net_range_edges(r.ends, 0).in, 6);
	assert_int_equal(net_range_edges(r.ends, 0).out, 48);
	assert_int_equal(net_range_edges(r.ends, 1).in, 48);
	for (uint64_t k = 0; k < STEPS; k++) {
		for (uint32_t i = 0; i < MICRO; i++) {
			const struct draw draw = {.seed = 6, .step = k, .micro_batch = i};
			const struct net_batch b = micro(&f, i, &draw);
			bool last = folds(how, i) || i + 1 == MICRO;
			assert_int_equal(net_add(whole, &b, 1.0f / MICRO, &want), ERR_OK);
			go(&r, &f, i, &draw, last, &got);
			assert_true(want.loss == got.loss && want.right == got.right);
			if (last)
				heard_all(&r, whole);
			if (folds(how, i)) {
				net_fold(whole);
				net_fold(r.ends);
				net_fold(r.middle);
			}
		}
		net_move(whole, &f.how);
		move(&r, &f.how);
		same_tensors(whole, r.ends);
		same_tensors(whole, r.middle);
	}
	uint64_t got_print = fingerprint(net_params(whole), net_tensors(whole)->bytes);
	if (got_print != print)
		fail_msg("fingerprint 0x%016llx", (unsigned long long)got_print);
	net_free(whole);
	net_free(r.ends);
	net_free(r.middle);
	net_trial_end(&f.trial);
}

static const struct net_update adam = {.type = OPTIMIZER_ADAM,
    .rate = 0.01f,
    .beta1 = 0.9,
    .beta2 = 0.99,
    .epsilon = 1e-8,
    .clip = 0.05};
static const struct net_update momentum = {
    .rate = 0.05f, .momentum = 0.9f, .prox = 0.3f, .clip = 0.05, .groups = 3};

static void
a_ring(void **state)
{
	(void)state;
	check(&(struct net_update){.rate = 0.1f}, false, 0x0e9e9f91b1c56626u);
	check(&adam, false, 0xa230ad63b80b2affu);
	check(&momentum, false, 0xc4d586161fb21fc8u);
	check(&momentum, true, 0xc4d586161fb21fc8u);
}

/* The caller adds up the runs. */
static void
handed_over(void **state)
{
	struct fixture f;
	struct net_result result;

	(void)state;
	net_trial_begin(&f.trial, BATCH * MICRO, WORDS, MODEL);
	f.how = momentum;
	f.how.parts = MICRO;
	const struct net_part p = {.last = 8, .contexts = 1};
	struct net *one = part(&f, p), *two = part(&f, p);
	size_t n = (size_t)net_tensors(one)->elements;
	float *total = malloc(n * sizeof(*total)), *run = NULL;
	for (uint64_t k = 0; k < STEPS; k++) {
		for (uint32_t i = 0; i < MICRO; i++) {
			const struct draw draw = {.seed = 6, .step = k, .micro_batch = i};
			const struct net_batch b = micro(&f, i, &draw);
			assert_int_equal(net_add(one, &b, 1.0f / MICRO, &result), ERR_OK);
			assert_int_equal(net_add(two, &b, 1.0f / MICRO, &result), ERR_OK);
			if (!folds(&f.how, i))
				continue;
			net_fold(one);
			run = net_hand(two);
			for (size_t e = 0; e < n; e++)
				total[e] = i < 2 ? run[e] : total[e] + run[e];
		}
		memcpy(run, total, n * sizeof(*run));
		net_move(one, &f.how);
		net_move(two, &f.how);
		assert_memory_equal(net_params(one), net_params(two), n * sizeof(float));
	}
	free(total);
	net_free(one);
	net_free(two);
	net_trial_end(&f.trial);
}

/* Of an evaluation there is no way back, and dropout has no part in it. */
static void
looks(void **state)
{
	struct fixture f;
	struct net_result want, got = {.loss = 0};
	const struct draw draw = {.seed = 6};

	(void)state;
	net_trial_begin(&f.trial, BATCH * MICRO, WORDS, MODEL);
	f.how = (struct net_update){.rate = 0.1f, .parts = MICRO};
	struct net *whole = part(&f, (struct net_part){.last = 8, .contexts = 1});
	struct net *ends = part(&f, (struct net_part){.last = 3, .contexts = 2, .tail = {7, 8, 1}});
	struct net *middle = part(&f, (struct net_part){.first = 3, .last = 7, .contexts = 1});
	struct net_batch b = micro(&f, 1, &draw);
	assert_int_equal(net_eval(whole, &b, &want), ERR_OK);
	assert_int_equal(net_eval(ends, &b, &got), ERR_STATE);
	assert_int_equal(net_look(ends, 1, &b, &got), ERR_OK);
	assert_true(got.loss == 0);
	b.x = net_context_output(ends, 1);
	assert_int_equal(net_look(middle, 0, &b, &got), ERR_OK);
	b.x = net_context_output(middle, 0);
	assert_int_equal(net_look(ends, 2, &b, &got), ERR_OK);
	assert_true(got.loss == want.loss && got.right == want.right && got.labels == want.labels);
	assert_int_equal(
	    net_backward(ends, 1, &(struct net_gradients){.output = b.x}, &got), ERR_STATE);
	assert_int_equal(net_look(ends, 3, &b, &got), ERR_INVALID);
	net_free(whole);
	net_free(ends);
	net_free(middle);
	net_trial_end(&f.trial);
}

/* Layers of two parts share no weight; the second range lies behind a gap. */
static void
refused(void **state)
{
	struct net_trial t;
	struct net *net = NULL;
	struct why why = {""};

	(void)state;
	net_trial_begin(&t, 1, WORDS, MODEL);
	struct net_part p = {.spec = &t.recipe.net, .last = 3, .max_batch = 1, .contexts = 1};
	assert_int_equal(net_new_part(&net, &p, &why), ERR_UNSUPPORTED);
	assert_string_equal(
	    why.text, "layer \"head\" uses the weight of \"e\", which is in another part");
	p.tail.first = 3;
	p.tail.last = 8;
	p.tail.contexts = 1;
	assert_int_equal(net_new_part(&net, &p, &why), ERR_INVALID);
	p.tail.first = 7;
	p.tail.contexts = 0;
	assert_int_equal(net_new_part(&net, &p, &why), ERR_INVALID);
	p.tail.contexts = 1;
	assert_int_equal(net_new_part(&net, &p, &why), ERR_OK);
	net_free(net);
	net_trial_end(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_ring),
	    cmocka_unit_test(handed_over),
	    cmocka_unit_test(looks),
	    cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
