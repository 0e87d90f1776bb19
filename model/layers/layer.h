#ifndef LAYER_H
#define LAYER_H
#include "recipe.h"

/*
 * What the layers of a net have in common: one struct and one table of functions per type. A layer never
 * allocates: it states in `shape` what it needs, and net.c hands it pointers before each pass.
 */
struct layer_shape {
	uint32_t c, h, w; /* a flat shape of n features is {n, 1, 1} */
	size_t size; /* c * h * w */
};

struct sgd;
struct draw;

/* One pass over a batch. */
struct layer_pass {
	uint32_t n; /* examples */
	const struct draw *draw; /* for dropout; NULL: none */
	float *work; /* as many floats as the hungriest layer asked for */
	const struct sgd *sgd; /* where gradients go; backward only */
};

struct layer {
	struct layer_spec spec;
	uint32_t index; /* in the whole network */
	const struct layer_ops *ops;
	struct layer_shape in[RECIPE_INPUTS_MAX], out;

	/* Set by ops->shape. */
	size_t weights, biases; /* parameters, 0: none */
	uint64_t weight_shape[4];
	unsigned weight_dims;
	size_t fan_in, fan_out;
	size_t saved; /* bytes per example kept from forward for backward */
	size_t work; /* floats of workspace of a pass */

	/* Set by net.c when the net is built. */
	size_t weight_at, bias_at; /* first element in the parameter block */
	bool in_place; /* y is x[0] and dx[0] is dy */
	bool trains; /* some parameter depends on this layer's gradient */
	bool hold_weight, hold_bias; /* these do not move: their gradients are not handed over */
	bool add[RECIPE_INPUTS_MAX]; /* dx[i] already holds another user's gradient: add to it */
	size_t y_at, dy_at, saved_at; /* bytes into the block of activations */

	/* Valid during a pass. */
	const float *weight, *bias;
	const float *x[RECIPE_INPUTS_MAX];
	float *y;
	float *dy;
	float *dx[RECIPE_INPUTS_MAX]; /* NULL: nobody needs it */
	void *kept; /* n * saved bytes; NULL in a net that only evaluates */
};

struct layer_ops {
	/* Checks spec and input shapes; sets out and the fields named above. */
	enum err (*shape)(struct layer *l, struct why *why);
	/* Reads x, writes y and what backward will want to `kept`. */
	void (*forward)(struct layer *l, const struct layer_pass *p);
	/* Reads dy; writes or adds to each dx that is not NULL, then gives the gradients of the parameters to
	 * p->sgd, in this order. */
	void (*backward)(struct layer *l, const struct layer_pass *p);
	bool may_alias; /* element by element: works with y == x */
	bool same_bytes; /* y is always x, only the shape differs */
	bool many_inputs;
};

/* The product of up to three extents, checked. */
ERR_MUST_USE enum err layer_shape_set(
    struct layer_shape *s, uint64_t c, uint64_t h, uint64_t w, const char *name, struct why *why);
/* Output extents of a window that slides over in[0]; for conv and pool. */
ERR_MUST_USE enum err layer_window(
    const struct layer *l, uint64_t *height, uint64_t *width, struct why *why);

#endif
