#include "onnx.h"

#include <stdio.h>
#include <string.h>

#include "protobuf.h"

/* Room for the name of a value: "/", a layer's name, "/flat", the number of an input. */
#define VALUE_MAX (RECIPE_NAME_MAX + 32)
#define INPUTS_MAX (RECIPE_INPUTS_MAX + 1)

/* Numbers of fields and of types in onnx.proto3. */
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_I = 3, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { TENSOR_PROTO_DIMS = 1, TENSOR_PROTO_TYPE = 2, TENSOR_PROTO_NAME = 8, TENSOR_PROTO_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TYPE_ELEMENT = 1, TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };
enum { ELEMENT_FLOAT = 1, ELEMENT_INT64 = 7, IS_INT = 2, IS_INTS = 7 };

/* The names of initializers that are no layer's. No layer's name holds a slash. */
#define MEAN "/normalise/mean"
#define STD "/normalise/std"
#define TO_PLANES "/planes/shape"

/* ONNX tells [batch, n] and [batch, n, 1, 1] apart, the built-in network does not. */
enum rank { FLAT = 2, PLANES = 4 };

struct writer {
	struct protobuf to;
	const struct onnx_model *m;
	bool reshapes; /* some node needs TO_PLANES */
	enum rank ranks[RECIPE_LAYERS_MAX]; /* of the layers' outputs */
};

struct value {
	char name[VALUE_MAX];
	enum rank rank;
};

struct node {
	const char *op, *name, *output;
	const char *inputs[INPUTS_MAX];
	size_t input_count;
	const struct layer_spec *window; /* kernel, strides, pads; NULL: none */
	const char *flag; /* an attribute of value 1; NULL: none */
};

static void
write_int(struct protobuf *p, const char *name, int64_t v)
{
	size_t at = protobuf_open(p, NODE_ATTRIBUTE);

	protobuf_string(p, ATTRIBUTE_NAME, name);
	protobuf_i64(p, ATTRIBUTE_I, v);
	protobuf_u64(p, ATTRIBUTE_TYPE, IS_INT);
	protobuf_close(p, at);
}

static void
write_ints(struct protobuf *p, const char *name, const uint32_t *v, size_t n)
{
	size_t at = protobuf_open(p, NODE_ATTRIBUTE);

	protobuf_string(p, ATTRIBUTE_NAME, name);
	for (size_t i = 0; i < n; i++)
		protobuf_u64(p, ATTRIBUTE_INTS, v[i]);
	protobuf_u64(p, ATTRIBUTE_TYPE, IS_INTS);
	protobuf_close(p, at);
}

static void
write_window(struct protobuf *p, const struct layer_spec *l)
{
	const uint32_t *pad = l->padding, pads[4] = {pad[0], pad[1], pad[0], pad[1]};

	write_ints(p, "kernel_shape", l->kernel, 2);
	write_ints(p, "pads", pads, 4);
	write_ints(p, "strides", l->stride, 2);
}

static void
write_node(struct writer *w, const struct node *n)
{
	struct protobuf *p = &w->to;
	size_t at = protobuf_open(p, GRAPH_NODE);

	for (size_t i = 0; i < n->input_count; i++)
		protobuf_string(p, NODE_INPUT, n->inputs[i]);
	protobuf_string(p, NODE_OUTPUT, n->output);
	protobuf_string(p, NODE_NAME, n->name);
	protobuf_string(p, NODE_OP, n->op);
	if (n->flag)
		write_int(p, n->flag, 1);
	if (n->window)
		write_window(p, n->window);
	protobuf_close(p, at);
}

/* The output of a layer, or the network's input behind its normalisation. */
static struct value
value_of(const struct writer *w, int from)
{
	const struct net_spec *net = w->m->net;
	struct value v = {.name = "input", .rank = net->input_dims == 1 ? FLAT : PLANES};

	if (from == LAYER_INPUT && w->m->data && w->m->data->channels > 0)
		snprintf(v.name, sizeof(v.name), "/normalise");
	if (from == LAYER_INPUT)
		return v;
	v.rank = w->ranks[from];
	if ((size_t)from + 1 == net->layer_count)
		snprintf(v.name, sizeof(v.name), "output");
	else
		snprintf(v.name, sizeof(v.name), "/layer/%s", net->layers[from].name);
	return v;
}

/* Input i of a layer with that rank; a node goes between where it has another. */
static struct value
input_of(struct writer *w, size_t layer, size_t i, enum rank rank)
{
	const struct layer_spec *l = &w->m->net->layers[layer];
	struct value from = value_of(w, l->inputs[i]), to = {.rank = rank};

	if (from.rank == rank)
		return from;
	snprintf(
	    to.name, sizeof(to.name), "/%s/%s%zu", rank == FLAT ? "flat" : "planes", l->name, i);
	struct node n = {.op = rank == FLAT ? "Flatten" : "Reshape",
	    .name = to.name,
	    .output = to.name,
	    .inputs = {from.name, TO_PLANES},
	    .input_count = rank == FLAT ? 1 : 2};
	w->reshapes |= rank == PLANES;
	write_node(w, &n);
	return to;
}

