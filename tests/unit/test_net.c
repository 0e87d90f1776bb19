/* stages: gcc clang address */
/* Gradients against central differences, sharing of buffers, errors and limits of networks. */
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

#define BATCH 3
#define STEP 4e-3f

struct data {
	float *x, *targets;
	int32_t labels[BATCH];
};

static struct data
random_data(const struct net *net, uint64_t seed)
{
	size_t in = net_inputs(net) * BATCH, out = net_outputs(net) * BATCH;
	struct data d = {.x = malloc(in * sizeof(float)), .targets = malloc(out * sizeof(float))};
	struct prng r;

	prng_seed(&r, seed);
	for (size_t i = 0; i < in; i++)
		d.x[i] = 2 * prng_float(&r) - 1;
	for (size_t i = 0; i < out; i++)
		d.targets[i] = 2 * prng_float(&r) - 1;
	for (size_t i = 0; i < BATCH; i++)
		d.labels[i] = (int32_t)prng_below(&r, net_outputs(net));
	return d;
}

static struct net_batch
batch_of(const struct data *d)
{
	return (struct net_batch){
	    .x = d->x, .labels = d->labels, .targets = d->targets, .n = BATCH};
}

static void
data_deinit(struct data *d)
{
	free(d->x);
	free(d->targets);
}

static double
mean_loss(struct net *net, const struct data *d)
{
	struct net_batch b = batch_of(d);
	struct net_result result;

	assert_int_equal(net_eval(net, &b, &result), ERR_OK);
	return result.loss / BATCH;
}

/* The loss is summed in f32 inside the net: its noise of about 1e-7 over a step of 4e-3 leaves 1e-4. */
static void
check_gradient(const struct net_spec *spec)
{
	struct net *net;
	struct why why = {""};
	double top = 0;

	size_t classes = spec->loss == LOSS_MSE ? 0 : spec->layers[spec->layer_count - 1].out;
	if (net_new(&net, spec, classes, BATCH, true, 0, &why))
		fail_msg("%s", why.text);
	net_init(net, 5);
	size_t n = net_tensors(net)->elements;
	float *w = net_params(net), *gradient = malloc(n * sizeof(float));
	struct data d = random_data(net, 6);
	struct net_batch b = batch_of(&d);
	assert_int_equal(net_gradient(net, &b, gradient), ERR_OK);
	for (size_t i = 0; i < n; i++)
		top = fmax(top, fabs((double)gradient[i]));
	assert_true(top > 1e-3);
	for (size_t i = 0; i < n; i++) {
		float old = w[i];
		w[i] = old + STEP;
		double after = mean_loss(net, &d), up = (double)w[i];
		w[i] = old - STEP;
		double slope = (after - mean_loss(net, &d)) / (up - (double)w[i]);
		w[i] = old;
		if (!(fabs(slope - (double)gradient[i]) <= 3e-4 + 5e-3 * top))
			fail_msg("parameter %zu: gradient %g, difference %g", i,
			    (double)gradient[i], slope);
	}
	data_deinit(&d);
	free(gradient);
	net_free(net);
}

static void
gradient_linear(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 6, 1, 1, LOSS_CROSS_ENTROPY);
	nets_linear(&n, "a", 5);
	nets_linear(&n, "b", 4)->bias = false;
	check_gradient(&n.spec);
}

static void
gradient_mse(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 6, 1, 1, LOSS_MSE);
	nets_linear(&n, "a", 5)->init = INIT_GLOROT;
	nets_linear(&n, "b", 3);
	check_gradient(&n.spec);
}

static void
gradient_relu(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 6, 1, 1, LOSS_CROSS_ENTROPY);
	nets_linear(&n, "a", 8);
	nets_add(&n, LAYER_RELU, "b");
	nets_linear(&n, "c", 3);
	check_gradient(&n.spec);
}

/* A layer between two convolutions, so that its gradient reaches parameters. */
static void
between_convs(enum layer_type type, uint32_t kernel, uint32_t stride, uint32_t padding)
{
	struct nets n;

	nets_start(&n, 2, 7, 6, LOSS_CROSS_ENTROPY);
	nets_conv(&n, "a", 3, 3, 1);
	nets_window(&n, type, "b", kernel, stride, padding)->out = 2;
	nets_add(&n, LAYER_FLATTEN, "c");
	nets_linear(&n, "d", 3);
	check_gradient(&n.spec);
}

