#include "cpu_dense.h"

#include <string.h>

#include "cpu.h"
#include "gemm.h"
#include "num.h"
#include "rows.h"
#include "sgd.h"

static enum err
need(struct layer *l, struct why *why)
{
	size_t in = layer_width(&l->in[0]), most;

	l->work = l->out.size;
	if (layer_rows(&l->in[0]) == 1)
		return ERR_OK;
	if (!num_mul(in, (size_t)l->spec.out + 16, &most))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", l->spec.name);
	l->work = rows_turned_work(in, l->spec.out);
	return ERR_OK;
}

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	const struct rows_product product = {.rows = p->n * layer_rows(&l->in[0]),
	    .in = layer_width(&l->in[0]),
	    .out = l->spec.out,
	    .weight = v.weight,
	    .bias = v.bias,
	    .exact = p->exact,
	    .team = p->team};

	if (layer_rows(&l->in[0]) > 1)
		rows_turned(&product, v.x[0], v.y, p->work);
	else
		rows_direct(&product, v.x[0], v.y);
}

static void
backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	const struct rows_product product = {.rows = p->n * layer_rows(&l->in[0]),
	    .in = layer_width(&l->in[0]),
	    .out = l->spec.out,
	    .weight = v.weight,
	    .bias = v.bias,
	    .exact = p->exact,
	    .team = p->team};

	if (v.dx[0])
		rows_back(&product, v.dy, v.dx[0], l->add[0]);
	rows_gradient(&product, l, PARAM_WEIGHT, p, v.dy, v.x[0]);
	if (v.bias && !l->param[PARAM_BIAS].hold) {
		rows_sum(p->work, v.dy, product.rows, product.out);
		operands_give(l, p, PARAM_BIAS, p->work);
	}
}

const struct backend_layer linear_passes = {.need = need, .forward = forward, .backward = backward};
