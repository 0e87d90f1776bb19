#ifndef BACKEND_H
#define BACKEND_H
#include "gemm.h"
#include "layer.h"

/*
 * Where the passes of a net run: one table per back end. A net's memory is two blocks that the back end allocates, planned by net/plan.h;
 * layers hold offsets into these blocks.
 *
 *   state     vectors of one float per parameter: weights, then what the optimizer keeps
 *   passes    gradients, outputs that no backward pass reads, and workspace, which all passes share; then the contexts: the
 *             other outputs, and what layers keep for the backward pass
 *
 * A net runs as a whole on one back end: `need` of each layer is called before anything is allocated.
 */
struct draw;
struct sgd;
struct team;

/* One pass of a batch through a net, the same for all of its layers. */
struct backend_pass {
	uint32_t n; /* examples */
	const struct draw *draw; /* for dropout; NULL: none */
	const float *weights; /* the state's first vector */
	/* The state's first vector, where a backward pass updates running statistics; backward only. */
	float *statistics;
	bool training; /* forward: a batch's own statistics */
	/* forward, repeated during a backward pass: what layers with layer_traits.stands keep is read, not made. */
	bool again;
	enum gemm_arithmetic arithmetic; /* of products */
	struct team *team; /* the threads of the pass; NULL: one */
	/* The bases of a layer's offsets into a context and into shared memory. */
	char *context, *gradients;
	float *work; /* the most floats that any layer needs for the net's largest batch */
	const float *input; /* the net's input, the caller's */
	float *input_gradient; /* the gradient of the net's input; NULL: not wanted */
	const struct sgd *sgd; /* where gradients of parameters go; backward only */
};

struct backend_layer {
	/* Sets saved, work and rectifies of the layer; NULL: all stay zero. ERR_LIMIT. */
	enum err (*need)(struct layer *l, struct why *why);
	/* Reads x, writes y, and writes to `kept` what `backward` reads. */
	void (*forward)(const struct layer *l, const struct backend_pass *p);
	/* Reads dy; writes or adds to each dx that has a place, then gives the gradients of the parameters to p->sgd, in this
	 * order. */
	void (*backward)(const struct layer *l, const struct backend_pass *p);
};

struct backend {
	const char *name;
	const struct backend_layer *layers[LAYER_TYPES]; /* by type; NULL: not of this back end */
	/* Allocates a block that begins on a cache line; NULL if memory is short. The bytes are not zeroed. */
	void *(*allocate)(size_t bytes);
	/* Shortens a block to its first bytes and returns it; the block may move, and then need not begin on a cache line. */
	void *(*cut)(void *block, size_t bytes);
	void (*release)(void *block); /* NULL is legal */
};

#endif
