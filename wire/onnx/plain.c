#include "plain.h"

/* A node on the layer's first input, with the layer's output. */
static struct nodes_node
node_on(const char *op, const struct nodes_value *x)
{
	return (struct nodes_node){.op = op, .inputs = {x}, .input_count = 1};
}

static void
add_attribute(struct nodes_node *n, struct nodes_attribute a)
{
	n->attributes[n->attribute_count++] = a;
}

/* Of two dimensions, or of the last one alone. */
static void
add_window(struct nodes_node *n, const struct layer_spec *l, size_t dims)
{
	struct nodes_attribute kernel = {.name = "kernel_shape", .kind = KIND_INTS, .count = dims},
			       pads = {.name = "pads", .kind = KIND_INTS, .count = 2 * dims},
			       strides = {.name = "strides", .kind = KIND_INTS, .count = dims};

	for (size_t from = dims == 1, i = 0; from < 2; from++, i++) {
		kernel.ints[i] = l->kernel[from];
		pads.ints[i] = pads.ints[dims + i] = l->padding[from];
		strides.ints[i] = l->stride[from];
	}
	add_attribute(n, kernel);
	add_attribute(n, pads);
	add_attribute(n, strides);
}

static void
add_weights(struct nodes *g, struct nodes_node *n, struct nodes_value v[2])
{
	static const char *const suffixes[2] = {"weight", "bias"};

	for (int i = 0; i < (nodes_layer(g)->bias ? 2 : 1); i++) {
		v[i] = nodes_tensor(g, suffixes[i]);
		n->inputs[n->input_count++] = &v[i];
	}
}

/* The layer's output is the weight's, and that of two narrow matrices, times alpha / rank. */
static void
add_lora(struct nodes *g, const struct nodes_value *x, const struct nodes_value *own)
{
	const struct layer_spec *l = nodes_layer(g);
	struct nodes_value y = nodes_project(g, "narrow", x, "lora_A.weight", NULL);

	y = nodes_project(g, "wide", &y, "lora_B.weight", NULL);
	y = nodes_by(g, "Mul", "lora", &y, l->alpha / (float)l->rank);
	nodes_two(g, "Add", NULL, own, &y);
}

void
plain_linear(struct nodes *g)
{
	const struct layer_spec *l = nodes_layer(g);
	enum nodes_rank rank = nodes_rank(g) == RANK_ROWS ? RANK_ROWS : RANK_FLAT;
	struct nodes_value x = nodes_input(g, 0, rank), weights[2], y;
	struct nodes_node n = node_on("Gemm", &x);

	n.what = l->rank > 0 ? "own" : NULL;
	if (rank == RANK_ROWS) {
		y = nodes_project(g, n.what, &x, "weight", l->bias ? "bias" : NULL);
	} else {
		add_weights(g, &n, weights);
		add_attribute(&n, nodes_int("transB", 1));
		y = nodes_add(g, &n);
	}
	if (l->rank > 0)
		add_lora(g, &x, &y);
}

void
plain_conv(struct nodes *g)
{
	const struct layer_spec *l = nodes_layer(g);
	bool line = l->type == LAYER_CONV1D;
	struct nodes_value x = nodes_input(g, 0, line ? RANK_ROWS : RANK_PLANES), weights[2];
	struct nodes_node n = node_on("Conv", &x);

	add_weights(g, &n, weights);
	if (l->groups > 1)
		add_attribute(&n, nodes_int("group", l->groups));
	add_window(&n, l, line ? 1 : 2);
	n.rows = line ? l->out : 0;
	nodes_add(g, &n);
}

/* Of rows: they are planes of height 1, and rows again if that is still so. */
void
plain_pool(struct nodes *g)
{
	static const int64_t height[1] = {2};
	const struct layer_spec *l = nodes_layer(g);
	struct nodes_shape from = nodes_shape(g, 0);
	bool again =
	    from.rank == RANK_ROWS && (1 + 2 * l->padding[0] - l->kernel[0]) / l->stride[0] == 0;
	struct nodes_value x = nodes_input(g, 0, RANK_PLANES), y;
	struct nodes_node n = node_on(l->type == LAYER_MAXPOOL2D ? "MaxPool" : "AveragePool", &x);

	if (l->type == LAYER_AVGPOOL2D)
		add_attribute(&n, nodes_int("count_include_pad", 1));
	add_window(&n, l, 2);
	n.what = again ? "pooled" : NULL;
	y = nodes_add(g, &n);
	if (!again)
		return;
	y.rows = from.rows;
	nodes_reshape(g, "Squeeze", NULL, &y, height, 1, RANK_ROWS);
}

