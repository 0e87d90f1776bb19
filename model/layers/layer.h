#ifndef LAYER_H
#define LAYER_H
#include "net_spec.h"

/*
 * What a layer of a net is, whatever runs it: its shapes, its parameters, and where in the net's two blocks its operands lie. Nothing
 * here changes during a pass, and nothing is a pointer: a back end adds offsets to where its blocks begin (backend.h).
 */
struct layer_shape {
	uint32_t c, h,
	    w; /* n features are {n, 1, 1}; of two dimensions, steps of a sequence or channels of a signal: {c, 1, w} */
	unsigned dims; /* 1 to 3; a picture of one pixel is flat */
	size_t size; /* c * h * w */
};

/* The last dimension, and how often it is there: what linear layers and norms of a sequence work on. */
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

/* Offsets that lead into no block: to what the caller of a pass holds (the net's input, and its gradient), and to nothing. */
#define LAYER_OUTSIDE (SIZE_MAX - 1)
#define LAYER_NOWHERE SIZE_MAX

/* How the elements of a parameter begin. */
enum layer_start {
	START_WEIGHT, /* as the layer's init says */
	START_BIAS, /* zero, or as a weight with INIT_TORCH */
	START_TORCH, /* as INIT_TORCH, whatever the layer's is */
	START_ZERO,
	START_ONE
};

struct layer_param {
	const char *suffix; /* its tensor is NAME.suffix */
	uint64_t shape[4];
	unsigned dims;
	size_t count, fan_in, fan_out;
	enum layer_start start;
	bool counts; /* moved by forward passes in training, not by steps */
	/* Set when the net is built. */
	size_t at; /* first element in the vectors of the block of state */
	bool hold; /* frozen: its gradient is not handed over */
	bool lent; /* it is an earlier layer's, and no tensor of its own */
	bool adds; /* a later layer that uses it, too, has handed over its gradient before */
	size_t room; /* where a step forms its gradient: floats into the scratch of sgd.h */
};

#define LAYER_PARAMS_MAX (4 * NET_SPEC_STACK_MAX)
/* Of most layers. */
enum { PARAM_WEIGHT, PARAM_BIAS, PARAM_MEAN, PARAM_VARIANCE };
/* Of a linear layer with lora: [rank, in]; [out, rank] is the next. */
static inline size_t
layer_lora(const struct layer_spec *s)
{
	return s->bias ? 2 : 1;
}

struct layer {
	struct layer_spec spec; /* inputs: indices within the net */
	uint32_t index; /* in the whole network, of which the net may be a part */
	struct layer_shape in[RECIPE_INPUTS_MAX];

	/* Set by layer_check. */
	struct layer_shape out;
	struct layer_param param[LAYER_PARAMS_MAX];
	size_t param_count;

	/* Set by the back end. */
	size_t saved; /* bytes per example kept from forward for backward */
	size_t saved_once; /* likewise, whatever the batch */
	size_t work; /* floats of workspace of a pass, */
	size_t work_each; /* and per example, */
	size_t
	    work_lane; /* and, behind both, per thread, layer_apart between them. All three become multiples of LAYER_LINE */
	bool rectifies; /* it can do the work of a relu or relu6 behind it, both ways */

	/* Set when the net is built. */
	bool trains; /* some parameter, or the net's input, depends on this layer's gradient */

	/* Set by plan.c: bytes. */
	bool in_place; /* y is x[0] */
	bool spends; /* dx[0], where it is somewhere, is dy */
	float top; /* its y is cut to [0, top], and dy counts where y is inside; 0: not */
	bool done; /* so by the layer before it, and has no pass of its own */
	bool add[RECIPE_INPUTS_MAX]; /* dx[i] already holds another user's gradient: add to it */
	size_t x_at[RECIPE_INPUTS_MAX],
	    y_at; /* into a context or, shared, into what all passes use */
	bool x_shared[RECIPE_INPUTS_MAX], y_shared;
	uint32_t again; /* it is worked out again before the way back of layer again - 1; 0: not */
	bool before; /* some layer is, before this one's */
	size_t kept_at; /* likewise; nowhere: no backward */
	bool kept_shared;
	size_t dy_at, dx_at[RECIPE_INPUTS_MAX]; /* into the gradients; nowhere: nobody needs it */
};

/* Floats of a line of the cache: vectors that do not lie across two are quicker. */
#define LAYER_LINE ((size_t)16)

/* Floats between what two threads work in, over a page: a CPU fetches lines ahead up to a page's end, and takes them from the other. */
static inline size_t
layer_apart(const struct layer *l)
{
	return l->work_lane > 0 ? 1024 + 80 : 0;
}

/* What types of layers are like, for planning. */
struct layer_traits {
	bool may_alias; /* element by element: works with y == x */
	bool same_bytes; /* y is always x, only the shape differs */
	bool many_inputs;
	/* On the way back: x is read; y is; and nobody may have written over y. */
	bool reads_input, reads_output, fixes_output;
	bool spends; /* works with dx[0] == dy, though not with y == x */
	bool stands; /* what it keeps is not made again (backend_pass.again) */
	bool renews; /* y is cheap to work out again from x and what is kept, */
	bool follows; /* and so from y of such a layer, in place */
	/* On the way back the sign of y is read, which may be another layer's by then: not one that makes something else of it. */
	bool reads_sign, turns_sign;
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
/* Rows of a width: two dimensions, even if one of them is 1. */
ERR_MUST_USE enum err layer_shape_rows(
    struct layer_shape *s, uint64_t rows, uint64_t width, const char *name, struct why *why);
/* The same dimensions? */
bool layer_shape_same(const struct layer_shape *a, const struct layer_shape *b);
/* A parameter behind the layer's last one; ERR_LIMIT. */
ERR_MUST_USE enum err layer_param_add(
    struct layer *l, const struct layer_param *p, struct why *why);

#endif
