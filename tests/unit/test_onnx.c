/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "net.h"
#include "nets.h"
#include "onnx.h"
#include "protobuf.h"
#include "tensor.h"

/* Every kind of layer, and both nodes that go between a flat tensor and planes. tests/vectors/make_onnx.py makes the same. */
struct tiny {
	struct nets nets;
	struct data_spec data;
	struct net *net;
	struct onnx_model model;
};

static void
window(struct layer_spec *l, uint32_t kh, uint32_t kw, uint32_t sh, uint32_t sw, uint32_t ph,
    uint32_t pw)
{
	l->kernel[0] = kh;
	l->kernel[1] = kw;
	l->stride[0] = sh;
	l->stride[1] = sw;
	l->padding[0] = ph;
	l->padding[1] = pw;
}

static void
describe(struct nets *n)
{
	struct layer_spec *l;

	nets_start(n, 2, 3, 3, LOSS_MSE);
	l = nets_add(n, LAYER_CONV2D, "c");
	l->out = 2;
	window(l, 2, 1, 1, 2, 1, 0);
	nets_add(n, LAYER_RELU, "r");
	window(nets_add(n, LAYER_AVGPOOL2D, "p"), 4, 2, 4, 3, 0, 1);
	nets_add(n, LAYER_FLATTEN, "f");
	nets_add(n, LAYER_DROPOUT, "d")->rate = 0.5f;
	l = nets_add(n, LAYER_LINEAR, "fc");
	l->out = 2;
	l->bias = false;
	l = nets_add(n, LAYER_ADD, "sum");
	l->inputs[0] = 2;
	l->inputs[1] = 5;
	l->input_count = 2;
	window(nets_add(n, LAYER_MAXPOOL2D, "m"), 1, 1, 1, 1, 0, 0);
}

static int
set_up(void **state)
{
	struct tiny *t = calloc(1, sizeof(*t));
	struct why why = {""};

	describe(&t->nets);
	t->data = (struct data_spec){.channels = 2, .mean = {0.25f, 0.5f}, .std = {2, 4}};
	enum err e = net_new(&t->net, &t->nets.spec, 0, 1, false, 0, &why);
	if (e)
		print_error("%s\n", why.text);
	assert_int_equal(e, ERR_OK);
	for (size_t i = 0; i < net_tensors(t->net)->elements; i++)
		net_params(t->net)[i] = (float)i / 2;
	t->model = (struct onnx_model){.name = "tiny",
	    .net = &t->nets.spec,
	    .data = &t->data,
	    .tensors = net_tensors(t->net),
	    .weights = net_params(t->net)};
	net_output_shape(t->net, t->model.output);
	*state = t;
	return 0;
}

static int
tear_down(void **state)
{
	struct tiny *t = *state;

	net_free(t->net);
	free(t);
	return 0;
}

static void
bytes_of_onnx_itself(void **state)
{
	struct tiny *t = *state;
	struct buf out;
	char *known;
	size_t len;

	buf_init(&out, ONNX_BYTES_MAX);
	assert_int_equal(onnx_encode(&out, &t->model, NULL), ERR_OK);
	assert_int_equal(file_read("tests/vectors/tiny.onnx", 1 << 16, &known, &len, NULL), ERR_OK);
	assert_int_equal(out.len, len);
	assert_memory_equal(out.data, known, len);
	free(known);
	buf_deinit(&out);
}

static void
refused(struct tiny *t, enum err want, size_t max, const char *text)
{
	struct why why = {""};
	struct buf out;

	buf_init(&out, max);
	assert_int_equal(onnx_encode(&out, &t->model, &why), want);
	assert_non_null(strstr(why.text, text));
	buf_deinit(&out);
}

static void
refusals(void **state)
{
	struct tiny *t = *state;
	struct tensor_table large = *t->model.tensors;

	refused(t, ERR_LIMIT, 1000, "2 GiB");
	large.bytes = ONNX_BYTES_MAX;
	t->model.tensors = &large;
	refused(t, ERR_LIMIT, ONNX_BYTES_MAX, "2 GiB");
	t->model.tensors = net_tensors(t->net);
	t->nets.layers[5].bias = true;
	refused(t, ERR_NOTFOUND, ONNX_BYTES_MAX, "\"fc.bias\"");
	t->nets.layers[6].type = (enum layer_type)(LAYER_ADD + 1000);
	t->nets.layers[5].bias = false;
	refused(t, ERR_UNSUPPORTED, ONNX_BYTES_MAX, "\"sum\"");
}

/* A sequence, and a network of it: spec with input [3, 4]. */
static void
start_rows(struct nets *n)
{
	nets_start(n, 3, 1, 4, LOSS_MSE);
	n->spec.input_dims = 2;
}

