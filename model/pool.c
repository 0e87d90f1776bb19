#include "pool.h"

#include <math.h>
#include <string.h>

#include "cpu.h"

static enum err
shape(struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	uint64_t h, w;
	enum err e = layer_window(l, &h, &w, why);

	if (e)
		return e;
	if (s->padding[0] > s->kernel[0] / 2 || s->padding[1] > s->kernel[1] / 2)
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": the padding is more than half the kernel", s->name);
	return layer_shape_set(&l->out, l->in[0].c, h, w, s->name, why);
}

static enum err
max_shape(struct layer *l, struct why *why)
{
	enum err e = shape(l, why);

	if (e)
		return e;
	if ((uint64_t)l->in[0].h * l->in[0].w > UINT32_MAX)
		return err_set(
		    why, ERR_LIMIT, "layer \"%s\": its input is too large", l->spec.name);
	l->saved = l->out.size * sizeof(uint32_t);
	return ERR_OK;
}

/* The part of a window that lies within the plane: [from, to). */
struct span {
	uint32_t from, to;
};

static struct span
window(const struct layer *l, int axis, uint32_t index)
{
	const struct layer_spec *s = &l->spec;
	uint64_t extent = axis == 0 ? l->in[0].h : l->in[0].w, pad = s->padding[axis];
	uint64_t from = (uint64_t)index * s->stride[axis], to = from + s->kernel[axis];

	from = from > pad ? from - pad : 0;
	to = to > pad ? to - pad : 0;
	return (struct span){(uint32_t)from, (uint32_t)(to < extent ? to : extent)};
}

static uint32_t
largest(const float *plane, uint32_t width, struct span ys, struct span xs)
{
	uint32_t best = ys.from * width + xs.from;

	for (uint32_t y = ys.from; y < ys.to; y++)
		for (uint32_t x = xs.from; x < xs.to; x++) {
			uint32_t at = y * width + x;
			if (plane[at] > plane[best] || isnan(plane[at]))
				best = at;
		}
	return best;
}

static void
max_plane(const struct layer *l, const float *x, float *y, uint32_t *index)
{
	for (uint32_t i = 0; i < l->out.h; i++) {
		struct span ys = window(l, 0, i);
		for (uint32_t j = 0; j < l->out.w; j++) {
			uint32_t at = largest(x, l->in[0].w, ys, window(l, 1, j));
			*y++ = x[at];
			if (index)
				*index++ = at;
		}
	}
}

/* The usual case, 2 x 2 without overlap, without a branch. */
CPU_CLONES static void
max_row2(const float *x, uint32_t width, uint32_t at, float *y, uint32_t *index, uint32_t n)
{
	for (uint32_t j = 0; j < n; j++) {
		uint32_t k = at + 2 * j, best = k;
		float a = x[k], b = x[k + 1], c = x[k + width], d = x[k + width + 1];
		best = b > a || isnan(b) ? k + 1 : best;
		a = b > a || isnan(b) ? b : a;
		best = c > a || isnan(c) ? k + width : best;
		a = c > a || isnan(c) ? c : a;
		best = d > a || isnan(d) ? k + width + 1 : best;
		a = d > a || isnan(d) ? d : a;
		y[j] = a;
		index[j] = best;
	}
}

static bool
is_plain2(const struct layer_spec *s)
{
	return s->kernel[0] == 2 && s->kernel[1] == 2 && s->stride[0] == 2 && s->stride[1] == 2 &&
	    s->padding[0] == 0 && s->padding[1] == 0;
}

static void
max_forward(struct layer *l, const struct layer_pass *p)
{
	size_t in = (size_t)l->in[0].h * l->in[0].w, out = (size_t)l->out.h * l->out.w;
	uint32_t *index = l->kept;
	bool plain = index && is_plain2(&l->spec);

	for (size_t i = 0; i < (size_t)p->n * l->out.c; i++) {
		const float *x = l->x[0] + i * in;
		float *y = l->y + i * out;
		uint32_t *to = index ? index + i * out : NULL;
		if (!plain)
			max_plane(l, x, y, to);
		for (uint32_t r = 0; plain && r < l->out.h; r++)
			max_row2(x, l->in[0].w, 2 * r * l->in[0].w, y + r * l->out.w,
			    to + r * l->out.w, l->out.w);
	}
}

static void
max_backward(struct layer *l, const struct layer_pass *p)
{
	size_t in = (size_t)l->in[0].h * l->in[0].w, out = (size_t)l->out.h * l->out.w;
	const uint32_t *index = l->kept;

	if (!l->dx[0])
		return;
	if (!l->add[0])
		memset(l->dx[0], 0, p->n * l->in[0].size * sizeof(float));
	for (size_t i = 0; i < (size_t)p->n * l->out.c; i++)
		for (size_t j = 0; j < out; j++)
			l->dx[0][i * in + index[i * out + j]] += l->dy[i * out + j];
}

const struct layer_ops pool_max_ops = {
    .shape = max_shape,
    .forward = max_forward,
    .backward = max_backward,
};

static float
area(const struct layer *l)
{
	return (float)l->spec.kernel[0] * (float)l->spec.kernel[1];
}

static void
average_forward(struct layer *l, const struct layer_pass *p)
{
	size_t in = (size_t)l->in[0].h * l->in[0].w;
	float *y = l->y, scale = 1 / area(l);

	for (size_t i = 0; i < (size_t)p->n * l->out.c; i++)
		for (uint32_t r = 0; r < l->out.h; r++)
			for (uint32_t c = 0; c < l->out.w; c++) {
				struct span ys = window(l, 0, r), xs = window(l, 1, c);
				float sum = 0;
				for (uint32_t a = ys.from; a < ys.to; a++)
					for (uint32_t b = xs.from; b < xs.to; b++)
						sum += l->x[0][i * in + (size_t)a * l->in[0].w + b];
				*y++ = sum * scale;
			}
}

static void
average_backward(struct layer *l, const struct layer_pass *p)
{
	size_t in = (size_t)l->in[0].h * l->in[0].w;
	const float *dy = l->dy;
	float scale = 1 / area(l);

	if (!l->dx[0])
		return;
	if (!l->add[0])
		memset(l->dx[0], 0, p->n * l->in[0].size * sizeof(float));
	for (size_t i = 0; i < (size_t)p->n * l->out.c; i++)
		for (uint32_t r = 0; r < l->out.h; r++)
			for (uint32_t c = 0; c < l->out.w; c++) {
				struct span ys = window(l, 0, r), xs = window(l, 1, c);
				float g = *dy++ * scale;
				for (uint32_t a = ys.from; a < ys.to; a++)
					for (uint32_t b = xs.from; b < xs.to; b++)
						l->dx[0][i * in + (size_t)a * l->in[0].w + b] += g;
			}
}

const struct layer_ops pool_average_ops = {
    .shape = shape,
    .forward = average_forward,
    .backward = average_backward,
};
