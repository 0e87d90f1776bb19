#ifndef LAYER_H
#define LAYER_H
#include "recipe.h"

/*
 * What a layer of a net is, whatever runs it: its shapes, its parameters, and where in the net's two blocks its operands lie. Nothing
 * here changes during a pass, and nothing is a pointer: a back end adds offsets to where its blocks begin (backend.h).
 */
struct layer_shape {
	uint32_t c, h, w; /* a flat shape of n features is {n, 1, 1} */
	size_t size; /* c * h * w */
};

/* Offsets that lead into no block: to what the caller of a pass holds (the net's input, and its gradient), and to nothing. */
#define LAYER_OUTSIDE (SIZE_MAX - 1)
#define LAYER_NOWHERE SIZE_MAX

struct layer {
	struct layer_spec spec; /* inputs: indices within the net */
	uint32_t index; /* in the whole network, of which the net may be a part */
	struct layer_shape in[RECIPE_INPUTS_MAX];

	/* Set by layer_check. */
	struct layer_shape out;
	size_t weights, biases; /* parameters, 0: none */
	uint64_t weight_shape[4];
	unsigned weight_dims;
	size_t fan_in, fan_out;

	/* Set by the back end. */
	size_t saved; /* bytes per example kept from forward for backward */
	size_t work; /* floats of workspace of a pass */

	/* Set when the net is built. */
	size_t weight_at, bias_at; /* first element in the vectors of the block of state */
	bool trains; /* some parameter, or the net's input, depends on this layer's gradient */
	bool hold_weight, hold_bias; /* these do not move: their gradients are not handed over */

	/* Set by plan.c: bytes. */
	bool in_place; /* y is x[0] and dx[0] is dy */
	bool add[RECIPE_INPUTS_MAX]; /* dx[i] already holds another user's gradient: add to it */
	size_t x_at[RECIPE_INPUTS_MAX], y_at,
	    kept_at; /* into a context; kept nowhere: no backward */
	size_t dy_at, dx_at[RECIPE_INPUTS_MAX]; /* into the gradients; nowhere: nobody needs it */
};

/* What types of layers are like, for planning. */
struct layer_traits {
	bool may_alias; /* element by element: works with y == x */
	bool same_bytes; /* y is always x, only the shape differs */
	bool many_inputs;
};

/* ERR_UNSUPPORTED for no type. */
ERR_MUST_USE enum err layer_check_type(const struct layer *l, struct why *why);
const struct layer_traits *layer_traits(enum layer_type type);
/* Checks spec and input shapes, sets the fields named above. */
ERR_MUST_USE enum err layer_check(struct layer *l, struct why *why);
/* Multiply-adds of a forward pass of one example, and values moved where that is more: for a budget, not to the last one. After
 * layer_check. A double, because products of a hostile network's extents fit no whole number. */
double layer_work(const struct layer *l);
/* The product of up to three extents, checked. */
ERR_MUST_USE enum err layer_shape_set(
    struct layer_shape *s, uint64_t c, uint64_t h, uint64_t w, const char *name, struct why *why);

#endif
