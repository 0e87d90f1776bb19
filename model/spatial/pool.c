#include "cpu_spatial.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backend.h"
#include "layer.h"
#include "net_spec.h"
#include "norm_sums.h"
#include "operands.h"
#include "team.h"

static bool
is_plain2(const struct layer_spec *s)
{
	return s->kernel[0] == 2 && s->kernel[1] == 2 && s->stride[0] == 2 && s->stride[1] == 2 &&
	    s->padding[0] == 0 && s->padding[1] == 0;
}

static enum err
max_need(struct layer *l, struct why *why)
{
	if ((uint64_t)l->in[0].h * l->in[0].w > UINT32_MAX)
		return err_set(
		    why, ERR_LIMIT, "layer \"%s\": its input is too large", l->spec.name);
	l->saved = l->out.size * sizeof(uint32_t);
	l->work_lane = is_plain2(&l->spec) ? 4 * (size_t)l->out.h * l->out.w : 0;
	return ERR_OK;
}

/* A pass, by planes of a batch. */
struct pass {
	const struct layer *l;
	const struct backend_pass *p;
	struct operands v;
	size_t in, out; /* elements of a plane */
};

/* Of a plane's elements, in and out, in multiply-adds; and what a plane costs beside them. */
#define ELEMENT 30.0
#define PLANE 1000.0

