/* stages: gcc clang openssl address */
/* What training need not hold: what lies before the first layer that moves, whole gradients, outputs that are worked out again. None of it
 * changes a bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataset.h"
#include "draw.h"
#include "net_trial.h"
#include "preset.h"
#include "prng.h"
#include "tensor.h"
#include "train.h"

#define BATCH 3
#define STEPS 2

/* data NULL: model is a preset's name. */
static void
read_model(struct recipe *out, const char *data, const char *model)
{
	static const char tail[] = "{\"epochs\": 1, \"optimizer\": {\"name\": \"sgd\", "
				   "\"rate\": 0.1}}";
	/* Its default side is 96; a text has no default vocabulary. */
	const char *small = strcmp(model, "gpt") == 0 ? "{\"vocabulary\": 65}" :

	    strcmp(model, "mobilenetv2") == 0 ? "{\"width\": 35, \"side\": 64}"
					      : "{}";
	struct json *doc, *layers = NULL, *about = NULL, *local = NULL, *set = NULL;
	struct why why = {""};

	if (data) {
		net_trial_recipe(out, data, model);
		return;
	}
	doc = json_object();
	if (json_parse(&set, small, strlen(small), &why) ||
	    preset_model(&layers, &about, model, set, &why) ||
	    json_parse(&local, tail, strlen(tail), &why))
		fail_msg("%s: %s", model, why.text);
	json_add_string(about, "name", "d");
	json_add(doc, "model", layers);
	json_add(doc, "data", about);
	json_add(doc, "local", local);
	if (recipe_parse(out, doc, true, &why))
		fail_msg("%s: %s", model, why.text);
	json_free(doc);
	json_free(set);
}

struct trial {
	struct recipe recipe;
	struct net_part part;
	float *x;
	int32_t *labels;
};

static void
begin(struct trial *t, const char *data, const char *model)
{
	struct prng r;
	struct net *net;
	struct why why = {""};

	*t = (struct trial){0};
	read_model(&t->recipe, data, model);
	t->part = (struct net_part){.spec = &t->recipe.net,
	    .classes = t->recipe.data.class_count,
	    .last = t->recipe.net.layer_count,
	    .max_batch = BATCH,
	    .contexts = 1,
	    .train = true};
	if (net_new_part(&net, &t->part, &why))
		fail_msg("%s: %s", model, why.text);
	size_t in = net_inputs(net) * BATCH, labels = net_labels(net) * BATCH;
	t->x = malloc(in * sizeof(float));
	t->labels = malloc((labels + 1) * sizeof(int32_t));
	prng_seed(&r, 6);
	for (size_t i = 0; i < in; i++)
		t->x[i] = net_vocabulary(net) ? (float)prng_below(&r, net_vocabulary(net))
					      : 2 * prng_float(&r) - 1;
	for (size_t i = 0; i < labels; i++)
		t->labels[i] = (int32_t)prng_below(&r, net_outputs(net));
	net_free(net);
}

static void
end(struct trial *t)
{
	recipe_deinit(&t->recipe);
	free(t->x);
	free(t->labels);
}

static struct net *
make(const struct trial *t, const struct net_update *how)
{
	struct net *net;
	struct why why = {""};

	if (net_new_part(&net, &t->part, &why) || net_prepare(net, how, &why))
		fail_msg("%s", why.text);
	net_init(net, 5);
	return net;
}

static void
train(const struct trial *t, struct net *net, const struct net_update *how, bool stream)
{
	struct prng r;
	struct net_result result;
	struct draw draw = {.stream = stream ? &r : NULL, .seed = 3};

	prng_seed(&r, 8);
	for (draw.step = 0; draw.step < STEPS; draw.step++)
		assert_int_equal(net_step(net,
				     &(struct net_batch){
					 .x = t->x, .labels = t->labels, .n = BATCH, .draw = &draw},
				     how, &result),
		    ERR_OK);
}

