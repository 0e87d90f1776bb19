#include "cpu_spatial.h"

#include <string.h>

#include "cpu.h"
#include "lanes.h"
#include "norm_sums.h"
#include "num.h"
#include "runs.h"

/*
 * Convolutions in groups, of one channel each (depthwise) or more. Rows of padded planes are the unit: each element of a kernel adds a
 * multiple of one row to another.
 *
 *   y       bias, then input channels of the group, kernel rows, kernel columns, ascending
 *   dx      output channels of the group, output rows, kernel rows, kernel columns, ascending
 *   weight  examples ascending; within one: output rows ascending into sixteen lanes (lanes.h), folded
 */
struct shape {
	size_t height, width; /* of a padded plane */
	size_t in, out; /* channels of a group */
	size_t kernel; /* its elements */
};

static struct shape
shape_of(const struct layer *l)
{
	const struct layer_spec *s = &l->spec;

	return (struct shape){.height = l->in[0].h + 2 * (size_t)s->padding[0],
	    .width = l->in[0].w + 2 * (size_t)s->padding[1],
	    .in = l->in[0].c / s->groups,
	    .out = s->out / s->groups,
	    .kernel = (size_t)s->kernel[0] * s->kernel[1]};
}

/* Padded planes of a group's input and of its gradient, the gradients of all weights and biases, a row. */
static enum err
need(struct layer *l, struct why *why)
{
	const struct shape s = shape_of(l);
	size_t planes, weights = l->param[PARAM_WEIGHT].count;

	if (!num_mul(s.height, s.width, &planes) || !num_mul(planes, 2 * s.in, &planes) ||
	    !num_add(planes, weights, &planes) || !num_add(planes, l->spec.out, &planes) ||
	    !num_add(planes, l->out.w, &l->work))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", l->spec.name);
	return ERR_OK;
}

static void
pad(const struct layer *l, const struct shape *s, const float *x, float *planes)
{
	uint32_t h = l->in[0].h, w = l->in[0].w;

	memset(planes, 0, s->in * s->height * s->width * sizeof(float));
	for (size_t c = 0; c < s->in; c++)
		for (size_t y = 0; y < h; y++)
			memcpy(planes + (c * s->height + y + l->spec.padding[0]) * s->width +
				l->spec.padding[1],
			    x + (c * h + y) * w, w * sizeof(float));
}

CPU_CLONES static void
add_row(float *y, const float *x, size_t n, size_t stride, float w)
{
	if (stride == 1)
		for (size_t i = 0; i < n; i++)
			y[i] += w * x[i];
	else
		for (size_t i = 0; i < n; i++)
			y[i] += w * x[i * stride];
}

CPU_CLONES static void
spread_row(float *x, const float *y, size_t n, size_t stride, float w)
{
	if (stride == 1)
		for (size_t i = 0; i < n; i++)
			x[i] += w * y[i];
	else
		for (size_t i = 0; i < n; i++)
			x[i * stride] += w * y[i];
}

static const float *
row_under(const struct layer *l, const struct shape *s, const float *planes, size_t c, size_t y,
    size_t ky)
{
	return planes + (c * s->height + y * l->spec.stride[0] + ky) * s->width;
}

/* One channel of output of one example. */
static void
forward_plane(const struct layer *l, const struct shape *s, const float *planes,
    const float *weight, float *y)
{
	const uint32_t *kernel = l->spec.kernel;
	size_t stride = l->spec.stride[1], width = l->out.w;

	for (size_t c = 0; c < s->in; c++)
		for (size_t r = 0; r < l->out.h; r++)
			for (size_t ky = 0; ky < kernel[0]; ky++) {
				const float *x = row_under(l, s, planes, c, r, ky);
				const float *w = weight + c * s->kernel + ky * kernel[1];
				for (size_t kx = 0; kx < kernel[1]; kx++)
					add_row(y + r * width, x + kx, width, stride, w[kx]);
			}
}

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	const struct shape s = shape_of(l);
	size_t area = (size_t)l->out.h * l->out.w, in = (size_t)l->in[0].h * l->in[0].w;

	for (size_t i = 0; i < (size_t)p->n * l->spec.groups; i++) {
		size_t first = i % l->spec.groups * s.out;
		pad(l, &s, v.x[0] + i * s.in * in, v.work);
		for (size_t o = 0; o < s.out; o++) {
			float *y = v.y + (i * s.out + o) * area;
			for (size_t k = 0; k < area; k++)
				y[k] = v.bias ? v.bias[first + o] : 0;
			forward_plane(l, &s, v.work, v.weight + (first + o) * s.in * s.kernel, y);
		}
	}
}

