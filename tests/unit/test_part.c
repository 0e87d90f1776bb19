/* stages: gcc clang address */
/* A network cut into parts, with several batches on their way, learns what the whole learns, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "net.h"
#include "nets.h"
#include "prng.h"
#include "tensor.h"

#define BATCH 5
#define MICRO 3 /* batches of a step, the last one smaller */
#define EXAMPLES 13
#define INPUTS ((size_t)2 * 9 * 9)
#define PARTS_MAX 4

/* Every type of layer; a sum of two ways within, dropout before and behind it. */
static void
residual(struct nets *n)
{
	nets_start(n, 2, 9, 9, LOSS_CROSS_ENTROPY);
	nets_conv(n, "conv1", 4, 3, 1); /* 0 */
	nets_add(n, LAYER_RELU, "relu1");
	nets_window(n, LAYER_MAXPOOL2D, "pool1", 2, 2, 0);
	nets_add(n, LAYER_DROPOUT, "drop1")->rate = 0.25f; /* 3 */
	nets_conv(n, "conv2", 4, 3, 1);
	struct layer_spec *sum = nets_add(n, LAYER_ADD, "sum"); /* 5 */
	sum->input_count = 2;
	sum->inputs[1] = 3;
	nets_add(n, LAYER_RELU, "relu2");
	nets_window(n, LAYER_AVGPOOL2D, "pool2", 2, 1, 0);
	nets_add(n, LAYER_FLATTEN, "flatten"); /* 8 */
	nets_linear(n, "fc1", 20);
	nets_add(n, LAYER_RELU, "relu3");
	nets_add(n, LAYER_DROPOUT, "drop2")->rate = 0.5f;
	nets_linear(n, "fc2", 10); /* 12 */
}

struct fixture {
	struct nets nets;
	struct net_update how;
	float x[EXAMPLES * INPUTS];
	int32_t labels[EXAMPLES];
};

static void
begin(struct fixture *f, const struct net_update *how)
{
	struct prng r;

	*f = (struct fixture){.how = *how};
	f->how.parts = MICRO;
	residual(&f->nets);
	prng_seed(&r, 8);
	for (size_t i = 0; i < EXAMPLES * INPUTS; i++)
		f->x[i] = prng_float(&r) - 0.5f;
	for (size_t i = 0; i < EXAMPLES; i++)
		f->labels[i] = (int32_t)prng_below(&r, 10);
}

static struct net_batch
micro(const struct fixture *f, uint32_t i, const struct draw *draw)
{
	uint32_t at = i * BATCH;

	return (struct net_batch){.x = f->x + at * INPUTS,
	    .labels = f->labels + at,
	    .n = EXAMPLES - at < BATCH ? EXAMPLES - at : BATCH,
	    .draw = draw};
}

static struct net *
part(const struct fixture *f, size_t first, size_t last, uint32_t contexts)
{
	const struct net_part p = {.spec = &f->nets.spec,
	    .classes = 10,
	    .first = first,
	    .last = last,
	    .max_batch = BATCH,
	    .contexts = contexts,
	    .train = true};
	struct why why = {""};
	struct net *net;

	if (net_new_part(&net, &p, &why) || net_prepare(net, &f->how, &why))
		fail_msg("[%zu, %zu): %s", first, last, why.text);
	net_init(net, 4);
	return net;
}

/* The parts' networks, and what lies between two of them for each context. */
struct line {
	struct net *nets[PARTS_MAX];
	size_t count;
	float *gradient[PARTS_MAX];
	struct draw draws[MICRO];
};

static void
go(struct line *l, const struct fixture *f, uint32_t i)
{
	struct net_batch b = micro(f, i, &l->draws[i]);

	for (size_t p = 0; p < l->count; p++) {
		assert_int_equal(net_forward(l->nets[p], i, &b), ERR_OK);
		b.x = net_context_output(l->nets[p], i);
	}
}

static void
come_back(struct line *l, const struct fixture *f, uint32_t i, struct net_result *result)
{
	struct net_gradients g = {.share = (float)micro(f, i, NULL).n / EXAMPLES};

	for (size_t p = l->count; p-- > 0;) {
		g.output = p + 1 < l->count ? l->gradient[p + 1] : NULL;
		g.input = p > 0 ? l->gradient[p] : NULL;
		assert_int_equal(net_backward(l->nets[p], i, &g, result), ERR_OK);
	}
}

