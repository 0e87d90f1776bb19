#ifndef OPERANDS_H
#define OPERANDS_H
#include "backend.h"

/* From offsets to operands, for layers that run in main memory. */

/* A layer's operands during a pass. */
struct operands {
	const float *weight, *bias; /* the first and the second parameter; NULL: none */
	const float *x[RECIPE_INPUTS_MAX];
	float *y, *dy;
	float *dx[RECIPE_INPUTS_MAX]; /* NULL: not needed */
	void *kept; /* n * saved bytes; NULL in a net that only evaluates */
	float *work;
};

struct operands operands_of(const struct layer *l, const struct backend_pass *p);
struct sgd;
/* Where the gradient of one parameter goes. */
struct sgd operands_sgd(const struct layer_param *to, const struct backend_pass *p);
/* The workspace of thread `lane` alone: layer.work_lane floats, behind the shared workspace. */
float *operands_lane(const struct layer *l, const struct backend_pass *p, unsigned lane);
/* Gives a complete gradient of parameter `param` to p->sgd, unless the parameter is held (layer_param.hold). */
void operands_give(
    const struct layer *l, const struct backend_pass *p, size_t param, const float *gradient);

#endif