/* Only the classifier of a MobileNet learns: its gradient is the same, the bytes are less than two thirds, and nothing else moves. */
static void
last_layer(void **state)
{
	static const struct tensor_rule rules[] = {
	    {"classifier.*", TENSOR_TRAIN}, {"*", TENSOR_FROZEN}};
	const struct net_update sgd = {.rate = 0.1f};
	struct trial t;

	(void)state;
	begin(&t, NULL, "mobilenetv2");
	struct net *whole = make(&t, &sgd);
	t.part.rules = rules;
	t.part.rule_count = 2;
	struct net *some = make(&t, &sgd);
	print_message("mobilenetv2, batch %d: %llu bytes, the classifier alone %llu\n", BATCH,
	    (unsigned long long)net_bytes(whole), (unsigned long long)net_bytes(some));
	assert_true(net_bytes(some) < net_bytes(whole) / 3 * 2);
	const struct tensor_table *table = net_tensors(whole);
	float *g = calloc(2 * table->elements, sizeof(float)), *h = g + table->elements;
	struct prng r[2];
	prng_seed(&r[0], 8);
	prng_seed(&r[1], 8);
	for (int i = 0; i < 2; i++) {
		struct draw draw = {.stream = &r[i]};
		const struct net_batch b = {
		    .x = t.x, .labels = t.labels, .n = BATCH, .draw = &draw};
		assert_int_equal(net_gradient(i ? some : whole, &b, i ? h : g), ERR_OK);
	}
	train(&t, some, &sgd, true);
	for (size_t i = 0; i < table->count; i++) {
		const struct tensor *x = &table->items[i];
		size_t at = (size_t)(x->begin / sizeof(float)), bytes = (size_t)tensor_bytes(x);
		bool moves = strncmp(x->name, "classifier.", 11) == 0;
		net_init(whole, 5);
		assert_true(!moves || memcmp(g + at, h + at, bytes) == 0);
		assert_int_equal(
		    memcmp(net_params(whole) + at, net_params(some) + at, bytes) == 0, !moves);
	}
	free(g);
	net_free(whole);
	net_free(some);
	end(&t);
}

#define CONV "{\"type\": \"conv2d\", \"out\": 6, \"kernel\": 3, \"padding\": 1}, "
#define RELU "{\"type\": \"relu\"}, "
#define RELU6 "{\"type\": \"relu6\"}, "
#define POOL "{\"type\": \"maxpool2d\", \"kernel\": 2}, "
#define DROP "{\"type\": \"dropout\", \"rate\": 0.3}, "
#define BN "{\"type\": \"batchnorm\"}, "
#define GN "{\"type\": \"groupnorm\", \"groups\": 3}, "
#define HEAD "{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 5}"
#define WORDS \
	"{\"type\": \"embedding\", \"vocabulary\": 23, \"out\": 18}, {\"type\": \"positions\"}, "
#define CROSS(layers) "{\"layers\": [" layers "], \"loss\": \"cross_entropy\"}"

static const struct {
	const char *data, *model;
	bool front;
} rows[] = {
    {NULL, "resnet20-gn", false},
    {NULL, "resnet20-gn", true},
    {NULL, "mobilenetv2", false},
    {NULL, "ds-cnn", false},
    {NULL, "gpt", false},
    {"\"shape\": [2, 20, 20], \"classes\": 5",
	CROSS(CONV RELU CONV BN RELU6 POOL DROP CONV RELU POOL DROP CONV RELU6 DROP BN HEAD),
	false},
    {"\"shape\": [2, 20, 20], \"classes\": 5",
	CROSS("{\"name\": \"conv1\", \"type\": \"conv2d\", \"out\": 6, "
	      "\"kernel\": 3}, {\"name\": \"bn1\", \"type\": "
	      "\"batchnorm\"}, " RELU DROP CONV BN RELU POOL CONV RELU CONV RELU HEAD),
	true},
    {"\"window\": 21",
	CROSS(WORDS "{\"type\": \"lstm\", \"out\": 19, \"layers\": 2}, {\"type\": "
		    "\"gru\", \"out\": 12}, {\"type\": \"attention\", \"heads\": 3, "
		    "\"causal\": true, \"positions\": \"rotary\"}, " DROP
		    "{\"type\": \"linear\", \"out\": 23}"),
	false},
    /* A block that runs again for what its last layer keeps, and whose output nobody reads on the way back. */
    {"\"shape\": [1, 6, 11], \"classes\": 5",
	CROSS("{\"name\": \"a\", \"type\": \"conv2d\", \"out\": 9, \"kernel\": 1}, "
	      "{\"type\": \"gelu\"}, {\"type\": \"multiply\", \"inputs\": [\"gelu2\", "
	      "\"a\"]}, " POOL "{\"type\": \"maxpool2d\", \"kernel\": 2, \"stride\": "
	      "1, \"padding\": 1}, " CONV HEAD),
	false},
};