/* Layers that read planes and those that read a flat input; the others take either. */
static enum rank
rank_wanted(const struct writer *w, const struct layer_spec *l)
{
	switch (l->type) {
	case LAYER_LINEAR:
		return FLAT;
	case LAYER_CONV2D:
	case LAYER_MAXPOOL2D:
	case LAYER_AVGPOOL2D:
		return PLANES;
	default:
		break;
	}
	for (size_t i = 0; i < l->input_count; i++)
		if (value_of(w, l->inputs[i]).rank == FLAT)
			return FLAT;
	return PLANES;
}

/* What stands for a layer of each type. Dropout is for training. */
static const struct {
	const char *op;
	const char *flag;
	bool weights, window;
} ops[] = {
    [LAYER_LINEAR] = {.op = "Gemm", .flag = "transB", .weights = true},
    [LAYER_CONV2D] = {.op = "Conv", .weights = true, .window = true},
    [LAYER_MAXPOOL2D] = {.op = "MaxPool", .window = true},
    [LAYER_AVGPOOL2D] = {.op = "AveragePool", .flag = "count_include_pad", .window = true},
    [LAYER_RELU] = {.op = "Relu"},
    [LAYER_FLATTEN] = {.op = "Flatten"},
    [LAYER_DROPOUT] = {.op = "Identity"},
    [LAYER_ADD] = {.op = "Sum"},
};

static void
write_layer(struct writer *w, size_t i)
{
	const struct layer_spec *l = &w->m->net->layers[i];
	struct value in[RECIPE_INPUTS_MAX], out;
	char tensors[2][TENSOR_NAME_MAX];
	enum rank rank = rank_wanted(w, l);
	struct node n = {.op = ops[l->type].op,
	    .name = l->name,
	    .flag = ops[l->type].flag,
	    .window = ops[l->type].window ? l : NULL};

	for (size_t k = 0; k < l->input_count; k++) {
		in[k] = input_of(w, i, k, rank);
		n.inputs[n.input_count++] = in[k].name;
	}
	snprintf(tensors[0], sizeof(tensors[0]), "%s.weight", l->name);
	snprintf(tensors[1], sizeof(tensors[1]), "%s.bias", l->name);
	for (size_t k = 0; ops[l->type].weights && k < (l->bias ? 2 : 1); k++)
		n.inputs[n.input_count++] = tensors[k];
	w->ranks[i] = l->type == LAYER_FLATTEN ? FLAT : rank;
	out = value_of(w, (int)i);
	n.output = out.name;
	write_node(w, &n);
}

static void
write_normalisation(struct writer *w)
{
	const struct node subtract = {.op = "Sub",
	    .name = "/normalise/subtract",
	    .output = "/normalise/subtract",
	    .inputs = {"input", MEAN},
	    .input_count = 2};
	const struct node divide = {.op = "Div",
	    .name = "/normalise",
	    .output = "/normalise",
	    .inputs = {subtract.output, STD},
	    .input_count = 2};

	if (!w->m->data || w->m->data->channels == 0)
		return;
	write_node(w, &subtract);
	write_node(w, &divide);
}

struct initializer {
	const char *name;
	unsigned type;
	const uint64_t *shape;
	unsigned dims;
	const void *data;
	size_t bytes;
};

static void
write_initializer(struct writer *w, const struct initializer *t)
{
	struct protobuf *p = &w->to;
	size_t at = protobuf_open(p, GRAPH_INITIALIZER);

	for (unsigned i = 0; i < t->dims; i++)
		protobuf_u64(p, TENSOR_PROTO_DIMS, t->shape[i]);
	protobuf_u64(p, TENSOR_PROTO_TYPE, t->type);
	protobuf_string(p, TENSOR_PROTO_NAME, t->name);
	protobuf_bytes(p, TENSOR_PROTO_RAW, t->data, t->bytes);
	protobuf_close(p, at);
}

/* One number for all, or one for each channel of planes or each column. */
static void
write_channels(struct writer *w, const char *name, const float *v)
{
	const struct data_spec *d = w->m->data;
	const uint64_t shape[3] = {d->channels, 1, 1};
	const struct initializer t = {.name = name,
	    .type = ELEMENT_FLOAT,
	    .shape = shape,
	    .dims = w->m->net->input_dims == 1 ? 1 : 3,
	    .data = v,
	    .bytes = d->channels * sizeof(*v)};

	write_initializer(w, &t);
}

