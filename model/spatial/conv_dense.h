#ifndef CONV_DENSE_H
#define CONV_DENSE_H
#include "operands.h"

/*
 * The weights' gradient of a convolution without groups whose dy is mostly not zero, as behind norms: products of matrices of pixels. The
 * sums and their order are those of conv.c, which works by single elements; only terms of zero are added.
 */
struct conv_dense {
	/* A thread's memory, in floats: where its parts begin, and its size (lane). */
	size_t under; /* where the pixels under each output begin */
	size_t value, pixels; /* dy of some examples side by side, x padded, channels innermost */
	size_t lane;
	/* Sizes. */
	/* A 1 x 1 kernel (conv_dense_is_point): x and dy are multiplied in place, and a thread needs no memory. */
	bool direct;
	size_t group; /* examples in pixels */
	size_t run; /* floats under a row of the kernel, in whole lanes */
	enum gemm_arithmetic arithmetic; /* the pass's */
};

/* False if a size overflows. */
bool conv_dense_plan(struct conv_dense *d, const struct layer *l);
/* Are so many elements of a batch's dy not zero, judging by samples, that this way is quicker? */
bool conv_dense_pays(const float *dy, size_t n);
/* Has the layer a kernel of one element, stride 1 and no padding, so that x and dy are matrices in place? */
bool conv_dense_is_point(const struct layer *l);
/* Copies x, one example, into the middle of a picture of zeros, channels innermost. */
void conv_dense_pixels(const struct layer *l, const float *x, float *pixels);
/* Channels [in, in_end) and [out, out_end). */
struct conv_dense_part {
	size_t in, in_end, out, out_end;
};
/* Part number `index` of `count` about equal parts of the gradient: of input channels if then only a part's own are transposed, else of
 * output channels. */
struct conv_dense_part conv_dense_part(const struct layer *l, size_t index, size_t count);
/* Where sums go: gradient[out][kernel height][run], and bias[out] or NULL. */
struct conv_dense_sums {
	float *weight, *bias;
};
/* The sums of a part over all examples; those of a bias belong to the first input channel. */
void conv_dense_weights(const struct conv_dense *d, const struct layer *l, const struct operands *v,
    size_t n, const struct conv_dense_part *part, const struct conv_dense_sums *to, float *own);

#endif
