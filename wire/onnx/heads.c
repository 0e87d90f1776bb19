#include "heads.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "num.h"

#define BASE 10000.0

/* [3, batch, heads, steps, width of one]: queries, keys, values. */
static struct nodes_value
parts(struct nodes *g, const struct nodes_value *x)
{
	static const int64_t axes[5] = {2, 0, 3, 1, 4};
	const struct layer_spec *l = nodes_layer(g);
	const int64_t shape[5] = {0, 0, 3, l->heads, -1};
	struct nodes_value v =
	    nodes_project(g, "parts", x, "in_proj_weight", l->bias ? "in_proj_bias" : NULL);

	v = nodes_reshape(g, "Reshape", "split", &v, shape, 5, RANK_PLANES);
	return nodes_turn(g, "heads", &v, axes, 5);
}

/* [batch, heads, steps, width of one]. */
static struct nodes_value
part(struct nodes *g, const char *what, const char *number, int64_t i, const struct nodes_value *v)
{
	struct nodes_value at = nodes_index(g, number, i);

	return nodes_two(g, "Gather", what, v, &at);
}

/* What turns queries and keys: x * cosine + (halves of x changed over) * sine. */
struct turns {
	struct nodes_value halves, sine, cosine;
};

/* Step t turns pair k by t / 10000^(2 k / width); the first half's sine is below zero. */
static void
angles(float *sine, float *cosine, int64_t *halves, size_t steps, size_t width)
{
	size_t half = width / 2;

	for (size_t k = 0; k < width; k++) {
		double slow = pow(BASE, -2.0 * (double)(k % half) / (double)width);
		halves[k] = (int64_t)((k + half) % width);
		for (size_t t = 0; t < steps; t++) {
			double turn = (double)t * slow;
			sine[t * width + k] = (float)(k < half ? -sin(turn) : sin(turn));
			cosine[t * width + k] = (float)cos(turn);
		}
	}
}

static struct turns
make_turns(struct nodes *g, size_t steps, size_t width)
{
	const uint64_t shape[2] = {steps, width};
	struct turns turns = {.halves.rank = RANK_FLAT};
	size_t area = 0;
	bool fits = num_mul(steps, width, &area) && area <= ONNX_BYTES_MAX / sizeof(float);
	float *sine = fits ? malloc(2 * area * sizeof(*sine)) : NULL;
	int64_t *halves = sine ? malloc(width * sizeof(*halves)) : NULL;

	if (halves) {
		angles(sine, sine + area, halves, steps, width);
		turns.sine = nodes_floats(g, "sine", sine, shape, 2);
		turns.cosine = nodes_floats(g, "cosine", sine + area, shape, 2);
		turns.halves = nodes_ints(g, "halves", halves, width);
	} else if (!g->err) {
		g->err = err_set(g->why, ERR_NOMEM, "no memory for the ONNX file");
	}
	free(halves);
	free(sine);
	return turns;
}

static struct nodes_value
turned(
    struct nodes *g, const char *const names[4], const struct turns *t, const struct nodes_value *x)
{
	const struct nodes_node change = {.op = "Gather",
	    .what = names[0],
	    .inputs = {x, &t->halves},
	    .input_count = 2,
	    .attributes = {nodes_int("axis", -1)},
	    .attribute_count = 1};
	struct nodes_value other = nodes_add(g, &change), own;

	other = nodes_two(g, "Mul", names[1], &other, &t->sine);
	own = nodes_two(g, "Mul", names[2], x, &t->cosine);
	return nodes_two(g, "Add", names[3], &own, &other);
}

/* Scores of steps that come later are as low as numbers go. */
static struct nodes_value
masked(struct nodes *g, const struct nodes_value *scores, size_t steps)
{
	static const int64_t column[1] = {1};
	int64_t *numbers = malloc(steps * sizeof(*numbers));

	if (!numbers) {
		if (!g->err)
			g->err = err_set(g->why, ERR_NOMEM, "no memory for the ONNX file");
		return *scores;
	}
	for (size_t i = 0; i < steps; i++)
		numbers[i] = (int64_t)i;
	struct nodes_value seen = nodes_ints(g, "places", numbers, steps), sees, later;
	free(numbers);
	sees = nodes_reshape(g, "Unsqueeze", "column", &seen, column, 1, RANK_PLANES);
	later = nodes_two(g, "Less", "later", &sees, &seen);
	struct nodes_value low = nodes_float(g, "low", -FLT_MAX);
	return nodes_add(g,
	    &(struct nodes_node){.op = "Where",
		.what = "masked",
		.inputs = {&later, &low, scores},
		.input_count = 3});
}

/* [batch, heads, steps, width of one], weighted sums of values. */
static struct nodes_value
attend(struct nodes *g, const struct nodes_value *p, size_t steps, size_t width)
{
	static const char *const queries[4] = {"other0", "sine0", "cosine0", "query.turned"},
				 *const keys[4] = {"other1", "sine1", "cosine1", "key.turned"};
	static const int64_t across[4] = {0, 1, 3, 2};
	const struct layer_spec *l = nodes_layer(g);
	struct nodes_value q = part(g, "query", "query.at", 0, p),
			   k = part(g, "key", "key.at", 1, p),
			   v = part(g, "value", "value.at", 2, p);

	if (l->rotation == ROTATION_ROTARY) {
		struct turns turns = make_turns(g, steps, width);
		q = turned(g, queries, &turns, &q);
		k = turned(g, keys, &turns, &k);
	}
	k = nodes_turn(g, "keys", &k, across, 4);
	q = nodes_two(g, "MatMul", "products", &q, &k);
	q = nodes_by(g, "Mul", "scores", &q, 1.0f / sqrtf((float)width));
	if (l->causal)
		q = masked(g, &q, steps);
	q = nodes_add(g,
	    &(struct nodes_node){.op = "Softmax",
		.what = "shares",
		.inputs = {&q},
		.input_count = 1,
		.attributes = {nodes_int("axis", -1)},
		.attribute_count = 1});
	return nodes_two(g, "MatMul", "mixed", &q, &v);
}

void
heads_write(struct nodes *g)
{
	static const int64_t axes[4] = {0, 2, 1, 3}, joined[3] = {0, 0, -1};
	const struct layer_spec *l = nodes_layer(g);
	struct nodes_value x = nodes_input(g, 0, RANK_ROWS);
	uint64_t steps = x.rows, width = nodes_length(g, "out_proj.weight") / l->heads;

	if (width == 0)
		return;
	x = parts(g, &x);
	x = attend(g, &x, (size_t)steps, (size_t)width);
	x = nodes_turn(g, "back", &x, axes, 4);
	x = nodes_reshape(g, "Reshape", "joined", &x, joined, 3, RANK_ROWS);
	x.rows = steps;
	nodes_project(g, NULL, &x, "out_proj.weight", l->bias ? "out_proj.bias" : NULL);
}