static void
gradient_windows(void **state)
{
	(void)state;
	between_convs(LAYER_CONV2D, 3, 1, 0);
	between_convs(LAYER_CONV2D, 3, 2, 2);
	between_convs(LAYER_MAXPOOL2D, 2, 2, 0);
	between_convs(LAYER_MAXPOOL2D, 3, 1, 1);
	between_convs(LAYER_AVGPOOL2D, 2, 2, 1);
	between_convs(LAYER_AVGPOOL2D, 3, 2, 0);
}

static void
gradient_rectangular(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 2, 5, 8, LOSS_MSE);
	nets_conv(&n, "a", 2, 1, 0);
	struct layer_spec *l = nets_conv(&n, "b", 3, 2, 1);
	l->kernel[1] = 4;
	l->stride[1] = 3;
	l->padding[1] = 2;
	nets_add(&n, LAYER_RELU, "c");
	check_gradient(&n.spec);
}

/* An output with three users, one of them twice, and the network's input used again behind a layer. */
static void
gradient_graph(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 5, 1, 1, LOSS_CROSS_ENTROPY);
	nets_linear(&n, "a", 5); /* 0 */
	nets_add(&n, LAYER_RELU, "b"); /* 1 */
	struct layer_spec *l = nets_add(&n, LAYER_ADD, "c"); /* 2: input + b + b */
	l->input_count = 3;
	l->inputs[0] = LAYER_INPUT;
	l->inputs[1] = l->inputs[2] = 1;
	nets_add(&n, LAYER_RELU, "d"); /* 3 */
	nets_linear(&n, "e", 5)->inputs[0] = 1; /* 4 */
	nets_add(&n, LAYER_FLATTEN, "f")->inputs[0] = 3; /* 5 */
	nets_add(&n, LAYER_RELU, "g"); /* 6 */
	l = nets_add(&n, LAYER_ADD, "h"); /* 7 */
	l->input_count = 3;
	l->inputs[1] = 4;
	l->inputs[2] = 3;
	nets_linear(&n, "i", 3);
	check_gradient(&n.spec);
}

/* With dropout the gradient is that of the net with the same mask: equal seeds, equal gradients; and a rate near one
 * leaves nearly nothing. */
static void
dropout(void **state)
{
	struct nets n;
	struct net *net;
	struct prng r;
	float one[33], two[33], three[33];

	(void)state;
	nets_start(&n, 4, 1, 1, LOSS_MSE);
	nets_linear(&n, "a", 5);
	nets_add(&n, LAYER_DROPOUT, "b")->rate = 0.5f;
	nets_linear(&n, "c", 1);
	n.layers[2].bias = true;
	assert_int_equal(net_new(&net, &n.spec, 0, BATCH, true, 0, NULL), ERR_OK);
	assert_int_equal(net_tensors(net)->elements, 31);
	net_init(net, 1);
	struct data d = random_data(net, 2);
	struct draw draw = {.stream = &r};
	struct net_batch b = batch_of(&d);
	b.draw = &draw;
	prng_seed(&r, 3);
	assert_int_equal(net_gradient(net, &b, one), ERR_OK);
	assert_int_equal(net_gradient(net, &b, two), ERR_OK);
	prng_seed(&r, 3);
	assert_int_equal(net_gradient(net, &b, three), ERR_OK);
	assert_memory_equal(one, three, 31 * sizeof(float));
	assert_memory_not_equal(one, two, 31 * sizeof(float));
	data_deinit(&d);
	net_free(net);
}

/* Many draws: the mean of what passes is the input, half of it is zero. */
static void
dropout_scale(void **state)
{
	static float x[2000], targets[2000];
	struct nets n;
	struct net *net;
	struct prng r;
	struct net_result result;
	struct draw draw = {.stream = &r};
	struct net_batch b = {.x = x, .targets = targets, .n = 1, .draw = &draw};
	size_t zeros = 0;
	double sum = 0;

	(void)state;
	nets_start(&n, 2000, 1, 1, LOSS_MSE);
	nets_add(&n, LAYER_DROPOUT, "a")->rate = 0.25f;
	assert_int_equal(net_new(&net, &n.spec, 0, 1, true, 0, NULL), ERR_OK);
	for (size_t i = 0; i < 2000; i++)
		x[i] = 1;
	prng_seed(&r, 1);
	assert_int_equal(net_forward(net, 0, &b), ERR_OK);
	for (size_t i = 0; i < 2000; i++) {
		float y = net_output(net)[i];
		zeros += y == 0;
		sum += (double)y;
		assert_true(y == 0 || y == 1 / 0.75f);
	}
	assert_in_range(zeros, 400, 600);
	assert_true(fabs(sum / 2000 - 1) < 0.07);
	assert_int_equal(net_eval(net, &b, &result), ERR_OK);
	assert_memory_equal(net_output(net), x, sizeof(x));
	net_free(net);
}