static struct net *
encode(struct nets *n, struct buf *out, enum err want)
{
	struct net *net;
	struct why why = {""};

	assert_int_equal(net_new(&net, &n->spec, 0, 1, false, 0, &why), ERR_OK);
	for (size_t i = 0; i < net_tensors(net)->elements; i++)
		net_params(net)[i] = (float)i;
	struct onnx_model m = {.name = "rows",
	    .net = &n->spec,
	    .tensors = net_tensors(net),
	    .weights = net_params(net)};
	net_output_shape(net, m.output);
	buf_init(out, ONNX_BYTES_MAX);
	assert_int_equal(onnx_encode(out, &m, &why), want);
	return net;
}

/* Is there a tensor of these floats? */
static bool
holds(const struct buf *b, const float *v, size_t n)
{
	return memmem(b->data, b->len, v, n * sizeof(*v)) != NULL;
}

static bool
says(const struct buf *b, const char *word)
{
	return memmem(b->data, b->len, word, strlen(word)) != NULL;
}

/* One hidden value and rows of four: the weights of the four gates i, f, g, o are 0 to 3, 4 to 7, 8 to 11, 12 to 15, those of the
 * hidden value 16 to 19. ONNX has i, o, f, c. */
static void
gates_are_rearranged(void **state)
{
	static const float weights[] = {0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11},
			   hidden[] = {16, 19, 17, 18}, biases[] = {20, 23, 21, 22, 24, 27, 25, 26};
	static const float as_they_are[] = {3, 4};
	struct nets n;
	struct buf out;

	(void)state;
	start_rows(&n);
	struct layer_spec *l = nets_add(&n, LAYER_LSTM, "l");
	l->out = l->stack = 1;
	struct net *net = encode(&n, &out, ERR_OK);
	assert_true(says(&out, "LSTM"));
	assert_true(holds(&out, weights, 16));
	assert_true(holds(&out, hidden, 4));
	assert_true(holds(&out, biases, 8));
	assert_false(holds(&out, as_they_are, 2));
	buf_deinit(&out);
	net_free(net);
}

/* PyTorch r, z, n; ONNX z, r, h. */
static void
gates_of_a_gru(void **state)
{
	static const float weights[] = {4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11},
			   hidden[] = {13, 12, 14};
	struct nets n;
	struct buf out;

	(void)state;
	start_rows(&n);
	struct layer_spec *l = nets_add(&n, LAYER_GRU, "g");
	l->out = l->stack = 1;
	l->bias = false;
	struct net *net = encode(&n, &out, ERR_OK);
	assert_true(says(&out, "linear_before_reset"));
	assert_true(holds(&out, weights, 12));
	assert_true(holds(&out, hidden, 3));
	buf_deinit(&out);
	net_free(net);
}

/* Step 1 of heads of two: cosine and sine of 1. */
static void
attention_with_places(void **state)
{
	static const float cosines[] = {1, 1, 0.540302305868f, 0.540302305868f};
	struct nets n;
	struct buf out;

	(void)state;
	start_rows(&n);
	struct layer_spec *l = nets_add(&n, LAYER_ATTENTION, "a");
	l->heads = 2;
	l->causal = true;
	l->rotation = ROTATION_ROTARY;
	struct net *net = encode(&n, &out, ERR_OK);
	assert_true(says(&out, "Softmax"));
	assert_true(says(&out, "/places/a"));
	assert_true(holds(&out, cosines, 4));
	buf_deinit(&out);
	net_free(net);
}

static size_t
count(const struct buf *b, const char *word)
{
	const char *at = b->data, *end = at + b->len;
	size_t n = 0;

	while ((at = memmem(at, (size_t)(end - at), word, strlen(word)))) {
		at += strlen(word);
		n++;
	}
	return n;
}

