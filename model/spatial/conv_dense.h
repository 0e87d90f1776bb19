#ifndef CONV_DENSE_H
#define CONV_DENSE_H
#include "operands.h"

/*
 * The weights of a convolution without groups whose dy is mostly not zero, as behind norms: products of matrices of pixels. The same
 * sums in the same order as conv.c's by single elements, to which only terms of zero are added.
 */
struct conv_dense {
	/* Of a thread, in floats: where the parts of its memory begin, and its size. */
	size_t under; /* where the pixels under each output begin */
	size_t value, pixels; /* dy of some examples side by side, x padded, channels innermost */
	size_t lane;
	/* Sizes. */
	bool direct; /* points: x and dy are multiplied as they lie, and a thread needs no memory */
	size_t group; /* examples in pixels */
	size_t run; /* floats under a row of the kernel, in whole lanes */
	enum gemm_arithmetic arithmetic; /* the pass's */
};

/* False if it is too large to count. */
bool conv_dense_plan(struct conv_dense *d, const struct layer *l);
/* Is so much of a batch's dy not zero, as samples tell, that this is the quicker way? */
bool conv_dense_pays(const float *dy, size_t n);
/* A kernel of one element, which nothing surrounds: x and dy are matrices as they lie. */
bool conv_dense_is_point(const struct layer *l);
/* x, one example, into the middle of a picture of zeros, channels innermost. */
void conv_dense_pixels(const struct layer *l, const float *x, float *pixels);
/* Channels [in, in_end) and [out, out_end). */
struct conv_dense_part {
	size_t in, in_end, out, out_end;
};
/* One of so many about equal parts of the gradients: of input channels where these alone are turned then, else of output channels. */
struct conv_dense_part conv_dense_part(const struct layer *l, size_t index, size_t count);
/* Where sums go: gradient[out][kernel height][run], and bias[out] or NULL. */
struct conv_dense_sums {
	float *weight, *bias;
};
/* The sums of a part over all examples; those of a bias belong to the first input channel. */
void conv_dense_weights(const struct conv_dense *d, const struct layer *l, const struct operands *v,
    size_t n, const struct conv_dense_part *part, const struct conv_dense_sums *to, float *own);

#endif
