#include "norms.h"

static struct nodes_attribute
epsilon(const struct nodes *g)
{
	return (struct nodes_attribute){
	    .name = "epsilon", .kind = KIND_FLOAT, .f = nodes_layer(g)->epsilon};
}

void
norms_batch(struct nodes *g)
{
	bool affine = nodes_layer(g)->bias;
	uint64_t channels = nodes_length(g, "running_mean");
	struct nodes_value x = nodes_input(g, 0, nodes_rank(g)),
			   scale = affine ? nodes_tensor(g, "weight")
					  : nodes_fill(g, "ones", 1, channels),
			   shift = affine ? nodes_tensor(g, "bias")
					  : nodes_fill(g, "zeros", 0, channels),
			   mean = nodes_tensor(g, "running_mean"),
			   variance = nodes_tensor(g, "running_var");

	nodes_add(g,
	    &(struct nodes_node){.op = "BatchNormalization",
		.inputs = {&x, &scale, &shift, &mean, &variance},
		.input_count = 5,
		.attributes = {epsilon(g)},
		.attribute_count = 1});
}

/* One value for each channel, before x's other dimensions. */
static struct nodes_value
channels(struct nodes *g, const char *suffix, const char *what, enum nodes_rank rank)
{
	static const int64_t shape[3] = {-1, 1, 1};
	struct nodes_value v = nodes_tensor(g, suffix);

	return rank == RANK_FLAT
	    ? v
	    : nodes_reshape(g, "Reshape", what, &v, shape, (size_t)rank - 1, rank);
}

/* The groups are the channels of an InstanceNormalization. */
void
norms_groups(struct nodes *g)
{
	const struct layer_spec *l = nodes_layer(g);
	const int64_t grouped[3] = {0, l->groups, -1};
	enum nodes_rank rank = nodes_rank(g);
	struct nodes_value x = nodes_input(g, 0, rank), shape = nodes_one(g, "Shape", "shape", &x),
			   y = nodes_reshape(g, "Reshape", "groups", &x, grouped, 3, RANK_ROWS),
			   ones = nodes_fill(g, "ones", 1, l->groups),
			   zeros = nodes_fill(g, "zeros", 0, l->groups);

	y = nodes_add(g,
	    &(struct nodes_node){.op = "InstanceNormalization",
		.what = "normal",
		.inputs = {&y, &ones, &zeros},
		.input_count = 3,
		.attributes = {epsilon(g)},
		.attribute_count = 1});
	y = nodes_add(g,
	    &(struct nodes_node){.op = "Reshape",
		.what = l->bias ? "back" : NULL,
		.inputs = {&y, &shape},
		.input_count = 2,
		.rank = rank,
		.rows = x.rows});
	if (!l->bias)
		return;
	struct nodes_value scale = channels(g, "weight", "scale", rank),
			   shift = channels(g, "bias", "shift", rank);
	y = nodes_two(g, "Mul", "scaled", &y, &scale);
	nodes_two(g, "Add", NULL, &y, &shift);
}

/* Over the last dimension, which stays with length 1. */
static struct nodes_value
mean(struct nodes *g, const char *what, const struct nodes_value *x)
{
	return nodes_add(g,
	    &(struct nodes_node){.op = "ReduceMean",
		.what = what,
		.inputs = {x},
		.input_count = 1,
		.attributes = {{.name = "axes", .kind = KIND_INTS, .ints = {-1}, .count = 1},
		    nodes_int("keepdims", 1)},
		.attribute_count = 2});
}

/* x / sqrt(mean of squares + epsilon). */
static struct nodes_value
divided(struct nodes *g, const char *what, const struct nodes_value *x)
{
	struct nodes_value v = nodes_two(g, "Mul", "squares", x, x);

	v = mean(g, "variance", &v);
	v = nodes_by(g, "Add", "raised", &v, nodes_layer(g)->epsilon);
	v = nodes_one(g, "Sqrt", "deviation", &v);
	return nodes_two(g, "Div", what, x, &v);
}

static struct nodes_value
rows(struct nodes *g)
{
	return nodes_input(g, 0, nodes_rank(g) == RANK_ROWS ? RANK_ROWS : RANK_FLAT);
}

void
norms_layer(struct nodes *g)
{
	bool affine = nodes_layer(g)->bias;
	struct nodes_value x = rows(g), m = mean(g, "mean", &x);

	x = nodes_two(g, "Sub", "centred", &x, &m);
	x = divided(g, affine ? "normal" : NULL, &x);
	if (!affine)
		return;
	struct nodes_value scale = nodes_tensor(g, "weight"), shift = nodes_tensor(g, "bias");
	x = nodes_two(g, "Mul", "scaled", &x, &scale);
	nodes_two(g, "Add", NULL, &x, &shift);
}

void
norms_rms(struct nodes *g)
{
	bool affine = nodes_layer(g)->bias;
	struct nodes_value x = rows(g);

	x = divided(g, affine ? "normal" : NULL, &x);
	if (!affine)
		return;
	struct nodes_value scale = nodes_tensor(g, "weight");
	nodes_two(g, "Mul", NULL, &x, &scale);
}
