#include "cpu_dense.h"

#include "num.h"
#include "rows.h"
#include "runs.h"

static size_t
largest(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Ranks are at most `in` and `out`, so what they need fits where the weight's copy does. */
static enum err
need(struct layer *l, struct why *why)
{
	size_t in = layer_width(&l->in[0]), out = l->spec.out, rank = l->spec.rank, most;
	size_t rows = layer_rows(&l->in[0]);

	if (!num_mul(in, out + 16, &most) || !num_mul(out, in + 16, &most))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", l->spec.name);
	l->work = rows > 1 ? largest(rows_work(in, out), out) : out;
	if (rank > 0)
		l->work = largest(l->work, largest(rows_work(in, rank), rows_work(rank, out)));
	l->work_each = 2 * rows * rank;
	return ERR_OK;
}

static struct rows_product
product_of(const struct layer *l, const struct backend_pass *p)
{
	const struct layer_param *bias = l->spec.bias ? &l->param[PARAM_BIAS] : NULL;

	return (struct rows_product){.rows = p->n * layer_rows(&l->in[0]),
	    .in = layer_width(&l->in[0]),
	    .out = l->spec.out,
	    .weight = p->weights + l->param[PARAM_WEIGHT].at,
	    .bias = bias ? p->weights + bias->at : NULL,
	    .arithmetic = p->arithmetic,
	    .team = p->team};
}

/* --- lora: two narrow products beside the wide one */

/* [rank, in], or [out, rank], whose outputs are added. */
static struct rows_product
narrow_of(const struct layer *l, const struct backend_pass *p, bool second)
{
	struct rows_product product = product_of(l, p);

	product.bias = NULL;
	product.weight = p->weights + l->param[layer_lora(&l->spec) + second].at;
	*(second ? &product.in : &product.out) = l->spec.rank;
	product.adds = second;
	return product;
}

/* What lies between both, times alpha / rank: behind the work of single products. */
static float *
middle_of(const struct layer *l, const struct backend_pass *p, const float *x)
{
	const struct rows_product first = narrow_of(l, p, false);
	float *middle = p->work + l->work;

	rows_turned(&first, x, middle, p->work);
	runs_scale(middle, first.rows * first.out, l->spec.alpha / (float)l->spec.rank);
	return middle;
}

static void
add_lora(const struct layer *l, const struct backend_pass *p, const struct operands *v)
{
	const struct rows_product second = narrow_of(l, p, true);

	rows_turned(&second, middle_of(l, p, v->x[0]), v->y, p->work);
}

/* Its part of dx is added to the weight's; then both gradients. */
static void
lora_backward(const struct layer *l, const struct backend_pass *p, const struct operands *v)
{
	const struct rows_product first = narrow_of(l, p, false), second = narrow_of(l, p, true);
	const float *middle = middle_of(l, p, v->x[0]);
	float *back = p->work + l->work + first.rows * first.out;
	size_t at = layer_lora(&l->spec);

	rows_back(&second, v->dy, back, false, p->work);
	runs_scale(back, first.rows * first.out, l->spec.alpha / (float)l->spec.rank);
	if (v->dx[0])
		rows_back(&first, back, v->dx[0], true, p->work);
	rows_gradient(&first, l, at, p, back, v->x[0]);
	rows_gradient(&second, l, at + 1, p, v->dy, middle);
}

/* --- */

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	const struct rows_product product = product_of(l, p);

	if (layer_rows(&l->in[0]) > 1)
		rows_turned(&product, v.x[0], v.y, p->work);
	else
		rows_direct(&product, v.x[0], v.y);
	if (l->spec.rank > 0)
		add_lora(l, p, &v);
}

static void
backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	const struct rows_product product = product_of(l, p);

	if (v.dx[0])
		rows_back(
		    &product, v.dy, v.dx[0], l->add[0], layer_rows(&l->in[0]) > 1 ? p->work : NULL);
	rows_gradient(&product, l, PARAM_WEIGHT, p, v.dy, v.x[0]);
	if (product.bias && !l->param[PARAM_BIAS].hold) {
		rows_sum(p->team,
		    &(struct rows_sum){p->work, v.dy, product.rows, product.out, product.out});
		operands_give(l, p, PARAM_BIAS, p->work);
	}
	if (l->spec.rank > 0)
		lora_backward(l, p, &v);
}

const struct backend_layer linear_passes = {.need = need, .forward = forward, .backward = backward};
