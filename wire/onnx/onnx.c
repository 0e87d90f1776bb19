#include "onnx.h"

#include "gates.h"
#include "heads.h"
#include "nodes.h"
#include "norms.h"
#include "plain.h"
#include "pointwise.h"

/* Numbers of fields and of types in onnx.proto3. */
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8, OPSET_VERSION = 2 };
enum { GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TYPE_ELEMENT = 1, TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };
enum { ELEMENT_FLOAT = 1, ELEMENT_INT64 = 7 };

/* What stands for a layer of each type. */
static void (*const layers[LAYER_TYPES])(struct nodes *g) = {
    [LAYER_LINEAR] = plain_linear,
    [LAYER_CONV2D] = plain_conv,
    [LAYER_CONV1D] = plain_conv,
    [LAYER_MAXPOOL2D] = plain_pool,
    [LAYER_AVGPOOL2D] = plain_pool,
    [LAYER_GLOBAL_AVGPOOL] = plain_global,
    [LAYER_RELU] = pointwise_relu,
    [LAYER_RELU6] = pointwise_relu6,
    [LAYER_SIGMOID] = pointwise_sigmoid,
    [LAYER_TANH] = pointwise_tanh,
    [LAYER_GELU] = pointwise_gelu,
    [LAYER_SILU] = pointwise_silu,
    [LAYER_HARDSWISH] = pointwise_hardswish,
    [LAYER_FLATTEN] = plain_flatten,
    [LAYER_DROPOUT] = pointwise_dropout,
    [LAYER_ADD] = plain_add,
    [LAYER_CONCAT] = plain_concat,
    [LAYER_MULTIPLY] = plain_multiply,
    [LAYER_GROUPNORM] = norms_groups,
    [LAYER_LAYERNORM] = norms_layer,
    [LAYER_RMSNORM] = norms_rms,
    [LAYER_BATCHNORM] = norms_batch,
    [LAYER_EMBEDDING] = plain_embedding,
    [LAYER_POSITIONS] = plain_positions,
    [LAYER_LSTM] = gates_write,
    [LAYER_GRU] = gates_write,
    [LAYER_ATTENTION] = heads_write,
    [LAYER_LEAKY_RELU] = pointwise_leaky_relu,
    [LAYER_ELU] = pointwise_elu,
    [LAYER_DROPOUT2D] = pointwise_dropout,
    [LAYER_REVERSE] = plain_reverse,
    [LAYER_POOL_STEPS] = plain_pool_steps,
    [LAYER_SCALE] = pointwise_scale,
};

static void
write_dim(struct protobuf *p, uint32_t n)
{
	size_t at = protobuf_open(p, SHAPE_DIM);

	protobuf_u64(p, DIM_VALUE, n);
	protobuf_close(p, at);
}

/* The network's input or output: any batch of examples of that shape. */
static void
write_value(
    struct protobuf *p, uint32_t field, bool tokens, enum nodes_rank rank, const uint32_t shape[3])
{
	size_t value = protobuf_open(p, field);

	protobuf_string(p, VALUE_NAME, field == GRAPH_INPUT ? "input" : "output");
	size_t type = protobuf_open(p, VALUE_TYPE), tensor = protobuf_open(p, TYPE_TENSOR);
	protobuf_u64(p, TYPE_ELEMENT, tokens ? ELEMENT_INT64 : ELEMENT_FLOAT);
	size_t dims = protobuf_open(p, TYPE_SHAPE), batch = protobuf_open(p, SHAPE_DIM);
	protobuf_string(p, DIM_PARAM, "batch");
	protobuf_close(p, batch);
	write_dim(p, shape[0]);
	if (rank == RANK_PLANES)
		write_dim(p, shape[1]);
	if (rank != RANK_FLAT)
		write_dim(p, shape[2]);
	protobuf_close(p, dims);
	protobuf_close(p, tensor);
	protobuf_close(p, type);
	protobuf_close(p, value);
}

static void
write_graph(struct nodes *g)
{
	const struct net_spec *net = g->m->net;
	struct protobuf *p = &g->to;
	size_t at = protobuf_open(p, MODEL_GRAPH);

	nodes_normalise(g);
	for (g->at = 0; g->at < net->layer_count; g->at++)
		layers[net->layers[g->at].type](g);
	protobuf_string(p, GRAPH_NAME, g->m->name);
	nodes_initializers(g);
	write_value(p, GRAPH_INPUT, nodes_tokens(g), nodes_input_shape(net).rank, net->input);
	write_value(p, GRAPH_OUTPUT, false, g->shapes[net->layer_count - 1].rank, g->m->output);
	protobuf_close(p, at);
}

static enum err
check(const struct onnx_model *m, struct why *why)
{
	for (size_t i = 0; i < m->net->layer_count; i++) {
		const struct layer_spec *l = &m->net->layers[i];
		if (l->type >= LAYER_TYPES || !layers[l->type])
			return err_set(why, ERR_UNSUPPORTED,
			    "layer \"%s\": nothing in ONNX stands for its type here", l->name);
	}
	return m->tensors->bytes < ONNX_BYTES_MAX
	    ? ERR_OK
	    : err_set(why, ERR_LIMIT, "the model is larger than the 2 GiB that ONNX allows");
}

/* The file, with constants gathered beside it. */
static enum err
encode(struct nodes *g)
{
	struct protobuf *p = &g->to;

	protobuf_u64(p, MODEL_IR, ONNX_IR);
	protobuf_string(p, MODEL_PRODUCER, "rivulet");
	write_graph(g);
	size_t at = protobuf_open(p, MODEL_OPSET);
	protobuf_string(p, 1, "");
	protobuf_u64(p, OPSET_VERSION, ONNX_OPSET);
	protobuf_close(p, at);
	if (g->err)
		return g->err;
	enum err e = p->err ? p->err : g->constants.err;
	if (e == ERR_LIMIT)
		return err_set(
		    g->why, ERR_LIMIT, "the model is larger than the 2 GiB that ONNX allows");
	return e ? err_set(g->why, e, "no memory for the ONNX file") : ERR_OK;
}

enum err
onnx_encode(struct buf *out, const struct onnx_model *m, struct why *why)
{
	struct buf constants;
	struct nodes g = {.to = {.out = out}, .constants = {.out = &constants}, .m = m, .why = why};
	enum err e = check(m, why);

	if (e)
		return e;
	buf_init(&constants, ONNX_BYTES_MAX);
	e = encode(&g);
	buf_deinit(&constants);
	return e;
}
