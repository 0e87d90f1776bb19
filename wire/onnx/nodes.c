#include "nodes.h"

#include <stdio.h>
#include <string.h>

/* Numbers of fields and of types in onnx.proto3. */
enum { GRAPH_NODE = 1 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum {
	ATTRIBUTE_NAME = 1,
	ATTRIBUTE_F = 2,
	ATTRIBUTE_I = 3,
	ATTRIBUTE_INTS = 8,
	ATTRIBUTE_TYPE = 20
};
enum { IS_FLOAT = 1, IS_INT = 2, IS_INTS = 7 };

const struct layer_spec *
nodes_layer(const struct nodes *g)
{
	return &g->m->net->layers[g->at];
}

struct nodes_shape
nodes_input_shape(const struct net_spec *net)
{
	if (net->input_dims == 2)
		return (struct nodes_shape){RANK_ROWS, net->input[0]};
	return (struct nodes_shape){net->input_dims == 1 ? RANK_FLAT : RANK_PLANES, 0};
}

struct nodes_attribute
nodes_int(const char *name, int64_t v)
{
	return (struct nodes_attribute){.name = name, .kind = KIND_INT, .ints = {v}};
}

static void
write_attribute(struct protobuf *p, const struct nodes_attribute *a)
{
	static const unsigned types[] = {
	    [KIND_INT] = IS_INT, [KIND_INTS] = IS_INTS, [KIND_FLOAT] = IS_FLOAT};
	size_t at = protobuf_open(p, NODE_ATTRIBUTE);

	protobuf_string(p, ATTRIBUTE_NAME, a->name);
	if (a->kind == KIND_FLOAT)
		protobuf_f32(p, ATTRIBUTE_F, a->f);
	if (a->kind == KIND_INT)
		protobuf_i64(p, ATTRIBUTE_I, a->ints[0]);
	for (size_t i = 0; a->kind == KIND_INTS && i < a->count; i++)
		protobuf_i64(p, ATTRIBUTE_INTS, a->ints[i]);
	protobuf_u64(p, ATTRIBUTE_TYPE, types[a->kind]);
	protobuf_close(p, at);
}

static void
write_node(struct nodes *g, const struct nodes_node *n, const char *output, const char *name)
{
	struct protobuf *p = &g->to;
	size_t at = protobuf_open(p, GRAPH_NODE);

	for (size_t i = 0; i < n->input_count; i++)
		protobuf_string(p, NODE_INPUT, n->inputs[i]->name);
	if (n->second)
		protobuf_string(p, NODE_OUTPUT, "");
	protobuf_string(p, NODE_OUTPUT, output);
	protobuf_string(p, NODE_NAME, name);
	protobuf_string(p, NODE_OP, n->op);
	for (size_t i = 0; i < n->attribute_count; i++)
		write_attribute(p, &n->attributes[i]);
	protobuf_close(p, at);
}

/* The output of a layer, or the network's input behind its normalisation. */
static struct nodes_value
value_of(const struct nodes *g, int from)
{
	const struct net_spec *net = g->m->net;
	struct nodes_shape s = from == LAYER_INPUT ? nodes_input_shape(net) : g->shapes[from];
	struct nodes_value v = {.name = "input", .rank = s.rank, .rows = s.rows};

	if (from == LAYER_INPUT && g->m->data && g->m->data->channels > 0)
		snprintf(v.name, sizeof(v.name), "/normalise");
	if (from == LAYER_INPUT)
		return v;
	if ((size_t)from + 1 == net->layer_count)
		snprintf(v.name, sizeof(v.name), "output");
	else
		snprintf(v.name, sizeof(v.name), "/layer/%s", net->layers[from].name);
	return v;
}

struct nodes_value
nodes_add(struct nodes *g, const struct nodes_node *n)
{
	const struct nodes_value *first = n->inputs[0];
	struct nodes_shape s = {n->rank ? n->rank : first->rank, n->rows ? n->rows : first->rows};
	struct nodes_value out = {.rank = s.rank, .rows = s.rank == RANK_ROWS ? s.rows : 0};

	if (!n->what) {
		g->shapes[g->at] = (struct nodes_shape){out.rank, out.rows};
		out = value_of(g, (int)g->at);
	} else {
		snprintf(out.name, sizeof(out.name), "/%s/%s", n->what, nodes_layer(g)->name);
	}
	write_node(g, n, out.name, n->what ? out.name : nodes_layer(g)->name);
	return out;
}

struct nodes_value
nodes_one(struct nodes *g, const char *op, const char *what, const struct nodes_value *x)
{
	return nodes_add(
	    g, &(struct nodes_node){.op = op, .what = what, .inputs = {x}, .input_count = 1});
}

struct nodes_value
nodes_two(struct nodes *g, const char *op, const char *what, const struct nodes_value *a,
    const struct nodes_value *b)
{
	return nodes_add(
	    g, &(struct nodes_node){.op = op, .what = what, .inputs = {a, b}, .input_count = 2});
}

struct nodes_value
nodes_by(struct nodes *g, const char *op, const char *what, const struct nodes_value *x, float by)
{
	char name[NODES_NAME_MAX];

	snprintf(name, sizeof(name), "%s.by", what);
	struct nodes_value v = nodes_float(g, name, by);
	return nodes_two(g, op, what, x, &v);
}

struct nodes_value
nodes_turn(
    struct nodes *g, const char *what, const struct nodes_value *x, const int64_t *axes, size_t n)
{
	struct nodes_node node = {.op = "Transpose",
	    .what = what,
	    .inputs = {x},
	    .input_count = 1,
	    .attributes = {{.name = "perm", .kind = KIND_INTS, .count = n}},
	    .attribute_count = 1};