static void
refused(const struct nets *n, size_t classes, uint32_t batch, enum err want, const char *text)
{
	struct net *net = NULL;
	struct why why = {""};

	assert_int_equal(net_new(&net, &n->spec, classes, batch, true, 0, &why), want);
	assert_null(net);
	if (!strstr(why.text, text))
		fail_msg("\"%s\" does not say \"%s\"", why.text, text);
}

static void
bad_specs(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 1, 8, 8, LOSS_CROSS_ENTROPY);
	refused(&n, 10, 1, ERR_INVALID, "no layers");
	nets_linear(&n, "fc9", 10);
	refused(&n, 10, 1, ERR_INVALID, "\"fc9\"");
	nets_start(&n, 64, 1, 1, LOSS_CROSS_ENTROPY);
	nets_linear(&n, "fc9", 10);
	refused(&n, 11, 1, ERR_INVALID, "10 outputs for 11 classes");
	refused(&n, 10, 0, ERR_INVALID, "batch");
	n.layers[0].inputs[0] = 0;
	refused(&n, 10, 1, ERR_INVALID, "earlier");
	n.layers[0].inputs[0] = -2;
	refused(&n, 10, 1, ERR_INVALID, "earlier");
	n.layers[0].inputs[0] = -1;
	n.layers[0].input_count = 2;
	refused(&n, 10, 1, ERR_INVALID, "one input");
	n.layers[0].input_count = 0;
	refused(&n, 10, 1, ERR_INVALID, "inputs");
	n.layers[0].input_count = 1;
	n.layers[0].out = 0;
	refused(&n, 10, 1, ERR_INVALID, "empty");
	n.layers[0].out = 10;
	nets_linear(&n, "fc10", 10)->inputs[0] = -1;
	refused(&n, 10, 1, ERR_INVALID, "\"fc9\": no other layer uses its output");
	n.layers[1].inputs[0] = 0;
	snprintf(n.layers[1].name, sizeof(n.layers[1].name), "fc9");
	refused(&n, 10, 1, ERR_EXISTS, "fc9.weight");
	n.layers[1].type = (enum layer_type)99;
	refused(&n, 10, 1, ERR_UNSUPPORTED, "type");
}

static void
bad_windows(void **state)
{
	static const enum layer_type types[] = {LAYER_CONV2D, LAYER_MAXPOOL2D, LAYER_AVGPOOL2D};
	struct nets n;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		nets_start(&n, 1, 8, 8, LOSS_MSE);
		struct layer_spec *l = nets_window(&n, types[i], "w", 9, 1, 0);
		l->out = 2;
		refused(&n, 0, 1, ERR_INVALID, "\"w\": the kernel is larger");
		l->kernel[0] = l->kernel[1] = 3;
		l->stride[1] = 0;
		refused(&n, 0, 1, ERR_INVALID, "stride");
		l->stride[1] = 1;
		l->kernel[0] = 0;
		refused(&n, 0, 1, ERR_INVALID, "kernel");
		l->kernel[0] = 3;
		l->padding[0] = types[i] == LAYER_CONV2D ? UINT32_MAX : 2;
		refused(&n, 0, 1, types[i] == LAYER_CONV2D ? ERR_LIMIT : ERR_INVALID, "\"w\"");
	}
	nets_start(&n, 1, 8, 8, LOSS_CROSS_ENTROPY);
	nets_conv(&n, "w", 2, 3, 1);
	refused(&n, 128, 1, ERR_INVALID, "flat");
	nets_start(&n, 8, 1, 1, LOSS_MSE);
	nets_add(&n, LAYER_DROPOUT, "p")->rate = 1;
	refused(&n, 0, 1, ERR_INVALID, "rate");
	n.layers[0].rate = NAN;
	refused(&n, 0, 1, ERR_INVALID, "rate");
	nets_start(&n, 8, 1, 1, LOSS_MSE);
	nets_linear(&n, "a", 9);
	struct layer_spec *l = nets_add(&n, LAYER_ADD, "s");
	l->input_count = 2;
	l->inputs[1] = LAYER_INPUT;
	refused(&n, 0, 1, ERR_INVALID, "different shapes");
}

