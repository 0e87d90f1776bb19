#include "conv.h"

#include <string.h>

#include "cpu.h"
#include "gemm.h"
#include "num.h"
#include "sgd.h"

#define LANES 16 /* floats that copies may run past their end */
#define SLAB_FLOATS ((size_t)1 << 16)

/* Some input channels and some output rows of one example. */
struct slab {
	uint32_t channel, channels, row, rows;
};

/* Where the parts of the workspace begin, in floats. */
struct plan {
	uint32_t height, width; /* of a padded plane */
	uint32_t channels, rows; /* of a full slab */
	size_t area; /* kh * kw */
	size_t planes, slab, gradient, end;
};

/* Sizes that shape() has checked. */
static struct plan
plan(const struct layer *l)
{
	const struct layer_spec *s = &l->spec;
	struct plan p = {
	    .height = l->in[0].h + 2 * s->padding[0], .width = l->in[0].w + 2 * s->padding[1]};
	p.area = (size_t)s->kernel[0] * s->kernel[1];
	size_t row = p.area * l->out.w, channel = row * l->out.h;

	p.channels = channel < SLAB_FLOATS ? (uint32_t)(SLAB_FLOATS / channel) : 1;
	p.channels = p.channels < l->in[0].c ? p.channels : l->in[0].c;
	p.rows = row < SLAB_FLOATS ? (uint32_t)(SLAB_FLOATS / row) : 1;
	p.rows = p.rows < l->out.h ? p.rows : l->out.h;
	p.planes = 0;
	p.slab = (size_t)l->in[0].c * p.height * p.width + LANES;
	p.gradient = p.slab + p.channels * p.rows * row + LANES;
	p.end = p.gradient + l->weights + l->biases;
	return p;
}

/* Everything plan() will multiply, checked. */
static bool
fits(const struct layer *l)
{
	const struct layer_spec *s = &l->spec;
	uint64_t h = l->in[0].h + 2 * (uint64_t)s->padding[0],
		 w = l->in[0].w + 2 * (uint64_t)s->padding[1];
	size_t planes, unfolded, sum;

	return h <= UINT32_MAX && w <= UINT32_MAX && num_mul(h, w, &planes) &&
	    num_mul(planes, l->in[0].c, &planes) &&
	    num_mul(s->kernel[0], s->kernel[1], &unfolded) &&
	    num_mul(unfolded, (size_t)l->out.h * l->out.w, &unfolded) &&
	    num_add(planes, unfolded, &sum) && num_add(sum, l->weights, &sum) &&
	    sum <= SIZE_MAX / 16;
}

static enum err
shape(struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	uint64_t h, w;
	enum err e = layer_window(l, &h, &w, why);

	if (e)
		return e;
	e = layer_shape_set(&l->out, s->out, h, w, s->name, why);
	if (e)
		return e;
	if (!num_mul((size_t)s->kernel[0] * s->kernel[1], l->in[0].c, &l->fan_in) ||
	    !num_mul((size_t)s->kernel[0] * s->kernel[1], s->out, &l->fan_out) ||
	    !num_mul(l->fan_in, s->out, &l->weights) || !fits(l))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", s->name);
	l->biases = s->bias ? s->out : 0;
	l->weight_dims = 4;
	l->weight_shape[0] = s->out;
	l->weight_shape[1] = l->in[0].c;
	l->weight_shape[2] = s->kernel[0];
	l->weight_shape[3] = s->kernel[1];
	l->work = plan(l).end;
	return ERR_OK;
}

typedef struct {
	float v[LANES];
} lanes;

/* Copies n floats in whole lanes: up to LANES - 1 more are read and written. */
static inline void
copy_lanes(float *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i += LANES)
		*(lanes *)(void *)(to + i) = *(const lanes *)(const void *)(from + i);
}

/* x, one example, into the middle of planes of zeros. */
static void
pad(const struct layer *l, const struct plan *p, const float *x, float *planes)
{
	uint32_t h = l->in[0].h, w = l->in[0].w;

	memset(planes, 0, p->slab * sizeof(float));
	for (uint32_t c = 0; c < l->in[0].c; c++)
		for (uint32_t y = 0; y < h; y++)
			memcpy(planes +
				((size_t)c * p->height + y + l->spec.padding[0]) * p->width +
				l->spec.padding[1],
			    x + ((size_t)c * h + y) * w, w * sizeof(float));
}

