#include "elementwise.h"

#include <string.h>

#include "cpu.h"
#include "draw.h"

static enum err
same_shape(struct layer *l, struct why *why)
{
	(void)why;
	l->out = l->in[0];
	return ERR_OK;
}

CPU_CLONES static void
rectify(float *y, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] < 0 ? 0 : x[i];
}

/* dx = dy where `gate` is positive, elsewhere 0; added to dx if `add`. */
CPU_CLONES static void
gate_gradient(float *dx, const float *dy, const float *gate, size_t n, bool add)
{
	if (add)
		for (size_t i = 0; i < n; i++)
			dx[i] += gate[i] > 0 ? dy[i] : 0;
	else
		for (size_t i = 0; i < n; i++)
			dx[i] = gate[i] > 0 ? dy[i] : 0;
}

CPU_CLONES static void
add_to(float *y, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += x[i];
}

/* Gives dy to dx unchanged. */
static void
pass_gradient(struct layer *l, size_t i, size_t n)
{
	if (!l->dx[i] || l->dx[i] == l->dy)
		return;
	if (l->add[i])
		add_to(l->dx[i], l->dy, n);
	else
		memcpy(l->dx[i], l->dy, n * sizeof(float));
}

static void
relu_forward(struct layer *l, const struct layer_pass *p)
{
	rectify(l->y, l->x[0], p->n * l->out.size);
}

static void
relu_backward(struct layer *l, const struct layer_pass *p)
{
	if (l->dx[0])
		gate_gradient(l->dx[0], l->dy, l->y, p->n * l->out.size, l->add[0]);
}

const struct layer_ops elementwise_relu_ops = {
    .shape = same_shape,
    .forward = relu_forward,
    .backward = relu_backward,
    .may_alias = true,
};

static enum err
dropout_shape(struct layer *l, struct why *why)
{
	if (!(l->spec.rate >= 0 && l->spec.rate < 1))
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": rate must be at least 0 and below 1", l->spec.name);
	l->out = l->in[0];
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
dropout_forward(struct layer *l, const struct layer_pass *p)
{
	size_t n = p->n * l->out.size;
	float *mask = l->kept;

	if (mask && p->draw) {
		draw_floats(p->draw, l->index, l->out.size, mask, n);
		make_mask(mask, n, l->spec.rate);
		multiply(l->y, l->x[0], mask, n);
		return;
	}
	for (size_t i = 0; mask && i < n; i++)
		mask[i] = 1;
	if (l->y != l->x[0])
		memcpy(l->y, l->x[0], n * sizeof(float));
}

static void
dropout_backward(struct layer *l, const struct layer_pass *p)
{
	size_t n = p->n * l->out.size;

	if (l->dx[0] && l->add[0])
		multiply_add(l->dx[0], l->dy, l->kept, n);
	else if (l->dx[0])
		multiply(l->dx[0], l->dy, l->kept, n);
}

const struct layer_ops elementwise_dropout_ops = {
    .shape = dropout_shape,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .may_alias = true,
};

static enum err
flatten_shape(struct layer *l, struct why *why)
{
	return layer_shape_set(&l->out, l->in[0].size, 1, 1, l->spec.name, why);
}

static void
flatten_forward(struct layer *l, const struct layer_pass *p)
{
	(void)l;
	(void)p;
}

static void
flatten_backward(struct layer *l, const struct layer_pass *p)
{
	pass_gradient(l, 0, p->n * l->out.size);
}

const struct layer_ops elementwise_flatten_ops = {
    .shape = flatten_shape,
    .forward = flatten_forward,
    .backward = flatten_backward,
    .same_bytes = true,
};

static enum err
add_shape(struct layer *l, struct why *why)
{
	for (size_t i = 1; i < l->spec.input_count; i++)
		if (l->in[i].c != l->in[0].c || l->in[i].h != l->in[0].h ||
		    l->in[i].w != l->in[0].w)
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": its inputs are of different shapes", l->spec.name);
	l->out = l->in[0];
	return ERR_OK;
}

static void
add_forward(struct layer *l, const struct layer_pass *p)
{
	size_t n = p->n * l->out.size;

	memcpy(l->y, l->x[0], n * sizeof(float));
	for (size_t i = 1; i < l->spec.input_count; i++)
		add_to(l->y, l->x[i], n);
}

static void
add_backward(struct layer *l, const struct layer_pass *p)
{
	for (size_t i = 0; i < l->spec.input_count; i++)
		pass_gradient(l, i, p->n * l->out.size);
}

const struct layer_ops elementwise_add_ops = {
    .shape = add_shape,
    .forward = add_forward,
    .backward = add_backward,
    .many_inputs = true,
};
