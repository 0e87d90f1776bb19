/* stages: gcc clang address */
/* Networks against PyTorch: see tests/vectors/make_model_vectors.py for the files and the tolerance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "bytes.h"
#include "file.h"
#include "net.h"
#include "nets.h"
#include "tensor.h"

#define TOLERANCE 2e-5
#define BATCH 4

struct vectors {
	char *file;
	struct bytes_reader reader;
};

/* The next array; the caller frees it. */
static float *
array(struct vectors *v, size_t *count)
{
	*count = bytes_get_u32(&v->reader);
	assert_true(*count <= v->reader.left / 4);
	float *x = malloc(*count * sizeof(*x) + 1);
	for (size_t i = 0; i < *count; i++)
		x[i] = bytes_get_f32(&v->reader);
	assert_false(v->reader.bad);
	return x;
}

static void
compare(const char *what, const float *got, struct vectors *v, size_t count)
{
	size_t n;
	float *want = array(v, &n), top = 0;

	assert_int_equal(n, count);
	for (size_t i = 0; i < n; i++)
		top = fmaxf(top, fabsf(want[i]));
	for (size_t i = 0; i < n; i++)
		if (!(fabs((double)got[i] - (double)want[i]) <= TOLERANCE * (double)top))
			fail_msg("%s[%zu] is %.9g, PyTorch has %.9g", what, i, (double)got[i],
			    (double)want[i]);
	free(want);
}

static void
check(const char *name, const struct net_spec *spec, size_t classes)
{
	char path[128];
	struct vectors v;
	size_t len, n, count;
	struct net *net;
	struct why why = {""};
	int32_t labels[BATCH];

	snprintf(path, sizeof(path), "tests/vectors/model/%s.vec", name);
	assert_int_equal(file_read(path, 1 << 20, &v.file, &len, NULL), ERR_OK);
	v.reader = bytes_reader(v.file, len);
	if (net_new(&net, spec, classes, BATCH, true, 0, &why))
		fail_msg("%s", why.text);
	size_t params = net_tensors(net)->elements;
	float *x = array(&v, &n), *target = array(&v, &count), *start = array(&v, &n);
	assert_int_equal(n, params);
	for (size_t i = 0; classes > 0 && i < BATCH; i++)
		labels[i] = (int32_t)target[i];
	memcpy(net_params(net), start, n * sizeof(*start));

	struct net_batch b = {.x = x, .labels = labels, .targets = target, .n = BATCH};
	struct net_result result;
	assert_int_equal(net_eval(net, &b, &result), ERR_OK);
	compare("output", net_output(net), &v, BATCH * net_outputs(net));
	float loss = (float)(result.loss / BATCH), *gradient = malloc(params * sizeof(*gradient));
	compare("loss", &loss, &v, 1);
	assert_int_equal(net_gradient(net, &b, gradient), ERR_OK);
	compare("gradient", gradient, &v, params);
	struct net_update sgd = {.rate = 0.05f, .momentum = 0.9f, .weight_decay = 0.01f};
	assert_int_equal(net_prepare(net, &sgd, &why), ERR_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(net_step(net, &b, &sgd, &result), ERR_OK);
	compare("parameter", net_params(net), &v, params);
	assert_int_equal(v.reader.left, 0);
	net_free(net);
	free(gradient);
	free(start);
	free(target);
	free(x);
	free(v.file);
}

static void
linear(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 37, 1, 1, LOSS_CROSS_ENTROPY);
	nets_linear(&n, "a", 19);
	nets_add(&n, LAYER_RELU, "b");
	nets_add(&n, LAYER_DROPOUT, "c")->rate = 0.5f;
	nets_linear(&n, "d", 3)->bias = false;
	check("linear", &n.spec, 3);
}

static void
regression(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 5, 1, 1, LOSS_MSE);
	nets_linear(&n, "a", 17);
	nets_add(&n, LAYER_RELU, "b");
	nets_linear(&n, "c", 2);
	check("regression", &n.spec, 0);
}

static void
conv_stride(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 2, 9, 7, LOSS_CROSS_ENTROPY);
	struct layer_spec *l = nets_conv(&n, "a", 4, 3, 1);
	l->kernel[1] = 2;
	l->stride[0] = 2;
	nets_add(&n, LAYER_RELU, "b");
	l = nets_conv(&n, "c", 5, 1, 0);
	l->kernel[1] = 3;
	l->stride[1] = 2;
	l->bias = false;
	nets_add(&n, LAYER_RELU, "d");
	nets_add(&n, LAYER_FLATTEN, "e");
	nets_linear(&n, "f", 3);
	check("conv_stride", &n.spec, 3);
}

static void
pools(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 3, 8, 6, LOSS_MSE);
	nets_conv(&n, "a", 5, 3, 1);
	nets_window(&n, LAYER_MAXPOOL2D, "b", 3, 2, 1);
	nets_add(&n, LAYER_RELU, "c");
	struct layer_spec *l = nets_conv(&n, "d", 4, 2, 0);
	l->kernel[1] = 3;
	l->padding[1] = 1;
	l = nets_window(&n, LAYER_AVGPOOL2D, "e", 2, 1, 1);
	l->kernel[1] = 3;
	l->stride[1] = 2;
	nets_add(&n, LAYER_FLATTEN, "f");
	nets_linear(&n, "g", 4);
	check("pools", &n.spec, 0);
}

static void
maxpool2(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 1, 17, 17, LOSS_CROSS_ENTROPY);
	nets_conv(&n, "a", 6, 5, 2);
	nets_add(&n, LAYER_RELU, "b");
	nets_window(&n, LAYER_MAXPOOL2D, "c", 2, 2, 0);
	nets_conv(&n, "d", 3, 5, 0);
	nets_add(&n, LAYER_RELU, "e");
	nets_window(&n, LAYER_MAXPOOL2D, "f", 2, 2, 0);
	nets_add(&n, LAYER_FLATTEN, "g");
	nets_linear(&n, "h", 5);
	check("maxpool2", &n.spec, 5);
}

static void
residual(void **state)
{
	struct nets n;

	(void)state;
	nets_start(&n, 2, 5, 5, LOSS_CROSS_ENTROPY);
	nets_conv(&n, "conv1", 3, 3, 1);
	nets_add(&n, LAYER_RELU, "a"); /* 1 */
	nets_conv(&n, "conv2", 3, 3, 1); /* 2 */
	struct layer_spec *l = nets_add(&n, LAYER_ADD, "sum"); /* 3 */
	l->input_count = 2;
	l->inputs[1] = 1;
	nets_add(&n, LAYER_RELU, "b");
	nets_add(&n, LAYER_FLATTEN, "c");
	nets_linear(&n, "fc1", 4); /* 6 */
	nets_add(&n, LAYER_FLATTEN, "d")->inputs[0] = 1;
	nets_linear(&n, "fc2", 4); /* 8 */
	l = nets_add(&n, LAYER_ADD, "out");
	l->input_count = 2;
	l->inputs[1] = 6;
	check("residual", &n.spec, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(linear),
	    cmocka_unit_test(regression),
	    cmocka_unit_test(conv_stride),
	    cmocka_unit_test(pools),
	    cmocka_unit_test(maxpool2),
	    cmocka_unit_test(residual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
