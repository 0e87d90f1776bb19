#ifndef CONV_INPUT_H
#define CONV_INPUT_H
#include "gemm.h"
#include "planes.h"

/*
 * dx of a convolution without groups whose dy is mostly not zero: products of weights that are turned with what lies under each element of
 * dx in padded planes of dy. A sum is one chain, whatever lies side by side.
 */
struct conv_input {
	struct planes dy;
	enum gemm_arithmetic arithmetic; /* the pass's */
	/* Small maps are laid out in slabs: so many examples side by side, `some` channels of dy at a time in rows of `pitch`. Others are read where they lie, and
	 * have joined 1, some 0. */
	size_t joined, some, pitch;
	size_t rows; /* of dx at a time, where they are read as they lie */
	/* A thread's memory, in floats: where its parts begin, and all. */
	size_t place, planes, slab, result;
	size_t lane;
};

/* False if it is too large to count. */
bool conv_input_plan(struct conv_input *d, const struct layer *l);
/* The weights of some input channels as conv_input_run wants them: in all as many floats. Not of points, which are as they should be. */
void conv_input_turn(
    const struct layer *l, size_t first, size_t count, const float *weight, float *turned);
/* dx of 1 to `joined` examples. own: the thread's memory. */
void conv_input_run(const struct conv_input *d, const struct layer *l, const float *turned,
    const float *dy, float *dx, size_t count, float *own);

#endif
