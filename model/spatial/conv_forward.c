#include "conv_forward.h"

#include <string.h>

#include "conv_dense.h"
#include "cpu.h"
#include "gemm.h"
#include "num.h"
#include "planes.h"
#include "team.h"

#define LANES GEMM_PAST /* floats that copies and kernels may run past their end */
#define SLAB_FLOATS ((size_t)1 << 16) /* part of the order of sums */
/* Of examples side by side: floats that are laid out at a time, and of their sums. */
#define JOINED_FLOATS ((size_t)1 << 16)
#define SUMS_FLOATS ((size_t)1 << 18)
/* Columns that fill the widest tile. One example of fewer would read all weights for itself. */
#define COLUMNS 64

/* Some input channels and some output rows of one example. */
struct slab {
	uint32_t channel, channels, row, rows;
};

static bool
plan_slabs(struct conv_forward *f, const struct layer *l, size_t *floats)
{
	size_t row, channel, slab;

	if (!num_mul(f->kernel_area, l->out.w, &row) || !num_mul(row, l->out.h, &channel))
		return false;
	f->channels = channel < SLAB_FLOATS ? (uint32_t)(SLAB_FLOATS / channel) : 1;
	f->channels = f->channels < l->in[0].c ? f->channels : l->in[0].c;
	f->rows = row < SLAB_FLOATS ? (uint32_t)(SLAB_FLOATS / row) : 1;
	f->rows = f->rows < l->out.h ? f->rows : l->out.h;
	return num_mul(f->channels, f->rows, &slab) && num_mul(slab, row, floats);
}

/* Behind each row there is room for what a copy of whole vectors runs past it. */
static void
plan_joined(struct conv_forward *f, const struct layer *l, size_t *floats)
{
	size_t area = (size_t)l->out.h * l->out.w, pitch = COLUMNS / area * area + LANES;

	f->joined = 1;
	if (area > COLUMNS / 2 || f->kernel_area > JOINED_FLOATS / pitch ||
	    l->out.c > SUMS_FLOATS / pitch)
		return;
	size_t channel = f->kernel_area * pitch, most = JOINED_FLOATS / channel;
	f->joined = COLUMNS / area;
	f->pitch = pitch;
	f->some = most < f->channels ? (uint32_t)most : f->channels;
	*floats = *floats > f->some * channel ? *floats : f->some * channel;
}

bool
conv_forward_plan(struct conv_forward *f, const struct layer *l)
{
	const struct layer_spec *s = &l->spec;
	struct planes_room room = {0, LANES, SIZE_MAX};
	size_t slab;

	*f = (struct conv_forward){
	    .height = l->in[0].h + 2 * (size_t)s->padding[0],
	    .width = l->in[0].w + 2 * (size_t)s->padding[1],
	    .kernel_area = (size_t)s->kernel[0] * s->kernel[1],
	};
	if (!plan_slabs(f, l, &slab))
		return false;
	plan_joined(f, l, &slab);
	if (!planes_take(&room, &f->planes, f->height, f->width, l->in[0].c) ||
	    !planes_take(&room, &f->slab, slab, 1, 1) ||
	    !planes_take(&room, &f->under, f->channels, f->kernel_area, 1) ||
	    !planes_take(&room, &f->sums, f->joined > 1 ? l->out.c : 0, f->pitch, 1))
		return false;
	f->lane = room.end;
	return true;
}

/* Some channels of x, one example, into the middle of planes of zeros. */
static void
pad(const struct layer *l, const struct conv_forward *f, const float *x, uint32_t first,
    uint32_t count, float *planes)
{
	uint32_t h = l->in[0].h, w = l->in[0].w;

	memset(
	    planes + first * f->height * f->width, 0, count * f->height * f->width * sizeof(float));
	for (uint32_t c = first; c < first + count; c++)
		for (uint32_t y = 0; y < h; y++)
			memcpy(planes + (c * f->height + y + l->spec.padding[0]) * f->width +
				l->spec.padding[1],
			    x + ((size_t)c * h + y) * w, w * sizeof(float));
}

typedef struct {
	float v[LANES];
} lanes;

/* One row of the slab: the same kernel element under every output. Whole lanes are copied where the stride allows:
 * what runs past the end of a row is written over by the next. */
CPU_CLONES static void
unfold_row(
    float *to, const float *from, uint32_t rows, uint32_t width, size_t from_row, uint32_t stride)
{
	for (uint32_t y = 0; y < rows; y++, to += width, from += from_row) {
		for (uint32_t x = 0; stride == 1 && x < width; x += LANES)
			*(lanes *)(void *)(to + x) = *(const lanes *)(const void *)(from + x);
		for (uint32_t x = 0; stride != 1 && x < width; x++)
			to[x] = from[(size_t)x * stride];
	}
}

