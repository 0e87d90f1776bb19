#ifndef ROWS_H
#define ROWS_H
#include "operands.h"

/*
 * Products of rows with a matrix of weights [out, in], as linear layers, recurrent ones and attention need them:
 *
 *   forward   y[r, o] = bias[o] + sum over i of x[r, i] weight[o, i]
 *   back      dx[r, i] = sum over o of dy[r, o] weight[o, i]
 *   gradient  of weight[o, i]: sum over r of dy[r, o] x[r, i]; of bias[o]: sum over r of dy[r, o]; r ascending
 *
 * The order of the sums is gemm.h's: rows_direct's by gemm_dot, all others' ascending by gemm_outer.
 */
struct rows_product {
	size_t rows, in, out;
	const float *weight, *bias; /* bias NULL: none */
	bool adds; /* rows_turned: the product is added to y, without bias */
	enum gemm_arithmetic arithmetic;
	struct team *team;
};

void rows_direct(const struct rows_product *p, const float *x, float *y);
/* rows_turned is rows_direct for many rows, through a rearranged copy of the weights. work has rows_work(in, out) floats; rows_back also
 * takes NULL. in * (out + 15) and out * (in + 15) must fit size_t. */
size_t rows_work(size_t in, size_t out);
void rows_turned(const struct rows_product *p, const float *x, float *y, float *work);
void rows_back(const struct rows_product *p, const float *dy, float *dx, bool add, float *work);
/* Gives the gradient of parameter `param` to the pass's sgd. A plain step is part of the product, so that the weights are read and written
 * once and no gradient is stored. */
void rows_gradient(const struct rows_product *p, const struct layer *l, size_t param,
    const struct backend_pass *pass, const float *dy, const float *x);
/* sum[j] = the sum over rows r, ascending, of from[r * stride + j], j < width. */
struct rows_sum {
	float *sum;
	const float *from;
	size_t rows, stride, width;
};
void rows_sum(struct team *team, const struct rows_sum *s);

#endif
