#include "cpu_dense.h"

#include <string.h>

#include "cpu.h"
#include "draw.h"
#include "lanes.h"
#include "runs.h"

CPU_CLONES static void
rectify(float *y, const float *x, size_t n)
{
	LANES_FREE
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] < 0 ? 0 : x[i];
}

/* dx = dy where `gate` is positive, elsewhere 0; added to dx if `add`. */
CPU_CLONES static void
gate_gradient(float *dx, const float *dy, const float *gate, size_t n, bool add)
{
	if (add) {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] += gate[i] > 0 ? dy[i] : 0;
	} else {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] = gate[i] > 0 ? dy[i] : 0;
	}
}

/* Gives dy to dx unchanged. */
static void
pass_gradient(const struct layer *l, const struct operands *v, size_t i, size_t n)
{
	if (v->dx[i] && v->dx[i] != v->dy)
		runs_give(v->dx[i], v->dy, n, l->add[i]);
}

static void
relu_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	rectify(v.y, v.x[0], p->n * l->out.size);
}

static void
relu_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	if (v.dx[0])
		gate_gradient(v.dx[0], v.dy, v.y, p->n * l->out.size, l->add[0]);
}

const struct backend_layer elementwise_relu_passes = {
    .forward = relu_forward, .backward = relu_backward};

static enum err
dropout_need(struct layer *l, struct why *why)
{
	(void)why;
	l->saved = l->out.size * sizeof(float);
	return ERR_OK;
}

CPU_CLONES static void
multiply(float *y, const float *x, const float *mask, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] * mask[i];
}

CPU_CLONES static void
multiply_add(float *y, const float *x, const float *mask, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += x[i] * mask[i];
}

/* Numbers in [0, 1) become what elements are multiplied by. */
CPU_CLONES static void
make_mask(float *mask, size_t n, float rate)
{
	float scale = 1 / (1 - rate);

	for (size_t i = 0; i < n; i++)
		mask[i] = mask[i] < rate ? 0 : scale;
}

/* The mask holds what each element is multiplied by; without dropout all ones, so that backward need not know. */
static void
dropout_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t n = p->n * l->out.size;
	float *mask = v.kept;

	if (mask && p->draw) {
		draw_floats(p->draw, l->index, l->out.size, mask, n);
		make_mask(mask, n, l->spec.rate);
		multiply(v.y, v.x[0], mask, n);
		return;
	}
	for (size_t i = 0; mask && i < n; i++)
		mask[i] = 1;
	if (v.y != v.x[0])
		memcpy(v.y, v.x[0], n * sizeof(float));
}

static void
dropout_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t n = p->n * l->out.size;

	if (v.dx[0] && l->add[0])
		multiply_add(v.dx[0], v.dy, v.kept, n);
	else if (v.dx[0])
		multiply(v.dx[0], v.dy, v.kept, n);
}

const struct backend_layer elementwise_dropout_passes = {
    .need = dropout_need, .forward = dropout_forward, .backward = dropout_backward};

static void
flatten_forward(const struct layer *l, const struct backend_pass *p)
{
	(void)l;
	(void)p;
}

static void
flatten_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	pass_gradient(l, &v, 0, p->n * l->out.size);
}

const struct backend_layer elementwise_flatten_passes = {
    .forward = flatten_forward, .backward = flatten_backward};

static void
add_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t n = p->n * l->out.size;

	memcpy(v.y, v.x[0], n * sizeof(float));
	for (size_t i = 1; i < l->spec.input_count; i++)
		runs_add(v.y, v.x[i], n);
}

static void
add_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	for (size_t i = 0; i < l->spec.input_count; i++)
		pass_gradient(l, &v, i, p->n * l->out.size);
}

const struct backend_layer elementwise_add_passes = {
    .forward = add_forward, .backward = add_backward};
