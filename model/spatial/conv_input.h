#ifndef CONV_INPUT_H
#define CONV_INPUT_H
#include "gemm.h"
#include "planes.h"

/*
 * dx of a convolution without groups whose dy is mostly not zero: products of turned weights with the elements of dy, in padded planes,
 * that each element of dx reaches. Each sum is one chain, whether examples lie side by side or not.
 */
struct conv_input {
	struct planes dy;
	enum gemm_arithmetic arithmetic; /* the pass's */
	/* Small planes are laid out in slabs: `joined` examples side by side, `some` channels of dy at a time in rows of `pitch`. Other
	 * planes are read in place, with joined 1, some 0. */
	size_t joined, some, pitch;
	size_t rows; /* of dx at a time, where planes are read in place */
	/* A thread's memory, in floats: where its parts begin, and all. */
	size_t place, planes, slab, result;
	size_t lane;
};

/* False if a size overflows. */
bool conv_input_plan(struct conv_input *d, const struct layer *l);
/* Rearranges the weights of input channels [first, first + count) for conv_input_run; `turned` has as many floats as `weight`. Not needed
 * for a 1 x 1 kernel (conv_dense_is_point). */
void conv_input_turn(
    const struct layer *l, size_t first, size_t count, const float *weight, float *turned);
/* dx of 1 to `joined` examples. own: the thread's memory. */
void conv_input_run(const struct conv_input *d, const struct layer *l, const float *turned,
    const float *dy, float *dx, size_t count, float *own);

#endif
