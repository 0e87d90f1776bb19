#ifndef BACKEND_H
#define BACKEND_H
#include "gemm.h"
#include "layer.h"

/*
 * Where the passes of a net run: one table per back end. A net's memory is two blocks of a back end's, planned by net/plan.h; layers
 * hold offsets into them.
 *
 *   state     vectors of one float per parameter: weights, then what the optimizer keeps
 *   passes    gradients, outputs that no way back reads, and workspace, which one pass after the other uses; then the contexts: the
 *             other outputs, and what layers keep for the way back
 *
 * A net runs as a whole on one back end: `need` of each layer is asked before anything is allocated.
 */
struct draw;
struct sgd;
struct team;

/* One pass of a batch through a net, the same for all of its layers. */
struct backend_pass {
	uint32_t n; /* examples */
	const struct draw *draw; /* for dropout; NULL: none */
	const float *weights; /* the state's first vector */
	float *statistics; /* the same, where a backward pass counts; backward only */
	bool training; /* forward: a batch's own statistics */
	bool
	    again; /* forward, in the middle of the way back: what stands (layer_traits) is read, not made */
	enum gemm_arithmetic arithmetic; /* of products */
	struct team *team; /* threads for it; NULL: one. */
	char *context,
	    *gradients; /* where the offsets of a layer begin: gradients, what is shared */
	float *work; /* as many floats as the hungriest layer needs for the net's largest batch */
	const float *input; /* of the net: the caller's */
	float *input_gradient; /* NULL: not wanted */
	const struct sgd *sgd; /* where gradients of parameters go; backward only */
};

struct backend_layer {
	/* Sets what the layer saves and works with, and whether it rectifies; NULL: nothing of all. ERR_LIMIT. */
	enum err (*need)(struct layer *l, struct why *why);
	/* Reads x, writes y and what backward will want to `kept`. */
	void (*forward)(const struct layer *l, const struct backend_pass *p);
	/* Reads dy; writes or adds to each dx that is somewhere, then gives the gradients of the parameters to p->sgd, in this
	 * order. */
	void (*backward)(const struct layer *l, const struct backend_pass *p);
};

struct backend {
	const char *name;
	const struct backend_layer *layers[LAYER_TYPES]; /* by type; NULL: not of this back end */
	/* A block, on a cache line; NULL if there is no memory. Its bytes are not zeroed. */
	void *(*allocate)(size_t bytes);
	/* The block cut to its first bytes; it may lie elsewhere then, on no cache line. */
	void *(*cut)(void *block, size_t bytes);
	void (*release)(void *block); /* or NULL */
};

#endif
