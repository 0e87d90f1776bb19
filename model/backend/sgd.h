#ifndef SGD_H
#define SGD_H
#include <stdbool.h>
#include <stddef.h>

struct team;

/*
 * Where gradients go. Layers hand over one parameter tensor after the other, and the same two calls serve four
 * ends: a plain step (straight into the weights), a step with momentum (into the velocity), a step of another kind that looks at one tensor
 * at a time, or the gradient itself, which is tests' or what update.h makes a step of.
 */
struct sgd {
	struct team *team; /* threads for it; NULL: one */
	float *params;
	float *velocity; /* NULL: no momentum */
	float *gradient; /* not NULL: only collect here, touch no parameter */
	float share; /* of this gradient in what is collected */
	bool add; /* to what was collected before */
	bool waits; /* an earlier layer will add to it: no step yet */
	float rate, momentum, weight_decay;
	/* Not NULL: takes some elements of a tensor's gradient, formed in its room of `scratch` (layer_param); it may change them. Several
	 * threads take parts of one tensor. */
	void (*step)(const void *context, size_t first, float *gradient, size_t count);
	const void *context;
	float *scratch;
};

/* A product of matrices that is a gradient may be formed as  to = beta * to + alpha * product. */
struct sgd_target {
	float *to;
	float alpha, beta;
};

/* Target for the tensor that begins at element `first`; sgd_end follows when all of it is written. */
struct sgd_target sgd_begin(const struct sgd *s, size_t first);
void sgd_end(const struct sgd *s, size_t first, size_t count);
/* Both, for a gradient that is already formed. */
void sgd_apply(const struct sgd *s, size_t first, const float *gradient, size_t count);

#endif
