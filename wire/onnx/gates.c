#include "gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GATES_MAX 4

/* Gate k of ONNX is gate order[k] of PyTorch. */
struct kind {
	const char *op;
	size_t gates;
	size_t order[GATES_MAX];
};

/* One of the stacked layers. */
struct one {
	struct nodes *g;
	const struct kind *kind;
	uint32_t layer;
	size_t out, rows; /* rows: of all gates */
};

static const struct kind lstm = {"LSTM", 4, {0, 3, 1, 2}}, gru = {"GRU", 3, {1, 0, 2}};

/* Blocks of a gate's floats each, in ONNX's order. */
static void
copy_gates(const struct one *o, float *to, const float *from, size_t block)
{
	for (size_t i = 0; i < o->kind->gates; i++)
		memcpy(to + i * block, from + o->kind->order[i] * block, block * sizeof(*to));
}

static const struct tensor *
find(const struct one *o, const char *name)
{
	char suffix[NODES_NAME_MAX];

	snprintf(suffix, sizeof(suffix), "%s_l%u", name, o->layer);
	return nodes_find(o->g, suffix, o->rows);
}

static float *
room(const struct one *o, size_t n)
{
	float *to = malloc(n * sizeof(*to));

	if (!to && !o->g->err)
		o->g->err = err_set(o->g->why, ERR_NOMEM, "no memory for the ONNX file");
	return to;
}

static struct nodes_value
weight(const struct one *o, const char *name)
{
	const struct tensor *t = find(o, name);
	struct nodes_value v = {.rank = RANK_ROWS};
	char what[NODES_NAME_MAX];

	if (!t)
		return v;
	const uint64_t shape[3] = {1, o->rows, t->elements / o->rows};
	float *to = room(o, (size_t)t->elements);
	if (!to)
		return v;
	copy_gates(o, to, nodes_elements(o->g, t), o->out * (size_t)shape[2]);
	snprintf(what, sizeof(what), "%s%u", name, o->layer);
	v = nodes_floats(o->g, what, to, shape, 3);
	free(to);
	return v;
}

/* Both, one behind the other. */
static struct nodes_value
biases(const struct one *o)
{
	const struct tensor *in = find(o, "bias_ih"), *hidden = find(o, "bias_hh");
	const uint64_t shape[2] = {1, 2 * o->rows};
	struct nodes_value v = {.rank = RANK_FLAT};
	char what[NODES_NAME_MAX];

	if (!in || !hidden)
		return v;
	float *to = room(o, 2 * o->rows);
	if (!to)
		return v;
	copy_gates(o, to, nodes_elements(o->g, in), o->out);
	copy_gates(o, to + o->rows, nodes_elements(o->g, hidden), o->out);
	snprintf(what, sizeof(what), "bias%u", o->layer);
	v = nodes_floats(o->g, what, to, shape, 2);
	free(to);
	return v;
}

/* [steps, batch, out] of x. The node's outputs are [steps, 1, batch, out] and, of the last step, [1, batch, out]. */
static struct nodes_value
write_one(const struct one *o, const struct nodes_value *x, bool last)
{
	static const int64_t directions[2] = {1, 0};
	struct nodes_value w = weight(o, "weight_ih"), r = weight(o, "weight_hh"), b, y;
	bool bias = nodes_layer(o->g)->bias, is_gru = o->kind == &gru;
	char what[NODES_NAME_MAX], squeezed[NODES_NAME_MAX];
	struct nodes_node n = {.op = o->kind->op,
	    .what = what,
	    .second = last,
	    .inputs = {x, &w, &r, &b},
	    .input_count = bias ? 4 : 3,
	    .attributes = {nodes_int("hidden_size", (int64_t)o->out),
		nodes_int("linear_before_reset", 1)},
	    .attribute_count = is_gru ? 2 : 1};

	if (bias)
		b = biases(o);
	snprintf(what, sizeof(what), "stack%u", o->layer);
	snprintf(squeezed, sizeof(squeezed), "squeezed%u", o->layer);
	y = nodes_add(o->g, &n);
	return nodes_reshape(o->g, "Squeeze", last ? NULL : squeezed, &y, &directions[last], 1,
	    last ? RANK_FLAT : RANK_ROWS);
}

void
gates_write(struct nodes *g)
{
	static const int64_t axes[3] = {1, 0, 2};
	const struct layer_spec *l = nodes_layer(g);
	struct one o = {.g = g, .kind = l->type == LAYER_GRU ? &gru : &lstm, .out = l->out};
	struct nodes_value x = nodes_input(g, 0, RANK_ROWS);
	uint64_t steps = x.rows;

	o.rows = o.kind->gates * o.out;
	x = nodes_turn(g, "steps", &x, axes, 3);
	for (; o.layer < l->stack; o.layer++)
		x = write_one(&o, &x, l->last && o.layer + 1 == l->stack);
	x.rows = steps;
	if (!l->last)
		nodes_turn(g, NULL, &x, axes, 3);
}