static void
unpad(const struct layer *l, const struct plan *p, const float *planes, float *x, bool add)
{
	uint32_t h = l->in[0].h, w = l->in[0].w;

	for (uint32_t c = 0; c < l->in[0].c; c++)
		for (uint32_t y = 0; y < h; y++, x += w) {
			const float *from = planes +
			    ((size_t)c * p->height + y + l->spec.padding[0]) * p->width +
			    l->spec.padding[1];
			for (uint32_t i = 0; add && i < w; i++)
				x[i] += from[i];
			if (!add)
				memcpy(x, from, w * sizeof(float));
		}
}

/* One row of the slab: the same kernel element under every output. */
CPU_CLONES static void
unfold_row(
    float *to, const float *from, uint32_t rows, uint32_t width, size_t from_row, uint32_t stride)
{
	for (uint32_t y = 0; y < rows; y++, to += width, from += from_row) {
		if (stride == 1)
			copy_lanes(to, from, width);
		else
			for (uint32_t x = 0; x < width; x++)
				to[x] = from[(size_t)x * stride];
	}
}

/* The same way back, adding. */
CPU_CLONES static void
fold_row(
    const float *from, float *to, uint32_t rows, uint32_t width, size_t to_row, uint32_t stride)
{
	for (uint32_t y = 0; y < rows; y++, from += width, to += to_row) {
		if (stride == 1)
			for (uint32_t x = 0; x < width; x++)
				to[x] += from[x];
		else
			for (uint32_t x = 0; x < width; x++)
				to[(size_t)x * stride] += from[x];
	}
}

/* Unfolds planes into the slab, or folds the slab back into the planes. */
static void
walk(const struct layer *l, const struct plan *p, struct slab s, float *planes, float *slab,
    bool fold)
{
	const struct layer_spec *spec = &l->spec;
	size_t width = (size_t)s.rows * l->out.w;

	for (uint32_t c = s.channel; c < s.channel + s.channels; c++)
		for (uint32_t ky = 0; ky < spec->kernel[0]; ky++)
			for (uint32_t kx = 0; kx < spec->kernel[1]; kx++, slab += width) {
				size_t y = (size_t)s.row * spec->stride[0] + ky;
				float *at = planes + ((size_t)c * p->height + y) * p->width + kx;
				size_t step = (size_t)spec->stride[0] * p->width;
				if (fold)
					fold_row(slab, at, s.rows, l->out.w, step, spec->stride[1]);
				else
					unfold_row(
					    slab, at, s.rows, l->out.w, step, spec->stride[1]);
			}
}

/* The slab after s; the first for NULL. Rows run within channels. False after the last. */
static bool
next(const struct layer *l, const struct plan *p, struct slab *s)
{
	s->row += s->rows;
	if (s->row >= l->out.h) {
		s->row = 0;
		s->channel += s->channels;
	}
	s->rows = l->out.h - s->row < p->rows ? l->out.h - s->row : p->rows;
	uint32_t left = l->in[0].c - s->channel;
	s->channels = left < p->channels ? left : p->channels;
	return s->channel < l->in[0].c;
}

static void
forward_example(const struct layer *l, const struct plan *p, float *work, const float *x, float *y)
{
	size_t out = (size_t)l->out.h * l->out.w;

	pad(l, p, x, work + p->planes);
	for (uint32_t o = 0; o < l->out.c; o++)
		for (size_t i = 0; l->bias && i < out; i++)
			y[o * out + i] = l->bias[o];
	for (struct slab s = {0}; next(l, p, &s);) {
		walk(l, p, s, work + p->planes, work + p->slab, false);
		gemm_outer(&(struct gemm){
		    .m = l->out.c,
		    .n = (size_t)s.rows * l->out.w,
		    .k = s.channels * p->area,
		    .a = l->weight + s.channel * p->area,
		    .a_row = l->fan_in,
		    .a_col = 1,
		    .b = work + p->slab,
		    .b_row = (size_t)s.rows * l->out.w,
		    .c = y + (size_t)s.row * l->out.w,
		    .c_row = out,
		    .alpha = 1,
		    .beta = l->bias || s.channel > 0 ? 1 : 0,
		});
	}
}