	memcpy(node.attributes[0].ints, axes, n * sizeof(*axes));
	return nodes_add(g, &node);
}

struct nodes_value
nodes_reshape(struct nodes *g, const char *op, const char *what, const struct nodes_value *x,
    const int64_t *v, size_t n, enum nodes_rank rank)
{
	char name[NODES_NAME_MAX];

	snprintf(name, sizeof(name), "%s.by", what ? what : "reshape");
	struct nodes_value by = nodes_ints(g, name, v, n);
	return nodes_add(g,
	    &(struct nodes_node){
		.op = op, .what = what, .inputs = {x, &by}, .input_count = 2, .rank = rank});
}

struct nodes_value
nodes_project(struct nodes *g, const char *what, const struct nodes_value *x, const char *weight,
    const char *bias)
{
	static const int64_t axes[2] = {1, 0};
	const char *end = what ? what : "output";
	char turned[NODES_NAME_MAX], product[NODES_NAME_MAX];

	snprintf(turned, sizeof(turned), "%s.turned", end);
	snprintf(product, sizeof(product), "%s.product", end);
	struct nodes_value w = nodes_tensor(g, weight);
	w = nodes_turn(g, turned, &w, axes, 2);
	struct nodes_value y = nodes_two(g, "MatMul", bias ? product : what, x, &w);
	if (!bias)
		return y;
	struct nodes_value b = nodes_tensor(g, bias);
	return nodes_two(g, "Add", what, &y, &b);
}

/* --- inputs of a layer */

struct nodes_shape
nodes_shape(const struct nodes *g, size_t i)
{
	int from = nodes_layer(g)->inputs[i];

	return from == LAYER_INPUT ? nodes_input_shape(g->m->net) : g->shapes[from];
}

enum nodes_rank
nodes_rank(const struct nodes *g)
{
	const struct layer_spec *l = nodes_layer(g);
	enum nodes_rank rank = RANK_PLANES;

	for (size_t i = 0; i < l->input_count; i++) {
		enum nodes_rank of = nodes_shape(g, i).rank;
		if (of < rank)
			rank = of;
	}
	return rank;
}

static struct nodes_value
between(struct nodes *g, const struct nodes_node *n, const char *kind, size_t i)
{
	struct nodes_value to = {.rank = n->rank};

	snprintf(to.name, sizeof(to.name), "/%s/%s%zu", kind, nodes_layer(g)->name, i);
	write_node(g, n, to.name, to.name);
	return to;
}

struct nodes_value
nodes_input(struct nodes *g, size_t i, enum nodes_rank rank)
{
	static const int64_t height[1] = {2};
	struct nodes_value from = value_of(g, nodes_layer(g)->inputs[i]), by;
	struct nodes_node n = {.inputs = {&from, &by}, .input_count = 2, .rank = rank};

	if (from.rank == rank)
		return from;
	if (rank == RANK_FLAT) {
		n.op = "Flatten";
		n.input_count = 1;
		return between(g, &n, "flat", i);
	}
	if (from.rank == RANK_ROWS) {
		by = nodes_ints(g, "height", height, 1);
		n.op = "Unsqueeze";
		return between(g, &n, "planes", i);
	}
	g->reshapes = true;
	snprintf(by.name, sizeof(by.name), NODES_TO_PLANES);
	n.op = "Reshape";
	return between(g, &n, "planes", i);
}

bool
nodes_tokens(const struct nodes *g)
{
	const struct net_spec *net = g->m->net;

	if (g->m->data && g->m->data->channels > 0)
		return false;
	for (size_t i = 0; i < net->layer_count; i++)
		for (size_t k = 0; k < net->layers[i].input_count; k++)
			if (net->layers[i].inputs[k] == LAYER_INPUT &&
			    net->layers[i].type != LAYER_EMBEDDING)
				return false;
	return true;
}

void
nodes_normalise(struct nodes *g)
{
	static const struct nodes_value input = {.name = "input"}, mean = {.name = NODES_MEAN},
					std = {.name = NODES_STD},
					subtracted = {.name = "/normalise/subtract"};
	const struct nodes_node subtract = {
	    .op = "Sub", .inputs = {&input, &mean}, .input_count = 2};
	const struct nodes_node divide = {
	    .op = "Div", .inputs = {&subtracted, &std}, .input_count = 2};

	if (!g->m->data || g->m->data->channels == 0)
		return;
	write_node(g, &subtract, subtracted.name, subtracted.name);
	write_node(g, &divide, "/normalise", "/normalise");
}
