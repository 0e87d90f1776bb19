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
	bool adds; /* rows_turned: to what is in y, without bias */
	enum gemm_arithmetic arithmetic;
	struct team *team;
};

void rows_direct(const struct rows_product *p, const float *x, float *y);
/* The same for many rows, by a copy of the weights: work has rows_work floats; of rows_back it may be NULL. in * (out +
 * 15) and out * (in + 15) must fit. */
size_t rows_work(size_t in, size_t out);
void rows_turned(const struct rows_product *p, const float *x, float *y, float *work);
void rows_back(const struct rows_product *p, const float *dy, float *dx, bool add, float *work);
/* The gradient of parameter `param` goes where the pass's gradients go; the update is part of the product, so the weights are walked
 * through once and no gradient is stored. */
void rows_gradient(const struct rows_product *p, const struct layer *l, size_t param,
    const struct backend_pass *pass, const float *dy, const float *x);
/* Sums of columns, rows ascending. */
struct rows_sum {
	float *sum;
	const float *from;
	size_t rows, stride, width;
};
void rows_sum(struct team *team, const struct rows_sum *s);

#endif
