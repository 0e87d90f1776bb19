/* stages: gcc clang address */
/* The weights that networks begin with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "net.h"
#include "nets.h"
#include "tensor.h"

static void
initial(void **state)
{
	struct nets n;
	struct net *net;
	double square = 0;
	float top = 0;

	(void)state;
	nets_cnn(&n);
	n.layers[9].init = INIT_GLOROT;
	n.layers[3].init = INIT_ZERO;
	assert_int_equal(net_new(&net, &n.spec, 10, 1, true, 0, NULL), ERR_OK);
	const struct tensor_table *t = net_tensors(net);
	assert_int_equal(t->elements, 1663370);
	assert_int_equal(t->count, 8);
	assert_string_equal(t->items[0].name, "conv1.weight");
	assert_string_equal(t->items[5].name, "fc1.bias");
	net_init(net, 7);
	const float *w = net_params(net) + t->items[4].first;
	for (uint64_t i = 0; i < t->items[4].elements; i++) {
		square += (double)w[i] * (double)w[i];
		top = fmaxf(top, fabsf(w[i]));
	}
	/* Uniform within b has variance b^2 / 3; He's b is sqrt(6 / 3136). */
	assert_true(fabs(square / (double)t->items[4].elements / (2.0 / 3136) - 1) < 0.01);
	assert_true((double)top <= sqrt(6.0 / 3136) && (double)top > 0.999 * sqrt(6.0 / 3136));
	w = net_params(net) + t->items[6].first;
	top = 0;
	for (uint64_t i = 0; i < t->items[6].elements; i++)
		top = fmaxf(top, fabsf(w[i]));
	assert_true((double)top <= sqrt(6.0 / 522) && (double)top > 0.99 * sqrt(6.0 / 522));
	for (uint64_t i = 0; i < t->items[2].elements; i++)
		assert_true(net_params(net)[t->items[2].first + i] == 0);
	for (uint64_t i = 0; i < t->items[5].elements; i++)
		assert_true(net_params(net)[t->items[5].first + i] == 0);
	net_free(net);
}

/* As torch.nn.Linear and Conv2d begin: weights and biases within 1 / sqrt(fan in), and spread over all of it. */
static void
torch_init(void **state)
{
	struct nets n;
	struct net *net;
	float most = 0, sum = 0;
	(void)state;

	nets_start(&n, 100, 1, 1, LOSS_MSE);
	nets_linear(&n, "a", 400)->init = INIT_TORCH;
	assert_int_equal(net_new(&net, &n.spec, 0, 1, false, 0, NULL), ERR_OK);
	net_init(net, 1);
	const float *w = net_params(net);
	for (size_t part = 0; part < 2; part++) { /* 40,000 weights, 400 biases */
		size_t from = part * 40000, count = part ? 400 : 40000;
		most = sum = 0;
		for (size_t i = from; i < from + count; i++) {
			most = fmaxf(most, fabsf(w[i]));
			sum += w[i] * w[i];
		}
		assert_true(most <= 0.1f && most > 0.098f);
		assert_true(fabsf(sum / (float)count - 0.01f / 3) < 0.0005f);
	}
	assert_memory_not_equal(w, w + 40000, 400 * sizeof(float));
	net_free(net);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(initial),
	    cmocka_unit_test(torch_init),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