static void
forward(struct layer *l, const struct layer_pass *pass)
{
	struct plan p = plan(l);

	for (size_t i = 0; i < pass->n; i++)
		forward_example(
		    l, &p, pass->work, l->x[0] + i * l->in[0].size, l->y + i * l->out.size);
}

/* dx: per slab, the gradient of the unfolded input, folded back. */
static void
backward_input(const struct layer *l, const struct plan *p, float *work, const float *dy, float *dx)
{
	size_t out = (size_t)l->out.h * l->out.w;

	memset(work + p->planes, 0, p->slab * sizeof(float));
	for (struct slab s = {0}; next(l, p, &s);) {
		gemm_outer(&(struct gemm){
		    .m = s.channels * p->area,
		    .n = (size_t)s.rows * l->out.w,
		    .k = l->out.c,
		    .a = l->weight + s.channel * p->area,
		    .a_row = 1,
		    .a_col = l->fan_in,
		    .b = dy + (size_t)s.row * l->out.w,
		    .b_row = out,
		    .c = work + p->slab,
		    .c_row = (size_t)s.rows * l->out.w,
		    .alpha = 1,
		    .beta = 0,
		});
		walk(l, p, s, work + p->planes, work + p->slab, true);
	}
	unpad(l, p, work + p->planes, dx, l->add[0]);
}

/* Adds one example's part to the gradient of the weights. */
static void
backward_weight(
    const struct layer *l, const struct plan *p, float *work, const float *x, const float *dy)
{
	size_t out = (size_t)l->out.h * l->out.w;

	pad(l, p, x, work + p->planes);
	for (struct slab s = {0}; next(l, p, &s);) {
		walk(l, p, s, work + p->planes, work + p->slab, false);
		gemm_dot(&(struct gemm){
		    .m = l->out.c,
		    .n = s.channels * p->area,
		    .k = (size_t)s.rows * l->out.w,
		    .a = dy + (size_t)s.row * l->out.w,
		    .a_row = out,
		    .a_col = 1,
		    .b = work + p->slab,
		    .b_row = (size_t)s.rows * l->out.w,
		    .c = work + p->gradient + s.channel * p->area,
		    .c_row = l->fan_in,
		    .alpha = 1,
		    .beta = 1,
		});
	}
}

/* Sum of each channel; sixteen partial sums, so that the order does not depend on the compiler. */
CPU_CLONES static void
add_channels(float *sum, const float *dy, size_t channels, size_t area)
{
	for (size_t c = 0; c < channels; c++, dy += area) {
		float part[LANES] = {0};
		for (size_t i = 0; i + LANES <= area; i += LANES)
			for (size_t k = 0; k < LANES; k++)
				part[k] += dy[i + k];
		for (size_t i = area - area % LANES; i < area; i++)
			part[i % LANES] += dy[i];
		for (size_t k = 1; k < LANES; k++)
			part[0] += part[k];
		sum[c] += part[0];
	}
}

/* All inputs' gradients come before the weights change. */
static void
backward(struct layer *l, const struct layer_pass *pass)
{
	struct plan p = plan(l);
	float *gradient = pass->work + p.gradient, *bias = gradient + l->weights;
	size_t in = l->in[0].size, out = l->out.size;

	memset(gradient, 0, (l->weights + l->biases) * sizeof(float));
	for (size_t i = 0; i < pass->n; i++) {
		if (l->dx[0])
			backward_input(l, &p, pass->work, l->dy + i * out, l->dx[0] + i * in);
		backward_weight(l, &p, pass->work, l->x[0] + i * in, l->dy + i * out);
		if (l->bias)
			add_channels(bias, l->dy + i * out, l->out.c, (size_t)l->out.h * l->out.w);
	}
	sgd_apply(pass->sgd, l->weight_at, gradient, l->weights);
	if (l->bias)
		sgd_apply(pass->sgd, l->bias_at, bias, l->biases);
}

const struct layer_ops conv_ops = {.shape = shape, .forward = forward, .backward = backward};