static void
limits(void **state)
{
	struct nets n;
	struct net *net;
	struct why why;

	(void)state;
	nets_start(&n, UINT32_MAX, UINT32_MAX, UINT32_MAX, LOSS_MSE);
	nets_add(&n, LAYER_RELU, "a");
	refused(&n, 0, 1, ERR_LIMIT, "large");
	nets_start(&n, UINT32_MAX, 1, 1, LOSS_MSE);
	nets_linear(&n, "a", UINT32_MAX);
	refused(&n, 0, 1, ERR_LIMIT, "a");
	nets_start(&n, 1 << 20, 1, 1, LOSS_MSE);
	for (int i = 0; i < 30; i++)
		nets_add(&n, LAYER_DROPOUT, "a")->inputs[0] = i == 0 ? -1 : i - 1;
	assert_int_equal(net_new(&net, &n.spec, 0, UINT32_MAX, true, 1 << 30, &why), ERR_LIMIT);
	nets_2nn(&n);
	assert_int_equal(net_new(&net, &n.spec, 10, 10, true, 700000, &why), ERR_LIMIT);
	assert_non_null(strstr(why.text, "700000"));
	assert_int_equal(net_new(&net, &n.spec, 10, 10, true, 900000, &why), ERR_OK);
	/* The velocity would be another 796,840 bytes. */
	struct net_update sgd = {.rate = 0.1f, .momentum = 0.9f};
	struct net_result result;
	struct data d = random_data(net, 1);
	struct net_batch b = batch_of(&d);
	assert_int_equal(net_prepare(net, &sgd, &why), ERR_LIMIT);
	assert_int_equal(net_step(net, &b, &sgd, &result), ERR_STATE);
	sgd.momentum = 0;
	assert_int_equal(net_step(net, &b, &sgd, &result), ERR_OK);
	data_deinit(&d);
	net_free(net);
}

static void
bad_batches(void **state)
{
	struct nets n;
	struct net *net;
	struct net_result result;
	struct net_update sgd = {.rate = 0.1f};

	(void)state;
	nets_2nn(&n);
	assert_int_equal(net_new(&net, &n.spec, 10, BATCH, false, 0, NULL), ERR_OK);
	net_init(net, 1);
	struct data d = random_data(net, 1);
	struct net_batch b = batch_of(&d);
	assert_int_equal(net_eval(net, &b, &result), ERR_OK);
	b.n = BATCH + 1;
	assert_int_equal(net_eval(net, &b, &result), ERR_INVALID);
	b.n = 0;
	assert_int_equal(net_eval(net, &b, &result), ERR_INVALID);
	b = batch_of(&d);
	b.labels = NULL;
	assert_int_equal(net_eval(net, &b, &result), ERR_INVALID);
	b = batch_of(&d);
	assert_int_equal(net_step(net, &b, &sgd, &result), ERR_STATE);
	d.labels[1] = 10;
	assert_int_equal(net_eval(net, &b, &result), ERR_INVALID);
	d.labels[1] = -1;
	assert_int_equal(net_eval(net, &b, &result), ERR_INVALID);
	d.labels[1] = 1;
	d.x[5] = NAN;
	assert_int_equal(net_eval(net, &b, &result), ERR_NUMERIC);
	data_deinit(&d);
	net_free(net);
}

/* After a step that fails the parameters are what they were. */
static void
failed_step(void **state)
{
	struct nets n;
	struct net *net;
	struct net_result result;
	struct net_update sgd = {.rate = 0.1f, .momentum = 0.5f};

	(void)state;
	nets_2nn(&n);
	assert_int_equal(net_new(&net, &n.spec, 10, BATCH, true, 0, NULL), ERR_OK);
	net_init(net, 1);
	struct data d = random_data(net, 1);
	struct net_batch b = batch_of(&d);
	size_t bytes = net_tensors(net)->bytes;
	float *before = malloc(bytes);
	memcpy(before, net_params(net), bytes);
	assert_int_equal(net_step(net, &b, &sgd, &result), ERR_STATE);
	assert_int_equal(net_prepare(net, &sgd, NULL), ERR_OK);
	d.x[0] = INFINITY;
	assert_int_equal(net_step(net, &b, &sgd, &result), ERR_NUMERIC);
	assert_memory_equal(before, net_params(net), bytes);
	free(before);
	data_deinit(&d);
	net_free(net);
}