/* One after the other, or all forward before the first comes back, or a mixture. */
static void
step(struct line *l, const struct fixture *f, const char *order, struct net_result *result)
{
	uint32_t there = 0, back = 0;

	for (; *order; order++)
		if (*order == 'F')
			go(l, f, there++);
		else {
			come_back(l, f, back, &result[back]);
			back++;
		}
	for (size_t p = 0; p < l->count; p++)
		net_move(l->nets[p], &f->how);
}

static void
same_as_whole(const struct fixture *f, const size_t *cuts, size_t count, const char *order)
{
	struct line l = {.count = count};
	struct net *whole = part(f, 0, f->nets.spec.layer_count, 1);
	struct net_result want, got[MICRO];

	for (size_t p = 0; p < count; p++) {
		l.nets[p] = part(f, cuts[p], cuts[p + 1], MICRO);
		l.gradient[p] = malloc(BATCH * net_inputs(l.nets[p]) * sizeof(float));
	}
	for (uint64_t k = 0; k < 4; k++) {
		for (uint32_t i = 0; i < MICRO; i++)
			l.draws[i] = (struct draw){.seed = 6, .step = k, .micro_batch = i};
		step(&l, f, order, got);
		for (uint32_t i = 0; i < MICRO; i++) {
			struct net_batch b = micro(f, i, &l.draws[i]);
			assert_int_equal(net_add(whole, &b, (float)b.n / EXAMPLES, &want), ERR_OK);
			assert_true(want.loss == got[i].loss && want.right == got[i].right);
		}
		net_move(whole, &f->how);
	}
	const float *w = net_params(whole);
	for (size_t p = 0; p < count; p++) {
		const struct tensor_table *t = net_tensors(l.nets[p]);
		assert_memory_equal(w, net_params(l.nets[p]), t->bytes);
		w += t->elements;
		net_free(l.nets[p]);
		free(l.gradient[p]);
	}
	assert_true(w == net_params(whole) + net_tensors(whole)->elements);
	net_free(whole);
}

static void
every_cut(void **state)
{
	static const size_t allowed[] = {1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12};
	struct fixture f;

	(void)state;
	begin(&f, &(struct net_update){.rate = 0.1f, .momentum = 0.9f, .weight_decay = 1e-3f});
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		same_as_whole(&f, (const size_t[]){0, allowed[i], 13}, 2, "FFBFBB");
}

static void
orders(void **state)
{
	static const char *const all[] = {"FBFBFB", "FFFBBB", "FFBFBB", "FBFFBB"};
	struct fixture f;

	(void)state;
	begin(&f, &(struct net_update){.rate = 0.1f});
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		same_as_whole(&f, (const size_t[]){0, 3, 8, 9, 13}, 4, all[i]);
}

static void
optimizers(void **state)
{
	static const struct net_update ways[] = {
	    {.rate = 0.05f, .momentum = 0.9f, .nesterov = true, .prox = 0.1f},
	    {.type = OPTIMIZER_ADAMW,
		.rate = 3e-3f,
		.weight_decay = 0.1f,
		.beta1 = 0.9,
		.beta2 = 0.99,
		.epsilon = 1e-8}};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		begin(&f, &ways[i]);
		same_as_whole(&f, (const size_t[]){0, 6, 13}, 2, "FFBFBB");
	}
}

/* Only its own tensors, named and drawn as in the whole. */
static void
own_parameters(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, &(struct net_update){.rate = 0.1f});
	struct net *whole = part(&f, 0, 13, 1), *middle = part(&f, 4, 9, 1),
		   *end = part(&f, 9, 13, 1);
	const struct tensor_table *t = net_tensors(middle);
	assert_int_equal(t->count, 2);
	assert_string_equal(t->items[0].name, "conv2.weight");
	assert_int_equal(net_inputs(middle), 64);
	assert_int_equal(net_outputs(middle), 36);
	const struct tensor *first = tensor_table_find(net_tensors(whole), "conv2.weight");
	assert_memory_equal(net_params(middle), net_params(whole) + first->first, t->bytes);
	assert_string_equal(net_tensors(end)->items[0].name, "fc1.weight");
	net_free(whole);
	net_free(middle);
	net_free(end);
}