static void
write_initializers(struct writer *w)
{
	static const int64_t planes[4] = {0, -1, 1, 1}; /* 0: as it is, -1: what is left */
	static const uint64_t four[1] = {4};
	const struct tensor_table *table = w->m->tensors;

	for (size_t i = 0; i < table->count; i++) {
		const struct tensor *t = &table->items[i];
		write_initializer(w,
		    &(struct initializer){.name = t->name,
			.type = ELEMENT_FLOAT,
			.shape = t->shape,
			.dims = t->dims,
			.data = (const char *)w->m->weights + t->begin,
			.bytes = (size_t)(t->end - t->begin)});
	}
	if (w->m->data && w->m->data->channels > 0) {
		write_channels(w, MEAN, w->m->data->mean);
		write_channels(w, STD, w->m->data->std);
	}
	if (w->reshapes)
		write_initializer(w,
		    &(struct initializer){
			TO_PLANES, ELEMENT_INT64, four, 1, planes, sizeof(planes)});
}

/* The network's input or output: any batch of examples of that shape. */
static void
write_value(
    struct writer *w, uint32_t field, const char *name, enum rank rank, const uint32_t *shape)
{
	struct protobuf *p = &w->to;
	size_t value = protobuf_open(p, field);

	protobuf_string(p, VALUE_NAME, name);
	size_t type = protobuf_open(p, VALUE_TYPE), tensor = protobuf_open(p, TYPE_TENSOR);
	protobuf_u64(p, TYPE_ELEMENT, ELEMENT_FLOAT);
	size_t dims = protobuf_open(p, TYPE_SHAPE), dim = protobuf_open(p, SHAPE_DIM);
	protobuf_string(p, DIM_PARAM, "batch");
	protobuf_close(p, dim);
	for (int i = 0; i < (int)rank - 1; i++) {
		dim = protobuf_open(p, SHAPE_DIM);
		protobuf_u64(p, DIM_VALUE, shape[i]);
		protobuf_close(p, dim);
	}
	protobuf_close(p, dims);
	protobuf_close(p, tensor);
	protobuf_close(p, type);
	protobuf_close(p, value);
}

static void
write_graph(struct writer *w)
{
	const struct net_spec *net = w->m->net;
	size_t at = protobuf_open(&w->to, MODEL_GRAPH);

	write_normalisation(w);
	for (size_t i = 0; i < net->layer_count; i++)
		write_layer(w, i);
	protobuf_string(&w->to, GRAPH_NAME, w->m->name);
	write_initializers(w);
	write_value(w, GRAPH_INPUT, "input", net->input_dims == 1 ? FLAT : PLANES, net->input);
	write_value(w, GRAPH_OUTPUT, "output", w->ranks[net->layer_count - 1], w->m->output);
	protobuf_close(&w->to, at);
}

static enum err
check(const struct onnx_model *m, struct why *why)
{
	static const char *const kinds[2] = {"weight", "bias"};
	char name[TENSOR_NAME_MAX];

	for (size_t i = 0; i < m->net->layer_count; i++) {
		const struct layer_spec *l = &m->net->layers[i];
		if (l->type >= sizeof(ops) / sizeof(ops[0]) || !ops[l->type].op ||
		    (l->type == LAYER_CONV2D && l->groups > 1))
			return err_set(why, ERR_UNSUPPORTED,
			    "layer \"%s\": nothing in ONNX stands for its type here", l->name);
		for (int k = 0; ops[l->type].weights && k < (l->bias ? 2 : 1); k++) {
			snprintf(name, sizeof(name), "%s.%s", l->name, kinds[k]);
			if (!tensor_table_find(m->tensors, name))
				return err_set(
				    why, ERR_NOTFOUND, "the model has no tensor \"%s\"", name);
		}
	}
	return m->tensors->bytes < ONNX_BYTES_MAX
	    ? ERR_OK
	    : err_set(why, ERR_LIMIT, "the model is larger than the 2 GiB that ONNX allows");
}

enum err
onnx_encode(struct buf *out, const struct onnx_model *m, struct why *why)
{
	struct writer w = {.to = {.out = out}, .m = m};
	enum err e = check(m, why);

	if (e)
		return e;
	protobuf_u64(&w.to, MODEL_IR, ONNX_IR);
	protobuf_string(&w.to, MODEL_PRODUCER, "rivulet");
	write_graph(&w);
	size_t at = protobuf_open(&w.to, MODEL_OPSET);
	protobuf_string(&w.to, 1, "");
	protobuf_u64(&w.to, OPSET_VERSION, ONNX_OPSET);
	protobuf_close(&w.to, at);
	if (w.to.err == ERR_LIMIT)
		return err_set(
		    why, ERR_LIMIT, "the model is larger than the 2 GiB that ONNX allows");
	return w.to.err ? err_set(why, w.to.err, "no memory for the ONNX file") : ERR_OK;
}