/* Chains, residual connections, what layers keep, masks, running statistics; also behind frozen layers. Blocks save memory, Adam's whole
 * gradient is not there. */
static void
blocks(void **state)
{
	static const struct tensor_rule front[] = {{"conv1.*", TENSOR_FROZEN},
	    {"bn1.*", TENSOR_FROZEN}, {"layer1.0.conv1.*", TENSOR_FROZEN},
	    {"layer1.0.bn1.*", TENSOR_FROZEN}};
	const struct net_update ways[] = {{.rate = 0.05f, .momentum = 0.9f},
	    {.type = OPTIMIZER_ADAM, .rate = 0.01f, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct trial t;
		begin(&t, rows[i].data, rows[i].model);
		if (rows[i].front) {
			t.part.rules = front;
			t.part.rule_count = 4;
		}
		for (int k = 0; k < 2; k++) {
			struct net *nets[2];
			for (int with = 0; with < 2; with++) {
				t.part.recompute = with;
				nets[with] = make(&t, &ways[k]);
				train(&t, nets[with], &ways[k], k);
			}
			print_message("row %zu: %llu bytes, with blocks %llu\n", i,
			    (unsigned long long)net_bytes(nets[0]),
			    (unsigned long long)net_bytes(nets[1]));
			assert_true(rows[i].front ? net_bytes(nets[1]) <= net_bytes(nets[0])
						  : net_bytes(nets[1]) < net_bytes(nets[0]));
			assert_memory_equal(
			    net_params(nets[0]), net_params(nets[1]), net_tensors(nets[0])->bytes);
			net_free(nets[0]);
			net_free(nets[1]);
		}
		end(&t);
	}
}

#define NOTHING "{\"type\": \"dropout\", \"rate\": 0}, "

/* A relu that the norm before it does along, and one that a dropout of nothing parts from its norm. */
static void
rectified(void **state)
{
	static const char *const models[][2] = {
	    {CROSS(CONV BN RELU6 NOTHING CONV BN RELU NOTHING POOL CONV BN RELU6 NOTHING HEAD),
		CROSS(CONV BN NOTHING RELU6 CONV BN NOTHING RELU POOL CONV BN NOTHING RELU6 HEAD)},
	    {CROSS(CONV GN RELU NOTHING CONV GN RELU6 NOTHING POOL CONV GN RELU NOTHING HEAD),
		CROSS(CONV GN NOTHING RELU CONV GN NOTHING RELU6 POOL CONV GN NOTHING RELU HEAD)}};
	const struct net_update sgd = {.rate = 0.002f};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct net *nets[2];
		for (int parted = 0; parted < 2; parted++) {
			struct trial t;
			begin(&t, "\"shape\": [2, 14, 13], \"classes\": 5", models[i % 2][parted]);
			t.part.recompute = i >= 2;
			nets[parted] = make(&t, &sgd);
			/* Many above 6. */
			for (size_t k = 0; k < net_tensors(nets[parted])->elements; k++)
				net_params(nets[parted])[k] *= 4;
			train(&t, nets[parted], &sgd, true);
			end(&t);
		}
		assert_memory_equal(
		    net_params(nets[0]), net_params(nets[1]), net_tensors(nets[0])->bytes);
		net_free(nets[0]);
		net_free(nets[1]);
	}
}

/* --- weights that layers share */

