#include "cpu_inside.h"

#include <string.h>

#include "cpu.h"
#include "gemm.h"
#include "sgd.h"

static enum err
need(struct layer *l, struct why *why)
{
	(void)why;
	l->work = l->biases;
	return ERR_OK;
}

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	const struct view v = view_of(l, p);
	size_t in = l->in[0].size, out = l->out.size;

	if (v.bias)
		for (size_t i = 0; i < p->n; i++)
			memcpy(v.y + i * out, v.bias, out * sizeof(float));
	gemm_dot(&(struct gemm){
	    .m = p->n,
	    .n = out,
	    .k = in,
	    .a = v.x[0],
	    .a_row = in,
	    .a_col = 1,
	    .b = v.weight,
	    .b_row = in,
	    .c = v.y,
	    .c_row = out,
	    .alpha = 1,
	    .beta = v.bias ? 1 : 0,
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
backward_input(const struct layer *l, const struct view *v, size_t n)
{
	size_t in = l->in[0].size, out = l->out.size;

	gemm_outer(&(struct gemm){
	    .m = n,
	    .n = in,
	    .k = out,
	    .a = v->dy,
	    .a_row = out,
	    .a_col = 1,
	    .b = v->weight,
	    .b_row = in,
	    .c = v->dx[0],
	    .c_row = in,
	    .alpha = 1,
	    .beta = l->add[0] ? 1 : 0,
	});
}

/* The update is part of the product, so the weights are walked through once and no gradient is stored. */
static void
backward_weight(const struct layer *l, const struct view *v, const struct backend_pass *p)
{
	size_t in = l->in[0].size, out = l->out.size;
	struct sgd_target t = sgd_begin(p->sgd, l->weight_at);

	gemm_outer(&(struct gemm){
	    .m = out,
	    .n = in,
	    .k = p->n,
	    .a = v->dy,
	    .a_row = 1,
	    .a_col = out,
	    .b = v->x[0],
	    .b_row = in,
	    .c = t.to,
	    .c_row = in,
	    .alpha = t.alpha,
	    .beta = t.beta,
	});
	sgd_end(p->sgd, l->weight_at, l->weights);
}

static void
backward(const struct layer *l, const struct backend_pass *p)
{
	const struct view v = view_of(l, p);
	size_t out = l->out.size;

	if (v.dx[0])
		backward_input(l, &v, p->n);
	if (!l->hold_weight)
		backward_weight(l, &v, p);
	if (v.bias && !l->hold_bias) {
		add_rows(p->work, v.dy, p->n, out);
		sgd_apply(p->sgd, l->bias_at, p->work, out);
	}
}

const struct backend_layer linear_passes = {.need = need, .forward = forward, .backward = backward};
