#include "linear.h"

#include <string.h>

#include "cpu.h"
#include "gemm.h"
#include "num.h"
#include "sgd.h"

static enum err
shape(struct layer *l, struct why *why)
{
	const struct layer_shape *in = &l->in[0];
	enum err e = layer_shape_set(&l->out, l->spec.out, 1, 1, l->spec.name, why);

	if (e)
		return e;
	if (in->h != 1 || in->w != 1)
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": linear needs a flat input; put a flatten layer before it",
		    l->spec.name);
	if (!num_mul(in->c, l->out.c, &l->weights))
		return err_set(why, ERR_LIMIT, "layer \"%s\": too many weights", l->spec.name);
	l->biases = l->spec.bias ? l->out.c : 0;
	l->weight_dims = 2;
	l->weight_shape[0] = l->out.c;
	l->weight_shape[1] = in->c;
	l->fan_in = in->c;
	l->fan_out = l->out.c;
	l->work = l->biases;
	return ERR_OK;
}

static void
forward(struct layer *l, const struct layer_pass *p)
{
	size_t in = l->in[0].size, out = l->out.size;

	if (l->bias)
		for (size_t i = 0; i < p->n; i++)
			memcpy(l->y + i * out, l->bias, out * sizeof(float));
	gemm_dot(&(struct gemm){
	    .m = p->n,
	    .n = out,
	    .k = in,
	    .a = l->x[0],
	    .a_row = in,
	    .a_col = 1,
	    .b = l->weight,
	    .b_row = in,
	    .c = l->y,
	    .c_row = out,
	    .alpha = 1,
	    .beta = l->bias ? 1 : 0,
	});
}

CPU_CLONES static void
add_rows(float *sum, const float *rows, size_t n, size_t width)
{
	memset(sum, 0, width * sizeof(float));
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < width; j++)
			sum[j] += rows[i * width + j];
}

static void
backward_input(struct layer *l, size_t n)
{
	size_t in = l->in[0].size, out = l->out.size;

	gemm_outer(&(struct gemm){
	    .m = n,
	    .n = in,
	    .k = out,
	    .a = l->dy,
	    .a_row = out,
	    .a_col = 1,
	    .b = l->weight,
	    .b_row = in,
	    .c = l->dx[0],
	    .c_row = in,
	    .alpha = 1,
	    .beta = l->add[0] ? 1 : 0,
	});
}

/* The update is part of the product, so the weights are walked through once and no gradient is stored. */
static void
backward_weight(struct layer *l, const struct layer_pass *p)
{
	size_t in = l->in[0].size, out = l->out.size;
	struct sgd_target t = sgd_begin(p->sgd, l->weight_at);

	gemm_outer(&(struct gemm){
	    .m = out,
	    .n = in,
	    .k = p->n,
	    .a = l->dy,
	    .a_row = 1,
	    .a_col = out,
	    .b = l->x[0],
	    .b_row = in,
	    .c = t.to,
	    .c_row = in,
	    .alpha = t.alpha,
	    .beta = t.beta,
	});
	sgd_end(p->sgd, l->weight_at, l->weights);
}

static void
backward(struct layer *l, const struct layer_pass *p)
{
	size_t out = l->out.size;

	if (l->dx[0])
		backward_input(l, p->n);
	if (!l->hold_weight)
		backward_weight(l, p);
	if (l->bias && !l->hold_bias) {
		add_rows(p->work, l->dy, p->n, out);
		sgd_apply(p->sgd, l->bias_at, p->work, out);
	}
}

const struct layer_ops linear_ops = {.shape = shape, .forward = forward, .backward = backward};