/* One tensor, written once, that two layers read. */
static void
weights_of_another(void **state)
{
	static const float weights[] = {
	    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
	struct nets n;
	struct buf out;

	(void)state;
	start_rows(&n);
	nets_linear(&n, "a", 4);
	struct layer_spec *l = nets_linear(&n, "b", 4);
	l->tied = 1;
	l->bias = false;
	struct net *net = encode(&n, &out, ERR_OK);
	assert_int_equal(net_tensors(net)->count, 2);
	assert_int_equal(count(&out, "a.weight"), 3);
	assert_false(says(&out, "b.weight"));
	assert_true(holds(&out, weights, 16));
	buf_deinit(&out);
	net_free(net);
}

/* [1, 4] begins at 20, [4, 1] at 24; 3 / 1 is their scale. */
static void
lora_is_added(void **state)
{
	static const float narrow[] = {20, 21, 22, 23}, wide[] = {24, 25, 26, 27}, scale[] = {3};
	struct nets n;
	struct buf out;

	(void)state;
	start_rows(&n);
	struct layer_spec *l = nets_linear(&n, "a", 4);
	l->rank = 1;
	l->alpha = 3;
	struct net *net = encode(&n, &out, ERR_OK);
	assert_int_equal(count(&out, "MatMul"), 3);
	assert_true(says(&out, "a.lora_A.weight") && says(&out, "a.lora_B.weight"));
	assert_true(holds(&out, narrow, 4) && holds(&out, wide, 4) && holds(&out, scale, 1));
	buf_deinit(&out);
	net_free(net);
}

/* Layers that want more tensors than the model has, or others. */
static void
tensors_that_do_not_fit(void **state)
{
	static const enum layer_type types[] = {
	    LAYER_LSTM, LAYER_ATTENTION, LAYER_BATCHNORM, LAYER_GROUPNORM};
	struct nets n, other;
	struct buf out;
	struct why why = {""};

	(void)state;
	start_rows(&n);
	nets_linear(&n, "x", 4);
	struct net *net = encode(&n, &out, ERR_OK);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		start_rows(&other);
		struct layer_spec *l = nets_add(&other, types[i], "x");
		l->out = l->stack = l->heads = 1;
		struct onnx_model m = {.name = "rows",
		    .net = &other.spec,
		    .tensors = net_tensors(net),
		    .weights = net_params(net)};
		assert_int_equal(onnx_encode(&out, &m, &why), i == 3 ? ERR_OK : ERR_NOTFOUND);
	}
	net_free(net);
	buf_deinit(&out);
	start_rows(&n);
	struct layer_spec *l = nets_add(&n, LAYER_LSTM, "x");
	l->out = l->stack = 1;
	net = encode(&n, &out, ERR_OK);
	l->out = 2;
	struct onnx_model m = {.name = "rows",
	    .net = &n.spec,
	    .tensors = net_tensors(net),
	    .weights = net_params(net)};
	assert_int_equal(onnx_encode(&out, &m, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "weight_ih_l0"));
	net_free(net);
	buf_deinit(&out);
}

/* A message in a message whose length takes one byte or more: 0x12 is field 2 with bytes, 0x1a is 3. */
static void
nested(size_t n, const char *head, size_t head_len)
{
	char *text = calloc(1, n + 1);
	struct buf out;

	memset(text, 'x', n);
	buf_init(&out, 1 << 20);
	struct protobuf p = {.out = &out};
	size_t at = protobuf_open(&p, 2);
	protobuf_string(&p, 3, text);
	protobuf_close(&p, at);
	assert_int_equal(p.err, ERR_OK);
	assert_int_equal(out.len, head_len + n);
	assert_memory_equal(out.data, head, head_len);
	assert_memory_equal(out.data + head_len, text, n);
	buf_deinit(&out);
	free(text);
}

static void
lengths(void **state)
{
	(void)state;
	nested(0, "\x12\x02\x1a\x00", 4);
	nested(125, "\x12\x7f\x1a\x7d", 4);
	nested(126, "\x12\x80\x01\x1a\x7e", 5);
	nested(128, "\x12\x83\x01\x1a\x80\x01", 6);
	nested(16384, "\x12\x84\x80\x01\x1a\x80\x80\x01", 8);
}

static void
numbers(void **state)
{
	(void)state;
	struct buf out;

	buf_init(&out, 64);
	struct protobuf p = {.out = &out};
	protobuf_u64(&p, 20, 300);
	protobuf_i64(&p, 1, -1);
	protobuf_f32(&p, 2, -2);
	assert_int_equal(p.err, ERR_OK);
	assert_int_equal(out.len, 20);
	assert_memory_equal(out.data,
	    "\xa0\x01\xac\x02\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x15\0\0\0\xc0", 20);
	buf_deinit(&out);
}

static void
an_error_sticks(void **state)
{
	(void)state;
	struct buf out;

	buf_init(&out, 4);
	struct protobuf p = {.out = &out};
	size_t at = protobuf_open(&p, 1);
	protobuf_string(&p, 1, "long");
	protobuf_u64(&p, 1, 1);
	protobuf_close(&p, at);
	assert_int_equal(p.err, ERR_LIMIT);
	assert_true(out.len <= 4);
	buf_deinit(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(bytes_of_onnx_itself, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(refusals, set_up, tear_down),
	    cmocka_unit_test(gates_are_rearranged),
	    cmocka_unit_test(gates_of_a_gru),
	    cmocka_unit_test(attention_with_places),
	    cmocka_unit_test(weights_of_another),
	    cmocka_unit_test(lora_is_added),
	    cmocka_unit_test(tensors_that_do_not_fit),
	    cmocka_unit_test(lengths),
	    cmocka_unit_test(numbers),
	    cmocka_unit_test(an_error_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
