#ifndef OPERANDS_H
#define OPERANDS_H
#include "backend.h"

/* From offsets to operands, for layers that run in main memory. */

/* A layer's operands during a pass. */
struct operands {
	const float *weight, *bias; /* the first and the second parameter; NULL: none */
	const float *x[RECIPE_INPUTS_MAX];
	float *y, *dy;
	float *dx[RECIPE_INPUTS_MAX]; /* NULL: nobody needs it */
	void *kept; /* n * saved bytes; NULL in a net that only evaluates */
	float *work;
};

struct operands operands_of(const struct layer *l, const struct backend_pass *p);
struct sgd;
/* Where the gradient of one parameter goes. */
struct sgd operands_sgd(const struct layer_param *to, const struct backend_pass *p);
/* What one thread of the pass has to itself: work_lane floats, behind all other work. */
float *operands_lane(const struct layer *l, const struct backend_pass *p, unsigned lane);
/* Hands over a gradient that is formed, unless the parameter is held. */
void operands_give(
    const struct layer *l, const struct backend_pass *p, size_t param, const float *gradient);

#endif
