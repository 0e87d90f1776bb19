#include "pointwise.h"

static struct nodes_value
input(struct nodes *g)
{
	return nodes_input(g, 0, nodes_rank(g));
}

static void
one(struct nodes *g, const char *op)
{
	struct nodes_value x = input(g);

	nodes_one(g, op, NULL, &x);
}

void
pointwise_relu(struct nodes *g)
{
	one(g, "Relu");
}

void
pointwise_sigmoid(struct nodes *g)
{
	one(g, "Sigmoid");
}

void
pointwise_tanh(struct nodes *g)
{
	one(g, "Tanh");
}

static void
with_alpha(struct nodes *g, const char *op)
{
	struct nodes_value x = input(g);

	nodes_add(g,
	    &(struct nodes_node){.op = op,
		.inputs = {&x},
		.input_count = 1,
		.attributes = {{.name = "alpha", .kind = KIND_FLOAT, .f = nodes_layer(g)->alpha}},
		.attribute_count = 1});
}

void
pointwise_leaky_relu(struct nodes *g)
{
	with_alpha(g, "LeakyRelu");
}

void
pointwise_elu(struct nodes *g)
{
	with_alpha(g, "Elu");
}

void
pointwise_scale(struct nodes *g)
{
	struct nodes_value x = input(g), by = nodes_float(g, "by", nodes_layer(g)->alpha);

	nodes_two(g, "Mul", NULL, &x, &by);
}

void
pointwise_dropout(struct nodes *g)
{
	one(g, "Identity");
}

void
pointwise_relu6(struct nodes *g)
{
	struct nodes_value x = input(g), low = nodes_float(g, "low", 0),
			   high = nodes_float(g, "high", 6);

	nodes_add(
	    g, &(struct nodes_node){.op = "Clip", .inputs = {&x, &low, &high}, .input_count = 3});
}

/* sqrt(2 / pi) (x + 0.044715 x^3) */
static struct nodes_value
inside_tanh(struct nodes *g, const struct nodes_value *x)
{
	struct nodes_value v = nodes_two(g, "Mul", "square", x, x);

	v = nodes_two(g, "Mul", "cube", &v, x);
	v = nodes_by(g, "Mul", "part", &v, 0.044715f);
	v = nodes_two(g, "Add", "sum", x, &v);
	return nodes_by(g, "Mul", "inside", &v, 0.7978845608028654f);
}

/* x / 2 (1 + curve) */
void
pointwise_gelu(struct nodes *g)
{
	bool form = nodes_layer(g)->tanh_form;
	struct nodes_value x = input(g), half = nodes_by(g, "Mul", "half", &x, 0.5f), v;

	v = form ? inside_tanh(g, &x) : nodes_by(g, "Mul", "inside", &x, 0.7071067811865476f);
	v = nodes_one(g, form ? "Tanh" : "Erf", "curve", &v);
	v = nodes_by(g, "Add", "share", &v, 1);
	nodes_two(g, "Mul", NULL, &half, &v);
}

void
pointwise_silu(struct nodes *g)
{
	struct nodes_value x = input(g), v = nodes_one(g, "Sigmoid", "share", &x);

	nodes_two(g, "Mul", NULL, &x, &v);
}

void
pointwise_hardswish(struct nodes *g)
{
	struct nodes_value x = input(g);
	const struct nodes_node share = {.op = "HardSigmoid",
	    .what = "share",
	    .inputs = {&x},
	    .input_count = 1,
	    .attributes = {{.name = "alpha", .kind = KIND_FLOAT, .f = 1.0f / 6},
		{.name = "beta", .kind = KIND_FLOAT, .f = 0.5f}},
	    .attribute_count = 2};
	struct nodes_value v = nodes_add(g, &share);

	nodes_two(g, "Mul", NULL, &x, &v);
}