/* A padded input and a kernel so large that channels and rows are unfolded in parts. */
static void
slabs(void **state)
{
	struct nets n;
	struct net *net;
	struct net_result result;

	(void)state;
	nets_start(&n, 3, 60, 70, LOSS_MSE);
	nets_conv(&n, "a", 2, 11, 3);
	assert_int_equal(net_new(&net, &n.spec, 0, 1, true, 0, NULL), ERR_OK);
	net_init(net, 1);
	size_t in = net_inputs(net), out = net_outputs(net);
	float *x = malloc(in * sizeof(float)), *zero = calloc(out, sizeof(float));
	struct prng r;
	prng_seed(&r, 1);
	for (size_t i = 0; i < in; i++)
		x[i] = prng_float(&r) - 0.5f;
	struct net_batch b = {.x = x, .targets = zero, .n = 1};
	assert_int_equal(net_eval(net, &b, &result), ERR_OK);
	const float *w = net_params(net);
	for (int o = 0; o < 2; o++)
		for (int y = 0; y < 56; y += 5)
			for (int z = 0; z < 66; z += 3) {
				double sum = 0;
				for (int k = 0; k < 3 * 121; k++) {
					int iy = y + k % 121 / 11 - 3, ix = z + k % 11 - 3;
					if (iy >= 0 && iy < 60 && ix >= 0 && ix < 70)
						sum += (double)w[o * 363 + k] *
						    (double)x[k / 121 * 4200 + iy * 70 + ix];
				}
				assert_true(
				    fabs(sum - (double)net_output(net)[(o * 56 + y) * 66 + z]) <
				    1e-5);
			}
	/* The gradient of the mean of squares, for one weight of each channel. */
	float *gradient = malloc(net_tensors(net)->bytes);
	assert_int_equal(net_gradient(net, &b, gradient), ERR_OK);
	for (size_t at = 5; at < 726; at += 121) {
		float *v = net_params(net) + at, old = *v;
		*v = old + 0.01f;
		assert_int_equal(net_eval(net, &b, &result), ERR_OK);
		double up = result.loss;
		*v = old - 0.01f;
		assert_int_equal(net_eval(net, &b, &result), ERR_OK);
		*v = old;
		assert_true(fabs((up - result.loss) / 0.02 - (double)gradient[at]) < 1e-3);
	}
	free(gradient);
	free(x);
	free(zero);
	net_free(net);
}

/* Without labels, the same outputs; nothing can go back from there. */
static void
predict(void **state)
{
	struct nets n;
	struct net *net;
	struct net_result result;
	static float x[2 * 784];
	float known[20];
	uint32_t shape[3];
	(void)state;

	for (size_t i = 0; i < 2 * 784; i++)
		x[i] = (float)(i % 13) / 13;
	nets_lenet(&n);
	assert_int_equal(net_new(&net, &n.spec, 10, 2, true, 0, NULL), ERR_OK);
	net_init(net, 3);
	const struct net_batch b = {.x = x, .labels = (int32_t[]){1, 2}, .n = 2};
	assert_int_equal(net_eval(net, &b, &result), ERR_OK);
	memcpy(known, net_output(net), sizeof(known));
	assert_int_equal(net_predict(net, x + 784, 1), ERR_OK);
	assert_memory_equal(net_output(net), known + 10, 10 * sizeof(float));
	assert_int_equal(net_predict(net, x, 2), ERR_OK);
	assert_memory_equal(net_output(net), known, sizeof(known));
	assert_int_equal(net_predict(net, x, 0), ERR_INVALID);
	assert_int_equal(net_predict(net, x, 3), ERR_INVALID);
	assert_int_equal(net_predict(net, NULL, 1), ERR_INVALID);
	net_output_shape(net, shape);
	assert_memory_equal(shape, ((uint32_t[]){10, 1, 1}), sizeof(shape));
	const struct net_update how = {.rate = 0.1f, .parts = 2};
	assert_int_equal(net_prepare(net, &how, NULL), ERR_OK);
	assert_int_equal(net_predict(net, x, 2), ERR_OK);
	assert_int_equal(
	    net_backward(net, 0, &(struct net_gradients){.share = 1}, &result), ERR_STATE);
	net_free(net);

	const struct net_part part = {
	    .spec = &n.spec, .classes = 10, .first = 0, .last = 3, .max_batch = 2, .contexts = 1};
	assert_int_equal(net_new_part(&net, &part, NULL), ERR_OK);
	assert_int_equal(net_predict(net, x, 1), ERR_STATE);
	net_output_shape(net, shape);
	assert_memory_equal(shape, ((uint32_t[]){6, 14, 14}), sizeof(shape));
	net_free(net);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(gradient_linear),
	    cmocka_unit_test(gradient_mse),
	    cmocka_unit_test(gradient_relu),
	    cmocka_unit_test(gradient_windows),
	    cmocka_unit_test(gradient_rectangular),
	    cmocka_unit_test(gradient_graph),
	    cmocka_unit_test(dropout),
	    cmocka_unit_test(dropout_scale),
	    cmocka_unit_test(bad_specs),
	    cmocka_unit_test(bad_windows),
	    cmocka_unit_test(limits),
	    cmocka_unit_test(bad_batches),
	    cmocka_unit_test(predict),
	    cmocka_unit_test(failed_step),
	    cmocka_unit_test(slabs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
