#include "cpu_dense.h"

#include <stdint.h>
#include <string.h>

#include "backend.h"
#include "cpu.h"
#include "elements.h"
#include "layer.h"
#include "operands.h"
#include "runs.h"

/* How concat walks: so many pieces one after the other, of which input i has `width` floats each. */
struct pieces {
	size_t count, whole;
};

static struct pieces
pieces_of(const struct layer *l, uint32_t n)
{
	bool across = l->out.dims == 2 && l->spec.dim == 2;
	size_t count = across ? (size_t)n * l->out.c : n;

	return (struct pieces){count, n * l->out.size / count};
}

static void
concat_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	struct pieces s = pieces_of(l, p->n);
	size_t at = 0;

	for (size_t i = 0; i < l->spec.input_count; i++) {
		size_t width = p->n * l->in[i].size / s.count;
		for (size_t k = 0; k < s.count; k++)
			memcpy(v.y + k * s.whole + at, v.x[i] + k * width, width * sizeof(float));
		at += width;
	}
}

static void
concat_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	struct pieces s = pieces_of(l, p->n);
	size_t at = 0;

	for (size_t i = 0; i < l->spec.input_count; i++) {
		size_t width = p->n * l->in[i].size / s.count;
		for (size_t k = 0; v.dx[i] && k < s.count; k++)
			runs_give(v.dx[i] + k * width, v.dy + k * s.whole + at, width, l->add[i]);
		at += width;
	}
}

const struct backend_layer join_concat_passes = {
    .forward = concat_forward, .backward = concat_backward};

/* y or dx = a * b, element by element. */
static void
product(struct team *team, float *to, const float *a, const float *b, size_t n, bool add)
{
	elements_run(team,
	    &(struct elements){.fn = runs_product, .to = to, .a = a, .b = b, .n = n, .add = add});
}

CPU_CLONES static void
scale_channel(float *to, const float *a, float b, size_t n, bool add)
{
	if (add)
		for (size_t i = 0; i < n; i++)
			to[i] += a[i] * b;
	else
		for (size_t i = 0; i < n; i++)
			to[i] = a[i] * b;
}

static bool
by_channel(const struct layer *l)
{
	return !layer_shape_same(&l->in[0], &l->in[1]);
}

static void
multiply_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t n = p->n * l->out.size, area = l->out.size / l->out.c;

	if (!by_channel(l)) {
		product(p->team, v.y, v.x[0], v.x[1], n, false);
		return;
	}
	for (size_t i = 0; i < (size_t)p->n * l->out.c; i++)
		scale_channel(v.y + i * area, v.x[0] + i * area, v.x[1][i], area, false);
}

static void
multiply_channels_back(const struct layer *l, const struct operands *v, uint32_t n)
{
	size_t area = l->out.size / l->out.c;

	for (size_t i = 0; i < (size_t)n * l->out.c; i++) {
		if (v->dx[0])
			scale_channel(
			    v->dx[0] + i * area, v->dy + i * area, v->x[1][i], area, l->add[0]);
		if (!v->dx[1])
			continue;
		float sum = runs_dot(v->dy + i * area, v->x[0] + i * area, area);
		v->dx[1][i] = l->add[1] ? v->dx[1][i] + sum : sum;
	}
}

static void
multiply_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t n = p->n * l->out.size;

	if (by_channel(l)) {
		multiply_channels_back(l, &v, p->n);
		return;
	}
	for (int i = 0; i < 2; i++)
		if (v.dx[i])
			product(p->team, v.dx[i], v.dy, v.x[1 - i], n, l->add[i]);
}

const struct backend_layer join_multiply_passes = {
    .forward = multiply_forward, .backward = multiply_backward};
