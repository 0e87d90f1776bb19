/* stages: gcc clang address */
/* Where the bytes of a net go: layers and wholes against each other, by hand, and of a net that is only planned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "costs.h"
#include "net_trial.h"
#include "tensor.h"

#define PICTURE "\"shape\": [3, 12, 12], \"classes\": 5"
#define RESIDUAL \
	"{\"loss\": \"cross_entropy\", \"layers\": [" \
	"{\"type\": \"conv2d\", \"name\": \"a\", \"out\": 8, \"kernel\": 3, \"padding\": 1}," \
	"{\"type\": \"groupnorm\", \"groups\": 2}, {\"type\": \"relu\", \"name\": \"r\"}," \
	"{\"type\": \"conv2d\", \"out\": 8, \"kernel\": 3, \"padding\": 1}," \
	"{\"type\": \"batchnorm\", \"name\": \"b\"}," \
	"{\"type\": \"add\", \"inputs\": [\"b\", \"r\"]}, {\"type\": \"relu\"}," \
	"{\"type\": \"maxpool2d\", \"kernel\": 2}, {\"type\": \"flatten\"}," \
	"{\"type\": \"dropout\", \"rate\": 0.5}, {\"type\": \"linear\", \"out\": 5}]}"

static const struct net_update adam = {
    .type = OPTIMIZER_ADAM, .rate = 0.1f, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8};

/* What is kept is every byte of a context, and parameters are those of the table. */
static void
layers_add_up(const struct net *net)
{
	struct costs all;
	struct costs_layer l;
	uint64_t kept = 0, parameters = 0, work = 0, passing = 0;

	costs_all(net, &all);
	for (size_t i = 0; i < costs_layers(net); i++) {
		costs_layer(net, i, &l);
		kept += l.kept;
		parameters += l.parameters;
		passing += l.gradient + l.passing;
		work = l.work > work ? l.work : work;
		assert_true(l.each <= l.kept);
	}
	assert_int_equal(kept, all.contexts);
	assert_int_equal(parameters, net_tensors(net)->bytes);
	assert_true(all.shared <= passing + 64 * 2 * costs_layers(net));
	assert_true(all.shared > 0);
	assert_true(all.work >= work && all.work < work + 64);
	assert_int_equal(net_bytes(net),
	    all.weights + all.optimizer + all.gradient + all.contexts + all.shared + all.work);
}

static struct net *
planned(const struct recipe *r, uint32_t batch, unsigned threads)
{
	const struct net_part part = {.spec = &r->net,
	    .classes = r->data.class_count,
	    .last = r->net.layer_count,
	    .max_batch = batch,
	    .contexts = 1,
	    .train = true,
	    .planned = threads};
	struct why why = {""};
	struct net *net;

	if (net_new_part(&net, &part, &why))
		fail_msg("%s", why.text);
	return net;
}

static void
whole(void **state)
{
	struct net_trial t;

	(void)state;
	net_trial_begin(&t, 7, PICTURE, RESIDUAL);
	layers_add_up(t.net);
	assert_int_equal(net_prepare(t.net, &adam, NULL), ERR_OK);
	layers_add_up(t.net);
	net_trial_end(&t);
}

static void
by_hand(void **state)
{
	struct recipe r;
	struct costs all;
	struct costs_layer l;

	(void)state;
	net_trial_recipe(&r, "\"shape\": [20], \"classes\": 3",
	    "{\"loss\": \"cross_entropy\", \"layers\": [{\"type\": \"linear\", \"name\": \"one\", "
	    "\"out\": 16}, {\"type\": \"relu\"}, {\"type\": \"linear\", \"out\": 3}]}");
	struct net *net = planned(&r, 8, 1);
	costs_layer(net, 0, &l);
	assert_string_equal(l.name, "one");
	assert_int_equal(l.parameters, 4 * (20 * 16 + 16));
	assert_int_equal(l.kept, 4 * 8 * 16);
	assert_int_equal(l.each, 4 * 16);
	assert_int_equal(l.gradient, 4 * 8 * 16);
	costs_layer(net, 1, &l);
	assert_int_equal(l.parameters + l.kept + l.gradient + l.passing, 0);
	costs_layer(net, 2, &l);
	/* Its gradient is written over it. */
	assert_int_equal(l.passing, 4 * 8 * 3);
	assert_int_equal(l.kept + l.gradient, 0);
	const uint64_t vector = (4 * (20 * 16 + 16 + 3 * 16 + 3) + 63) / 64 * 64;
	costs_all(net, &all);
	assert_int_equal(all.weights, vector);
	assert_int_equal(all.optimizer + all.gradient, 0);
	assert_int_equal(net_prepare(net, &adam, NULL), ERR_OK);
	costs_all(net, &all);
	assert_int_equal(all.optimizer, 2 * vector);
	assert_int_equal(all.gradient, 4 * 20 * 16);
	net_free(net);
	recipe_deinit(&r);
}

/* The same figures as of the net that trains, without its memory, and no passes. */
static void
only_planned(void **state)
{
	struct net_trial t;
	struct costs a, b;
	struct net_result result;

	(void)state;
	net_trial_begin(&t, 7, PICTURE, RESIDUAL);
	struct net *net = planned(&t.recipe, 7, 1);
	assert_int_equal(net_prepare(t.net, &adam, NULL), ERR_OK);
	assert_int_equal(net_prepare(net, &adam, NULL), ERR_OK);
	layers_add_up(net);
	costs_all(t.net, &a);
	costs_all(net, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(net_bytes(net), net_bytes(t.net));
	assert_null(net_params(net));
	assert_int_equal(net_step(net, &t.batch, &adam, &result), ERR_STATE);
	assert_int_equal(net_predict(net, t.x, 1), ERR_STATE);
	net_free(net);
	net = planned(&t.recipe, 7, 3);
	assert_true(net_bytes(net) > net_bytes(t.net));
	net_free(net);
	/* More than any machine has costs nothing to be planned. */
	net = planned(&t.recipe, 1u << 31, 1);
	assert_true(net_bytes(net) > (uint64_t)1 << 44);
	net_free(net);
	net_trial_end(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(whole),
	    cmocka_unit_test(by_hand),
	    cmocka_unit_test(only_planned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