#define SHARED \
	"{\"type\": \"embedding\", \"name\": \"e\", \"vocabulary\": 19, \"out\": 12}, " \
	"{\"type\": \"linear\", \"name\": \"a\", \"out\": 12}, {\"type\": \"tanh\"}, " \
	"{\"type\": \"linear\", \"out\": 12, \"weights\": \"a\"}, {\"type\": \"tanh\"}, " \
	"{\"type\": \"linear\", \"out\": 12, \"weights\": \"a\", \"bias\": false}, " \
	"{\"type\": \"linear\", \"name\": \"wide\", \"out\": 70}, {\"type\": \"gelu\"}, " \
	"{\"type\": \"linear\", \"out\": 12}, " \
	"{\"type\": \"linear\", \"out\": 19, \"weights\": \"e\"}"

static const struct {
	struct net_update how;
	size_t vectors;
} shared_ways[] = {
    {{.rate = 0.05f, .weight_decay = 0.1f}, 0},
    {{.rate = 0.05f, .momentum = 0.9f, .weight_decay = 0.1f}, 1},
    {{.rate = 0.05f, .momentum = 0.9f, .nesterov = true, .prox = 0.3f}, 2},
    {{.type = OPTIMIZER_ADAM, .rate = 0.01f, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8}, 2},
    {{.type = OPTIMIZER_ADAMW,
	 .rate = 0.01f,
	 .weight_decay = 0.1f,
	 .beta1 = 0.9,
	 .beta2 = 0.99,
	 .epsilon = 1e-8},
	2},
};

static size_t
lines(size_t floats)
{
	return (floats * sizeof(float) + 63) / 64 * 64;
}

/* The same steps, whose whole gradient is collected first. */
static void
train_whole(const struct trial *t, struct net *net, const struct net_update *how)
{
	struct net_result result;
	struct draw draw = {.seed = 3};

	for (draw.step = 0; draw.step < STEPS; draw.step++) {
		assert_int_equal(net_add(net,
				     &(struct net_batch){
					 .x = t->x, .labels = t->labels, .n = BATCH, .draw = &draw},
				     1, &result),
		    ERR_OK);
		net_move(net, how);
	}
}

/* Only their gradients are gathered, beside room for the largest other one: "e" of 19 x 12, "a" of 12 x 12, "wide" of 70 x 12. Frozen ones
 * have none. */
static void
shared(void **state)
{
	static const struct tensor_rule held[] = {{"e.weight", TENSOR_FROZEN}};
	const size_t rooms[] = {
	    lines(70 * 12) + lines(19 * 12) + lines(12 * 12), lines(70 * 12) + lines(12 * 12)};
	/* In steps of several batches each layer but the last adds up its own: one of "e", two of "a". */
	const size_t apart[] = {lines(19 * 12) + 2 * lines(12 * 12), 2 * lines(12 * 12)};

	(void)state;
	for (size_t i = 0; i < sizeof(shared_ways) / sizeof(shared_ways[0]); i++)
		for (int k = 0; k < 4; k++) {
			struct net_update how = shared_ways[i].how;
			struct trial t;
			begin(&t, "\"window\": 9", CROSS(SHARED));
			t.part.recompute = k / 2;
			t.part.rules = held;
			t.part.rule_count = (size_t)k % 2;
			struct net *bare = NULL, *nets[2];
			assert_int_equal(net_new_part(&bare, &t.part, NULL), ERR_OK);
			nets[0] = make(&t, &how);
			how.parts = 2;
			nets[1] = make(&t, &how);
			size_t vector = lines((size_t)net_tensors(bare)->elements);
			assert_int_equal(net_bytes(nets[0]),
			    net_bytes(bare) + shared_ways[i].vectors * vector + rooms[k % 2]);
			assert_int_equal(net_bytes(nets[1]),
			    net_bytes(bare) + (shared_ways[i].vectors + 1) * vector + apart[k % 2]);
			train(&t, nets[0], &shared_ways[i].how, false);
			train_whole(&t, nets[1], &how);
			assert_memory_not_equal(
			    net_params(nets[0]), net_params(bare), net_tensors(bare)->bytes);
			assert_memory_equal(
			    net_params(nets[0]), net_params(nets[1]), net_tensors(bare)->bytes);
			net_free(bare);
			net_free(nets[0]);
			net_free(nets[1]);
			end(&t);
		}
}

