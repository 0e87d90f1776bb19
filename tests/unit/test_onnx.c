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
	assert_int_equal(p.err, ERR_OK);
	assert_int_equal(out.len, 15);
	assert_memory_equal(
	    out.data, "\xa0\x01\xac\x02\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 15);
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
	    cmocka_unit_test(lengths),
	    cmocka_unit_test(numbers),
	    cmocka_unit_test(an_error_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