/* A flat input has channels of one value. */
void
plain_global(struct nodes *g)
{
	enum nodes_rank rank = nodes_rank(g);
	struct nodes_value x = nodes_input(g, 0, rank);

	if (rank == RANK_FLAT) {
		nodes_one(g, "Identity", NULL, &x);
		return;
	}
	x = nodes_one(g, "GlobalAveragePool", "mean", &x);
	struct nodes_node n = node_on("Flatten", &x);
	n.rank = RANK_FLAT;
	nodes_add(g, &n);
}

void
plain_flatten(struct nodes *g)
{
	struct nodes_value x = nodes_input(g, 0, nodes_rank(g));
	struct nodes_node n = node_on("Flatten", &x);

	n.rank = RANK_FLAT;
	nodes_add(g, &n);
}

static struct nodes_node
join(struct nodes *g, const char *op, struct nodes_value in[RECIPE_INPUTS_MAX])
{
	enum nodes_rank rank = nodes_rank(g);
	struct nodes_node n = {.op = op};

	for (size_t i = 0; i < nodes_layer(g)->input_count; i++) {
		in[i] = nodes_input(g, i, rank);
		n.inputs[n.input_count++] = &in[i];
	}
	return n;
}

void
plain_add(struct nodes *g)
{
	struct nodes_value in[RECIPE_INPUTS_MAX];
	struct nodes_node n = join(g, "Sum", in);

	nodes_add(g, &n);
}

void
plain_concat(struct nodes *g)
{
	struct nodes_value in[RECIPE_INPUTS_MAX];
	struct nodes_node n = join(g, "Concat", in);
	uint32_t dim = nodes_layer(g)->dim;

	for (size_t i = 0; dim == 1 && i < n.input_count; i++)
		n.rows += in[i].rows;
	add_attribute(&n, nodes_int("axis", dim));
	nodes_add(g, &n);
}

/* The second may be one value for each channel: it gets the dimensions that it lacks. */
void
plain_multiply(struct nodes *g)
{
	static const int64_t lacking[2] = {2, 3};
	enum nodes_rank rank = nodes_shape(g, 0).rank, other = nodes_shape(g, 1).rank;
	struct nodes_value a = nodes_input(g, 0, rank),
			   b = nodes_input(g, 1, other == rank ? rank : RANK_FLAT);

	if (b.rank != rank)
		b = nodes_reshape(g, "Unsqueeze", "each", &b, lacking, (size_t)rank - 2, rank);
	nodes_two(g, "Mul", NULL, &a, &b);
}

/* Whole numbers that something else reads, too, are floats. */
void
plain_embedding(struct nodes *g)
{
	struct nodes_value x = nodes_input(g, 0, RANK_FLAT), w = nodes_tensor(g, "weight");
	struct nodes_node cast = node_on("Cast", &x);

	cast.what = "tokens";
	add_attribute(&cast, nodes_int("to", 7));
	if (!nodes_tokens(g))
		x = nodes_add(g, &cast);
	struct nodes_node n = {.op = "Gather",
	    .inputs = {&w, &x},
	    .input_count = 2,
	    .rank = RANK_ROWS,
	    .rows = g->m->net->input[0]};
	nodes_add(g, &n);
}

void
plain_positions(struct nodes *g)
{
	struct nodes_value x = nodes_input(g, 0, RANK_ROWS), w = nodes_tensor(g, "weight");

	nodes_two(g, "Add", NULL, &x, &w);
}

/* From the last step to before the first. */
void
plain_reverse(struct nodes *g)
{
	static const int64_t last[1] = {-1}, before[1] = {INT64_MIN}, steps[1] = {1},
			     back[1] = {-1};
	struct nodes_value x = nodes_input(g, 0, RANK_ROWS);
	struct nodes_value by[4] = {nodes_ints(g, "from", last, 1), nodes_ints(g, "to", before, 1),
	    nodes_ints(g, "axis", steps, 1), nodes_ints(g, "by", back, 1)};

	nodes_add(g,
	    &(struct nodes_node){
		.op = "Slice", .inputs = {&x, &by[0], &by[1], &by[2], &by[3]}, .input_count = 5});
}

void
plain_pool_steps(struct nodes *g)
{
	const struct layer_spec *l = nodes_layer(g);
	bool one = l->pool == POOL_FIRST || l->pool == POOL_LAST;
	struct nodes_attribute axes = {.name = "axes", .kind = KIND_INTS, .ints = {1}, .count = 1};
	struct nodes_value x = nodes_input(g, 0, RANK_ROWS), which;
	struct nodes_node n = node_on(one ? "Gather"
		: l->pool == POOL_MAX	  ? "ReduceMax"
					  : "ReduceMean",
	    &x);

	n.rank = RANK_FLAT;
	if (one) {
		which = nodes_index(g, "step", l->pool == POOL_LAST ? -1 : 0);
		n.inputs[n.input_count++] = &which;
		add_attribute(&n, nodes_int("axis", 1));
	} else {
		add_attribute(&n, axes);
		add_attribute(&n, nodes_int("keepdims", 0));
	}
	nodes_add(g, &n);
}
