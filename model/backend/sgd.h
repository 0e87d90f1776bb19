#ifndef SGD_H
#define SGD_H
#include <stdbool.h>
#include <stddef.h>

struct team;

/*
 * Where gradients go. Layers hand over one parameter tensor after the other by sgd_begin and sgd_end, whatever is done with the gradient: a
 * plain step (straight into the weights), a step with momentum (into the velocity), a step of another kind that handles one tensor
 * at a time, or the gradient is stored, for tests and for the steps of update.h.
 */
struct sgd {
	struct team *team; /* the threads of a step; NULL: one */
	float *params;
	float *velocity; /* NULL: no momentum */
	float *gradient; /* not NULL: gradients are collected here, and no parameter changes */
	/* Not NULL: where layers that share a weight collect its gradients apart (layer_param.apart); of the tensor at hand, if it is one. */
	float *apart;
	float share; /* the factor of this gradient in the collected one */
	bool add; /* this gradient is added to the collected one */
	bool waits; /* an earlier layer will add to the tensor's gradient: no step yet */
	float rate, momentum, weight_decay;
	/* Not NULL: called with some elements of a tensor's gradient, which lies in `scratch` (layer_param.room); the function may change
	 * them. Several threads call it with parts of one tensor. */
	void (*step)(const void *context, size_t first, float *gradient, size_t count);
	/* Of collected gradients: called when a tensor's is complete, as far as this pass goes. NULL: not wanted. */
	void (*complete)(const void *context, size_t first, size_t count);
	const void *context;
	float *scratch;
};

/* A gradient that is a product of matrices may be written as  to = beta * to + alpha * product. */
struct sgd_target {
	float *to;
	float alpha, beta;
};

/* Target for the gradient of the tensor that begins at element `first`; sgd_end follows when the whole gradient is written. */
struct sgd_target sgd_begin(const struct sgd *s, size_t first);
void sgd_end(const struct sgd *s, size_t first, size_t count);
/* sgd_begin and sgd_end for a complete gradient. */
void sgd_apply(const struct sgd *s, size_t first, const float *gradient, size_t count);

#endif