CPU_CLONES static void
dot_rows(lanes16_any *sum, const float *dy, const float *x, size_t n, size_t stride)
{
	size_t whole = n - n % LANES_SIZE;
	float last[LANES_SIZE] = {0};
	lanes16 all = *sum;

	if (stride == 1)
		for (size_t i = 0; i < whole; i += LANES_SIZE)
			all += LANES_AT(dy + i) * LANES_AT(x + i);
	else
		for (size_t i = 0; i < whole; i += LANES_SIZE) {
			float some[LANES_SIZE];
			for (size_t k = 0; k < LANES_SIZE; k++)
				some[k] = x[(i + k) * stride];
			all += LANES_AT(dy + i) * LANES_AT(some);
		}
	for (size_t i = whole; i < n; i++)
		last[i - whole] = dy[i] * x[i * stride];
	*sum = all + LANES_AT(last);
}

static void
weight_plane(const struct layer *l, const struct shape *s, const float *planes, const float *dy,
    float *gradient)
{
	const uint32_t *kernel = l->spec.kernel;

	for (size_t c = 0; c < s->in; c++)
		for (size_t ky = 0; ky < kernel[0]; ky++)
			for (size_t kx = 0; kx < kernel[1]; kx++) {
				float lanes[LANES_SIZE] = {0};
				for (size_t r = 0; r < l->out.h; r++)
					dot_rows(&LANES_TO(lanes), dy + r * l->out.w,
					    row_under(l, s, planes, c, r, ky) + kx, l->out.w,
					    l->spec.stride[1]);
				lanes16 all = LANES_AT(lanes);
				gradient[c * s->kernel + ky * kernel[1] + kx] += lanes_fold(&all);
			}
}

static void
back_plane(const struct layer *l, const struct shape *s, const float *weight, const float *dy,
    float *planes)
{
	const uint32_t *kernel = l->spec.kernel;

	for (size_t c = 0; c < s->in; c++)
		for (size_t r = 0; r < l->out.h; r++)
			for (size_t ky = 0; ky < kernel[0]; ky++) {
				size_t at = (c * s->height + r * l->spec.stride[0] + ky) * s->width;
				const float *w = weight + c * s->kernel + ky * kernel[1];
				for (size_t kx = 0; kx < kernel[1]; kx++)
					spread_row(planes + at + kx, dy + r * l->out.w, l->out.w,
					    l->spec.stride[1], w[kx]);
			}
}

/* Out of the middle of the padded planes. */
static void
unpad(const struct layer *l, const struct shape *s, const float *planes, float *dx, bool add)
{
	uint32_t h = l->in[0].h, w = l->in[0].w;

	for (size_t c = 0; c < s->in; c++)
		for (size_t y = 0; y < h; y++, dx += w) {
			const float *from = planes +
			    (c * s->height + y + l->spec.padding[0]) * s->width +
			    l->spec.padding[1];
			runs_give(dx, from, w, add);
		}
}

/* One group of one example. */
static void
backward_group(const struct layer *l, const struct shape *s, const struct operands *v, size_t i,
    float *gradient, float *bias)
{
	size_t area = (size_t)l->out.h * l->out.w, in = (size_t)l->in[0].h * l->in[0].w;
	size_t first = i % l->spec.groups * s->out, planes = s->in * s->height * s->width;

	pad(l, s, v->x[0] + i * s->in * in, v->work);
	if (v->dx[0])
		memset(v->work + planes, 0, planes * sizeof(float));
	for (size_t o = 0; o < s->out; o++) {
		const float *dy = v->dy + (i * s->out + o) * area;
		size_t at = (first + o) * s->in * s->kernel;
		weight_plane(l, s, v->work, dy, gradient + at);
		struct norm_sums sum = {0};
		norm_sums_add(&sum, dy, area);
		bias[first + o] += norm_sums_first(&sum);
		if (v->dx[0])
			back_plane(l, s, v->weight + at, dy, v->work + planes);
	}
	if (v->dx[0])
		unpad(l, s, v->work + planes, v->dx[0] + i * s->in * in, l->add[0]);
}

static void
backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	const struct shape s = shape_of(l);
	size_t weights = l->param[PARAM_WEIGHT].count;
	float *gradient = v.work + 2 * s.in * s.height * s.width, *bias = gradient + weights;

	memset(gradient, 0, (weights + l->spec.out) * sizeof(float));
	for (size_t i = 0; i < (size_t)p->n * l->spec.groups; i++)
		backward_group(l, &s, &v, i, gradient, bias);
	operands_give(l, p, PARAM_WEIGHT, gradient);
	if (v.bias)
		operands_give(l, p, PARAM_BIAS, bias);
}

const struct backend_layer grouped_passes = {
    .need = need, .forward = forward, .backward = backward};