static void
run(const struct layer *l, const struct backend_pass *p,
    void (*fn)(void *arg, size_t first, size_t count, unsigned lane))
{
	struct pass c = {
	    l, p, operands_of(l, p), l->in[0].size / l->in[0].c, l->out.size / l->out.c};

	team_share(p->team,
	    &(struct team_work){.n = (size_t)p->n * l->out.c,
		.least = 1,
		.each = PLANE + ELEMENT * (double)(c.in + c.out),
		.fn = fn,
		.arg = &c});
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

/*
 * The usual case, 2 x 2 without overlap, in two steps: the larger of each pair of neighbours, then the larger of two rows.
 * The second wins if it is larger, or NaN when the first is not. Compilers make branches of this, and random data make
 * branches slow; so it is written with vectors and masks.
 */
typedef float vec4 __attribute__((vector_size(16)));
typedef float vec4_any __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t int4 __attribute__((vector_size(16)));
typedef int32_t int4_any __attribute__((vector_size(16), aligned(4), may_alias));

static inline vec4
load(const float *p)
{
	return *(const vec4_any *)p;
}

/* Stores the winners of a and b, and which they are. */
static inline void
choose(vec4 a, vec4 b, int4 a_index, int4 b_index, float *best, uint32_t *index)
{
	int4 second = ~(b <= a) & (a == a);

	*(int4_any *)(void *)best = ((int4)b & second) | ((int4)a & ~second);
	*(int4_any *)index = (b_index & second) | (a_index & ~second);
}

/* The same for n < 4 elements. */
static inline void
choose_some(const float *a, const float *b, size_t step, const uint32_t *a_index,
    const uint32_t *b_index, size_t n, float *best, uint32_t *index)
{
	vec4 x = {0}, y = {0};
	int4 i = {0}, k = {0};
	float some[4];
	uint32_t which[4];

	for (size_t j = 0; j < n; j++) {
		x[j] = a[j * step];
		y[j] = b[j * step];
		i[j] = (int32_t)a_index[j];
		k[j] = (int32_t)b_index[j];
	}
	choose(x, y, i, k, some, which);
	memcpy(best, some, n * sizeof(*best));
	memcpy(index, which, n * sizeof(*index));
}

static void
max_pairs(const float *x, uint32_t first, uint32_t n, float *best, uint32_t *index)
{
	int4 at = (int4){0, 2, 4, 6} + (int32_t)first;
	uint32_t i = 0, left[4], right[4];

	for (; i + 4 <= n; i += 4, at += 8) {
		vec4 low = load(x + 2 * i), high = load(x + 2 * i + 4);
		choose(__builtin_shufflevector(low, high, 0, 2, 4, 6),
		    __builtin_shufflevector(low, high, 1, 3, 5, 7), at, at + 1, best + i,
		    index + i);
	}
	for (uint32_t k = 0; k < 4; k++) {
		left[k] = first + 2 * (i + k);
		right[k] = left[k] + 1;
	}
	choose_some(x + 2 * i, x + 2 * i + 1, 2, left, right, n - i, best + i, index + i);
}

static void
max_rows(const float *best, const uint32_t *index, uint32_t n, float *y, uint32_t *to)
{
	uint32_t i = 0;

	for (; i + 4 <= n; i += 4)
		choose(load(best + i), load(best + n + i), *(const int4_any *)(index + i),
		    *(const int4_any *)(index + n + i), y + i, to + i);
	choose_some(best + i, best + n + i, 1, index + i, index + n + i, n - i, y + i, to + i);
}

/* work: twice as many elements as there are pairs. Rows of even width follow each other without a gap. */
static void
max_plane2(const struct layer *l, const float *x, float *y, uint32_t *to, float *work)
{
	uint32_t h = l->out.h, w = l->out.w, width = l->in[0].w;
	bool even = width == 2 * w;
	uint32_t stretches = even ? 1 : 2 * h, pairs = even ? 2 * h * w : w;
	uint32_t *index = (uint32_t *)(void *)(work + 2 * (size_t)h * w);

	for (uint32_t i = 0; i < stretches; i++)
		max_pairs(x + i * width, i * width, pairs, work + i * w, index + i * w);
	for (uint32_t i = 0; i < h; i++)
		max_rows(work + 2 * i * w, index + 2 * i * w, w, y + i * w, to + i * w);
}

static void
max_planes(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;
	uint32_t *index = c->v.kept;
	bool plain = index && is_plain2(&c->l->spec);
	float *work = operands_lane(c->l, c->p, lane);

	for (size_t i = first; i < first + count; i++) {
		const float *x = c->v.x[0] + i * c->in;
		uint32_t *to = index ? index + i * c->out : NULL;
		if (plain)
			max_plane2(c->l, x, c->v.y + i * c->out, to, work);
		else
			max_plane(c->l, x, c->v.y + i * c->out, to);
	}
}

static void
max_forward(const struct layer *l, const struct backend_pass *p)
{
	run(l, p, max_planes);
}

/* Where dx of these planes begins: zeros, unless it is added to. */
static float *
begin_back(const struct pass *c, size_t first, size_t count)
{
	float *dx = c->v.dx[0] + first * c->in;

	if (!c->l->add[0])
		memset(dx, 0, count * c->in * sizeof(float));
	return dx;
}

static void
max_planes_back(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;
	const uint32_t *index = (const uint32_t *)c->v.kept + first * c->out;
	const float *dy = c->v.dy + first * c->out;
	float *dx = begin_back(c, first, count);

	(void)lane;
	for (size_t i = 0; i < count; i++, dx += c->in)
		for (size_t j = 0; j < c->out; j++)
			dx[*index++] += *dy++;
}

static void
max_backward(const struct layer *l, const struct backend_pass *p)
{
	if (operands_of(l, p).dx[0])
		run(l, p, max_planes_back);
}

const struct backend_layer pool_max_passes = {
    .need = max_need,
    .forward = max_forward,
    .backward = max_backward,
};

static float
area(const struct layer *l)
{
	return (float)l->spec.kernel[0] * (float)l->spec.kernel[1];
}

static void
average_planes(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *o = arg;
	const struct layer *l = o->l;
	float *y = o->v.y + first * o->out, scale = 1 / area(l);

	(void)lane;
	for (size_t i = first; i < first + count; i++)
		for (uint32_t r = 0; r < l->out.h; r++)
			for (uint32_t c = 0; c < l->out.w; c++) {
				struct span ys = window(l, 0, r), xs = window(l, 1, c);
				float sum = 0;
				for (uint32_t a = ys.from; a < ys.to; a++)
					for (uint32_t b = xs.from; b < xs.to; b++)
						sum += o->v.x[0][i * o->in +
						    (size_t)a * l->in[0].w + b];
				*y++ = sum * scale;
			}
}

static void
average_forward(const struct layer *l, const struct backend_pass *p)
{
	run(l, p, average_planes);
}

static void
average_planes_back(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *o = arg;
	const struct layer *l = o->l;
	const float *dy = o->v.dy + first * o->out;
	float *dx = begin_back(o, first, count), scale = 1 / area(l);

	(void)lane;
	for (size_t i = 0; i < count; i++)
		for (uint32_t r = 0; r < l->out.h; r++)
			for (uint32_t c = 0; c < l->out.w; c++) {
				struct span ys = window(l, 0, r), xs = window(l, 1, c);
				float g = *dy++ * scale;
				for (uint32_t a = ys.from; a < ys.to; a++)
					for (uint32_t b = xs.from; b < xs.to; b++)
						dx[i * o->in + (size_t)a * l->in[0].w + b] += g;
			}
}

static void
average_backward(const struct layer *l, const struct backend_pass *p)
{
	if (operands_of(l, p).dx[0])
		run(l, p, average_planes_back);
}

const struct backend_layer pool_average_passes = {
    .forward = average_forward, .backward = average_backward};

/* The mean of each channel: elements ascending in sixteen lanes. */
static void
global_planes(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;

	(void)lane;
	for (size_t i = first; i < first + count; i++) {
		struct norm_sums s = {0};
		norm_sums_add(&s, c->v.x[0] + i * c->in, c->in);
		c->v.y[i] = norm_sums_first(&s) / (float)c->in;
	}
}

static void
global_forward(const struct layer *l, const struct backend_pass *p)
{
	run(l, p, global_planes);
}

static void
global_planes_back(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;

	(void)lane;
	for (size_t i = first; i < first + count; i++) {
		float g = c->v.dy[i] / (float)c->in, *dx = c->v.dx[0] + i * c->in;
		for (size_t k = 0; k < c->in; k++)
			dx[k] = c->l->add[0] ? dx[k] + g : g;
	}
}

static void
global_backward(const struct layer *l, const struct backend_pass *p)
{
	if (operands_of(l, p).dx[0])
		run(l, p, global_planes_back);
}

const struct backend_layer pool_global_passes = {
    .forward = global_forward, .backward = global_backward};