/* From row to row of the slab: `pitch`. */
static void
unfold(const struct layer *l, const struct conv_forward *f, struct slab s, const float *planes,
    float *slab, size_t pitch)
{
	const struct layer_spec *spec = &l->spec;

	for (uint32_t c = s.channel; c < s.channel + s.channels; c++)
		for (uint32_t ky = 0; ky < spec->kernel[0]; ky++)
			for (uint32_t kx = 0; kx < spec->kernel[1]; kx++, slab += pitch) {
				size_t y = (size_t)s.row * spec->stride[0] + ky;
				unfold_row(slab, planes + (c * f->height + y) * f->width + kx,
				    s.rows, l->out.w, spec->stride[0] * f->width, spec->stride[1]);
			}
}

/* The slab after s; the first for zeros. Rows run within channels. False after the last. */
static bool
next(const struct layer *l, const struct conv_forward *f, struct slab *s)
{
	s->row += s->rows;
	if (s->row >= l->out.h) {
		s->row = 0;
		s->channel += s->channels;
	}
	s->rows = l->out.h - s->row < f->rows ? l->out.h - s->row : f->rows;
	uint32_t left = l->in[0].c - s->channel;
	s->channels = left < f->channels ? left : f->channels;
	return s->channel < l->in[0].c;
}

/* A pass over a batch. */
struct pass {
	const struct layer *l;
	const struct backend_pass *pass;
	struct operands v;
	struct conv_forward f;
	bool rows; /* products of long rows as they lie in the planes */
	size_t groups; /* of examples side by side */
};

/* An example that is padded, by rows of output: the sums of the slabs, without slabs. */
static void
forward_rows(const struct pass *c, float *work, float *y)
{
	const struct layer *l = c->l;
	const struct conv_forward *f = &c->f;
	const uint32_t *kernel = l->spec.kernel;
	uint32_t *under = (uint32_t *)(void *)(work + f->under), *to = under;
	size_t rows = l->out.w % GEMM_PAST == 0 ? l->out.h : 1; /* at a time */

	for (size_t i = 0; i < f->channels; i++)
		for (size_t ky = 0; ky < kernel[0]; ky++)
			for (size_t kx = 0; kx < kernel[1]; kx++)
				*to++ = (uint32_t)((i * f->height + ky) * f->width + kx);
	for (size_t first = 0; first < l->in[0].c; first += f->channels)
		for (size_t r = 0; r < l->out.h; r += rows) {
			size_t some = l->in[0].c - first;
			some = some < f->channels ? some : f->channels;
			gemm_outer(&(struct gemm){.m = l->out.c,
			    .n = rows * l->out.w,
			    .k = some * f->kernel_area,
			    .a = c->v.weight + first * f->kernel_area,
			    .a_row = l->param[PARAM_WEIGHT].fan_in,
			    .a_col = 1,
			    .b = work + f->planes +
				(first * f->height + r * l->spec.stride[0]) * f->width,
			    .b_at = under,
			    .b_run = rows > 1 ? l->out.w : 0,
			    .b_skip = l->spec.stride[0] * f->width - l->out.w,
			    .c = y + r * l->out.w,
			    .c_row = (size_t)l->out.h * l->out.w,
			    .alpha = 1,
			    .beta = first > 0 ? 1 : 0,
			    .before = first > 0 ? NULL : c->v.bias,
			    .arithmetic = c->pass->arithmetic});
		}
}

static bool
has_slabs(const struct layer *l, const struct backend_pass *pass)
{
	return gemm_slabs(
	    pass->arithmetic, l->out.c, (size_t)l->out.h * l->out.w, l->param[PARAM_WEIGHT].fan_in);
}

/* Long rows of stride 1 need not be laid out in a slab, if slabs are not OpenBLAS's. */
static bool
has_rows(const struct layer *l, const struct backend_pass *pass)
{
	return !has_slabs(l, pass) && !conv_dense_is_point(l) && l->spec.stride[1] == 1 &&
	    l->out.w >= GEMM_PAST;
}