/* Between the dropout and the sum two tensors cross. */
static void
refused_cuts(void **state)
{
	struct fixture f;
	struct net *net = NULL;
	struct why why = {""};

	(void)state;
	begin(&f, &(struct net_update){.rate = 0.1f});
	struct net_part p = {
	    .spec = &f.nets.spec, .classes = 10, .last = 5, .max_batch = 1, .contexts = 1};
	assert_int_equal(net_new_part(&net, &p, &why), ERR_UNSUPPORTED);
	assert_string_equal(
	    why.text, "layer \"sum\" reads \"drop1\" across the cut before \"sum\"");
	p.first = 5;
	p.last = 13;
	assert_int_equal(net_new_part(&net, &p, &why), ERR_UNSUPPORTED);
	f.nets.layers[5].inputs[1] = LAYER_INPUT;
	assert_int_equal(net_new_part(&net, &p, &why), ERR_UNSUPPORTED);
	assert_string_equal(
	    why.text, "layer \"sum\" reads \"input\" across the cut before \"sum\"");
	const size_t none[][2] = {{3, 3}, {4, 3}, {0, 14}, {13, 13}, {SIZE_MAX, 13}};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		p.first = none[i][0];
		p.last = none[i][1];
		assert_int_equal(net_new_part(&net, &p, &why), ERR_INVALID);
	}
	p = (struct net_part){.spec = &f.nets.spec, .last = 3, .max_batch = 1};
	assert_int_equal(net_new_part(&net, &p, &why), ERR_INVALID);
	assert_string_equal(why.text, "a net needs a context");
	assert_null(net);
}

/* What a text says next has no names, whichever part has the embedding. */
static void
unnamed_classes(void **state)
{
	struct nets n;
	struct net *net = NULL;
	struct why why = {""};

	(void)state;
	nets_start(&n, 6, 1, 1, LOSS_CROSS_ENTROPY);
	struct layer_spec *embedding = nets_add(&n, LAYER_EMBEDDING, "embedding");
	embedding->vocabulary = 20;
	embedding->out = 4;
	nets_linear(&n, "head", 20);
	struct net_part p = {.spec = &n.spec, .first = 1, .last = 2, .max_batch = 1, .contexts = 1};
	assert_int_equal(net_new_part(&net, &p, &why), ERR_OK);
	assert_int_equal(net_vocabulary(net), 0);
	net_free(net);
	p.classes = 19;
	assert_int_equal(net_new_part(&net, &p, &why), ERR_INVALID);
	assert_string_equal(why.text, "layer \"head\": it has 20 outputs for 19 classes");
}

static void
misuse(void **state)
{
	struct fixture f;
	struct net_result result;

	(void)state;
	begin(&f, &(struct net_update){.rate = 0.1f});
	struct net *front = part(&f, 0, 9, 2), *end = part(&f, 9, 13, 1);
	struct net_batch b = micro(&f, 0, NULL), boundary = b;
	struct net_gradients g = {.share = 1};
	float *gradient = calloc(BATCH * net_inputs(end), sizeof(float));

	assert_int_equal(net_backward(end, 0, &g, &result), ERR_STATE);
	assert_int_equal(net_forward(front, 2, &b), ERR_INVALID);
	assert_int_equal(net_forward(front, 1, &b), ERR_OK);
	assert_int_equal(net_backward(front, 1, &g, NULL), ERR_INVALID);
	g.output = gradient;
	assert_int_equal(net_backward(front, 0, &g, NULL), ERR_STATE);
	assert_int_equal(net_backward(front, 1, &g, NULL), ERR_OK);
	assert_int_equal(net_backward(front, 1, &g, NULL), ERR_STATE);
	g.input = gradient;
	assert_int_equal(net_forward(front, 1, &b), ERR_OK);
	assert_int_equal(net_backward(front, 1, &g, NULL), ERR_INVALID);
	/* A part without the loss makes no step of its own. */
	assert_int_equal(net_eval(front, &b, &result), ERR_STATE);
	assert_int_equal(net_add(front, &b, 1, &result), ERR_STATE);
	/* A loss that is no number collects nothing and frees the context. */
	gradient[3] = NAN;
	boundary.x = gradient;
	g = (struct net_gradients){.share = 1};
	assert_int_equal(net_forward(end, 0, &boundary), ERR_OK);
	assert_int_equal(net_backward(end, 0, &g, &result), ERR_NUMERIC);
	assert_int_equal(net_backward(end, 0, &g, &result), ERR_STATE);
	free(gradient);
	net_free(front);
	net_free(end);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_cut),
	    cmocka_unit_test(orders),
	    cmocka_unit_test(optimizers),
	    cmocka_unit_test(own_parameters),
	    cmocka_unit_test(refused_cuts),
	    cmocka_unit_test(unnamed_classes),
	    cmocka_unit_test(misuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