/* --- pieces of a step summed in runs, the runs one after the other: in plain loops */

enum { COUNT = 22, PIECE = 2, PIECES = 6, GROUPS = 3, FLOATS = 15 };

struct grouped {
	float x[COUNT * 4];
	int32_t labels[COUNT];
	uint32_t order[COUNT];
};

static void
fill(struct grouped *g)
{
	struct prng r;

	prng_seed(&r, 2);
	for (size_t i = 0; i < COUNT; i++) {
		g->order[i] = (uint32_t)i;
		g->labels[i] = (int32_t)(i % 3);
		for (size_t k = 0; k < 4; k++)
			g->x[i * 4 + k] = prng_float(&r);
	}
	/* As an epoch of the seed 9 has them. */
	prng_seed2(&r, 9, 0);
	prng_shuffle(&r, g->order, COUNT);
}

/* A step from example `first` of the order on; runs are two pieces long. */
static void
step_of(struct net *net, const struct grouped *g, size_t first, size_t pieces, float rate)
{
	float own[FLOATS], run[FLOATS] = {0}, total[FLOATS] = {0}, x[PIECE * 4];
	float share = (float)(1.0 / (double)pieces);
	int32_t labels[PIECE];

	for (size_t p = 0; p < pieces; p++) {
		for (size_t i = 0; i < PIECE; i++) {
			size_t at = g->order[first + p * PIECE + i];
			memcpy(x + i * 4, g->x + at * 4, 4 * sizeof(float));
			labels[i] = g->labels[at];
		}
		const struct net_batch b = {.x = x, .labels = labels, .n = PIECE};
		assert_int_equal(net_gradient(net, &b, own), ERR_OK);
		for (size_t i = 0; i < FLOATS; i++) {
			float s = share * own[i];
			run[i] = p % 2 == 0 ? s : run[i] + s;
			if (p % 2 == 1 || p + 1 == pieces)
				total[i] = p < 2 ? run[i] : total[i] + run[i];
		}
	}
	for (size_t i = 0; i < FLOATS; i++)
		net_params(net)[i] -= rate * total[i];
}

static void
groups(void **state)
{
	struct grouped g;
	struct net_trial t;
	struct train_result result;
	float first[FLOATS], w[FLOATS];

	(void)state;
	fill(&g);
	net_trial_begin(&t, PIECE, "\"shape\": [4], \"classes\": 3",
	    "{\"layers\": [{\"type\": \"linear\", \"out\": 3}], \"loss\": \"cross_entropy\"}");
	assert_int_equal(net_tensors(t.net)->elements, FLOATS);
	memcpy(first, net_params(t.net), sizeof(first));
	struct local_spec *local = &t.recipe.local;
	local->batch = PIECE * PIECES;
	local->micro_batch = PIECE;
	local->groups = GROUPS;
	const struct dataset d = {.count = COUNT,
	    .shape = {4, 1, 1},
	    .dims = 1,
	    .features = 4,
	    .floats = g.x,
	    .labels = g.labels,
	    .classes = 3};
	const struct train_config c = {
	    .local = local, .data = &t.recipe.data, .round = 1, .seed = 9};
	assert_int_equal(train_run(stepper_net(t.net), &d, &c, &result, NULL), ERR_OK);
	assert_int_equal(result.steps, 2);
	memcpy(w, net_params(t.net), sizeof(w));

	/* The second step has five pieces: its last run is shorter. */
	memcpy(net_params(t.net), first, sizeof(first));
	step_of(t.net, &g, 0, PIECES, (float)local->optimizer.rate);
	step_of(t.net, &g, PIECE * PIECES, PIECES - 1, (float)local->optimizer.rate);
	assert_memory_equal(w, net_params(t.net), sizeof(w));
	net_trial_end(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(last_layer),
	    cmocka_unit_test(blocks),
	    cmocka_unit_test(rectified),
	    cmocka_unit_test(shared),
	    cmocka_unit_test(groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