static void
forward_example(void *arg, size_t index, unsigned lane)
{
	const struct pass *c = arg;
	const struct layer *l = c->l;
	const struct conv_forward *f = &c->f;
	size_t out = (size_t)l->out.h * l->out.w;
	float *work = operands_lane(l, c->pass, lane), *y = c->v.y + index * l->out.size;

	const float *x = c->v.x[0] + index * l->in[0].size;
	bool point = conv_dense_is_point(l);

	if (!point)
		pad(l, f, x, 0, l->in[0].c, work + f->planes);
	if (c->rows) {
		forward_rows(c, work, y);
		return;
	}
	for (struct slab s = {0}; next(l, f, &s);) {
		size_t width = (size_t)s.rows * l->out.w;
		if (!point)
			unfold(l, f, s, work + f->planes, work + f->slab, width);
		gemm_outer(&(struct gemm){
		    .m = l->out.c,
		    .n = width,
		    .k = s.channels * f->kernel_area,
		    .a = c->v.weight + s.channel * f->kernel_area,
		    .a_row = l->param[PARAM_WEIGHT].fan_in,
		    .a_col = 1,
		    .b = point ? x + s.channel * out + (size_t)s.row * l->out.w : work + f->slab,
		    .b_row = point ? out : width,
		    .c = y + (size_t)s.row * l->out.w,
		    .c_row = out,
		    .alpha = 1,
		    .beta = s.channel > 0 ? 1 : 0,
		    .before = s.channel > 0 ? NULL : c->v.bias,
		    .arithmetic = c->pass->arithmetic,
		});
	}
}

/* Some channels of an example, without what stands behind the rows. */
static void
lay_example(const struct pass *c, struct slab s, size_t index, float *work, float *to)
{
	const struct layer *l = c->l;
	const struct conv_forward *f = &c->f;
	const float *x = c->v.x[0] + index * l->in[0].size;
	size_t out = (size_t)l->out.h * l->out.w;

	if (conv_dense_is_point(l)) {
		for (size_t i = 0; i < s.channels; i++)
			memcpy(to + i * f->pitch, x + (s.channel + i) * out, out * sizeof(float));
		return;
	}
	pad(l, f, x, s.channel, s.channels, work + f->planes);
	unfold(l, f, s, work + f->planes, to, f->pitch);
}

/* The sums of a slab, to y of an example. */
static void
give_sums(const struct pass *c, const float *sums, float *y, bool first)
{
	size_t out = (size_t)c->l->out.h * c->l->out.w;

	for (size_t o = 0; o < c->l->out.c; o++, y += out, sums += c->f.pitch) {
		if (!first)
			for (size_t i = 0; i < out; i++)
				y[i] += sums[i];
		else if (c->v.bias)
			for (size_t i = 0; i < out; i++)
				y[i] = c->v.bias[o] + sums[i];
		else
			memcpy(y, sums, out * sizeof(float));
	}
}

static void
forward_group(void *arg, size_t group, unsigned lane)
{
	const struct pass *c = arg;
	const struct layer *l = c->l;
	const struct conv_forward *f = &c->f;
	size_t out = (size_t)l->out.h * l->out.w, n = c->pass->n;
	size_t from = n * group / c->groups, count = n * (group + 1) / c->groups - from;
	float *work = operands_lane(l, c->pass, lane), *sums = work + f->sums;

	for (struct slab s = {0}; next(l, f, &s);) {
		for (uint32_t done = 0; done < s.channels; done += f->some) {
			uint32_t left = s.channels - done;
			struct slab part = {
			    s.channel + done, left < f->some ? left : f->some, 0, l->out.h};
			for (size_t e = 0; e < count; e++)
				lay_example(c, part, from + e, work, work + f->slab + e * out);
			gemm_outer(&(struct gemm){.m = l->out.c,
			    .n = count * out,
			    .k = part.channels * f->kernel_area,
			    .a = c->v.weight + part.channel * f->kernel_area,
			    .a_row = l->param[PARAM_WEIGHT].fan_in,
			    .a_col = 1,
			    .b = work + f->slab,
			    .b_row = f->pitch,
			    .c = sums,
			    .c_row = f->pitch,
			    .alpha = 1,
			    .chain = done > 0,
			    .own = true,
			    .arithmetic = c->pass->arithmetic});
		}
		for (size_t e = 0; e < count; e++)
			give_sums(
			    c, sums + e * out, c->v.y + (from + e) * l->out.size, s.channel == 0);
	}
}

void
conv_forward_run(const struct layer *l, const struct backend_pass *pass, struct team *team)
{
	struct pass c = {.l = l, .pass = pass, .v = operands_of(l, pass)};

	if (!conv_forward_plan(&c.f, l))
		return;
	c.rows = has_rows(l, pass);
	if (c.f.joined == 1 || has_slabs(l, pass)) {
		team_run(team, pass->n, forward_example, &c);
		return;
	}
	c.groups = team_groups(team, pass->n, c.f.joined);
	team_run(team, c.groups, forward_group, &c);
}
