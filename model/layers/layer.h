#ifndef LAYER_H
#define LAYER_H
#include "net_spec.h"

/*
 * A layer of a net, independent of the back end: its shapes, its parameters, and where in the net's two blocks its operands lie. Nothing
 * here changes during a pass, and nothing is a pointer: a back end adds offsets to the addresses of its blocks (backend.h).
 */
struct layer_shape {
	/* n features: {n, 1, 1}; two dimensions (steps of a sequence, channels of a signal): {c, 1, w}. */
	uint32_t c, h, w;
	unsigned dims; /* 1 to 3; a picture of one pixel is flat */
	size_t size; /* c * h * w */
};

/* Width and number of the rows (vectors along the last dimension) that linear layers and norms of a sequence work on. */
static inline size_t
layer_width(const struct layer_shape *s)
{
	return s->dims == 2 ? s->w : s->size;
}

static inline size_t
layer_rows(const struct layer_shape *s)
{
	return s->dims == 2 ? s->c : 1;
}

/* Offsets that lead into no block: LAYER_OUTSIDE to memory of the caller of a pass (the net's input, and its gradient), LAYER_NOWHERE to
 * nothing. */
#define LAYER_OUTSIDE (SIZE_MAX - 1)
#define LAYER_NOWHERE SIZE_MAX

/* The first values of a parameter. */
enum layer_start {
	START_WEIGHT, /* as the layer's init says */
	START_BIAS, /* zero; with INIT_TORCH as a weight */
	START_TORCH, /* as INIT_TORCH, whatever the layer's init says */
	START_ZERO,
	START_ONE
};

struct layer_param {
	const char *suffix; /* the tensor's name is LAYER.suffix */
	uint64_t shape[4];
	unsigned dims;
	size_t count, fan_in, fan_out;
	enum layer_start start;
	bool counts; /* running statistics: passes in training change them, steps do not */
	/* Set when the net is built. */
	size_t at; /* first element in the vectors of the block of state */
	bool hold; /* frozen: the gradient is not handed over */
	bool lent; /* the parameter belongs to an earlier layer and is no tensor of this layer */
	bool adds; /* a later layer that shares the parameter has handed over a gradient before */
	size_t room; /* where a step forms the gradient: floats into sgd.scratch */
	/* Of a step of several batches: this layer's gradients are added up by themselves, at so many floats into sgd.apart. */
	bool apart;
	size_t apart_at;
};

#define LAYER_PARAMS_MAX (4 * NET_SPEC_STACK_MAX)
/* Indices of parameters of most layers. */
enum { PARAM_WEIGHT, PARAM_BIAS, PARAM_MEAN, PARAM_VARIANCE };
/* The index of a linear layer's LoRA matrix [rank, in]; the next parameter is [out, rank]. */
static inline size_t
layer_lora(const struct layer_spec *s)
{
	return s->bias ? 2 : 1;
}

struct layer {
	struct layer_spec spec; /* inputs: indices within the net */
	uint32_t index; /* in the whole network; the net may be a part */
	bool uncut; /* the network may not be cut in front of the layer (cuts.h) */
	struct layer_shape in[RECIPE_INPUTS_MAX];

	/* Set by layer_check. */
	struct layer_shape out;
	struct layer_param param[LAYER_PARAMS_MAX];
	size_t param_count;

	/* Set by the back end. */
	size_t saved; /* bytes per example kept from forward for backward */
	size_t saved_once; /* bytes kept from forward for backward, whatever the batch */
	/* Floats of workspace: of a pass, per example and, behind the two, per thread with layer_apart in between. All three become
	 * multiples of LAYER_LINE. */
	size_t work;
	size_t work_each;
	size_t work_lane;
	/* The layer can also do the work of a relu or relu6 behind it, forward and backward. */
	bool rectifies;

	/* Set when the net is built. */
	bool trains; /* some parameter, or the net's input, depends on this layer's gradient */

	/* Set by plan.c: bytes. */
	bool in_place; /* y is written over x[0] */
	bool spends; /* dx[0], if it has a place, is written over dy */
	/* Not 0: the layer does the work of the relu or relu6 behind it: y is cut to [0, top], dy counts where y is inside. */
	float top;
	bool done; /* a relu or relu6 whose work the layer before does; it has no pass of its own */
	bool add[RECIPE_INPUTS_MAX]; /* dx[i] already holds another layer's gradient: add to it */
	/* Bytes into a context or, if shared, into the shared memory. */
	size_t x_at[RECIPE_INPUTS_MAX], y_at;
	bool x_shared[RECIPE_INPUTS_MAX], y_shared;
	/* The layer's forward pass runs again before the backward pass of layer again - 1; 0: it does not. */
	uint32_t again;
	bool before; /* some layer's forward pass runs again before this layer's backward pass */
	/* Bytes into a context or, if shared, into the shared memory; LAYER_NOWHERE: no backward. */
	size_t kept_at;
	bool kept_shared;
	/* Bytes into the gradients; LAYER_NOWHERE: not needed. */
	size_t dy_at, dx_at[RECIPE_INPUTS_MAX];
};

/* Floats of a cache line: vectors that do not lie across two lines are quicker. */
#define LAYER_LINE ((size_t)16)

/* Floats between the workspaces of two threads: more than a page, up to whose end a CPU fetches lines ahead that another thread writes. */
static inline size_t
layer_apart(const struct layer *l)
{
	return l->work_lane > 0 ? 1024 + 80 : 0;
}

/* Properties of a layer type, for planning. */
struct layer_traits {
	bool may_alias; /* element by element: works with y == x */
	bool same_bytes; /* y is always x, only the shape differs */
	bool many_inputs;
	/* The backward pass reads x; reads y; needs y as this layer wrote it, not written over by another. */
	bool reads_input, reads_output, fixes_output;
	bool spends; /* the backward pass works with dx[0] == dy, though not with y == x */
	/* What the layer keeps is not made again when the pass runs again (backend_pass.again). */
	bool stands;
	bool renews; /* y is cheap to compute again from x and what is kept */
	bool follows; /* y is cheap to compute again in place from the y of a layer that `renews` */
	/* reads_sign: the backward pass reads only the sign of y, which a later layer may have written over. turns_sign: such a layer may
	 * change the sign. */
	bool reads_sign, turns_sign;
};

/* ERR_UNSUPPORTED if the layer's type is unknown. */
ERR_MUST_USE enum err layer_check_type(const struct layer *l, struct why *why);
const struct layer_traits *layer_traits(enum layer_type type);
/* Checks spec and input shapes; sets out, param and param_count. */
ERR_MUST_USE enum err layer_check(struct layer *l, struct why *why);
/* Multiply-adds of a forward pass of one example, or values moved where these are more: an estimate for budgets. Called after layer_check.
 * A double, because products of a hostile network's extents fit no whole number. */
double layer_work(const struct layer *l);
/* The product of up to three extents, checked. */
ERR_MUST_USE enum err layer_shape_set(
    struct layer_shape *s, uint64_t c, uint64_t h, uint64_t w, const char *name, struct why *why);
/* Sets a shape of two dimensions, `rows` rows of `width`, even if one of the numbers is 1. */
ERR_MUST_USE enum err layer_shape_rows(
    struct layer_shape *s, uint64_t rows, uint64_t width, const char *name, struct why *why);
/* Have the two shapes the same dimensions? */
bool layer_shape_same(const struct layer_shape *a, const struct layer_shape *b);
/* Appends a parameter to the layer; ERR_LIMIT. */
ERR_MUST_USE enum err layer_param_add(
    struct layer *l, const struct layer_param *p, struct why *why);

#endif
