#include "conv_input.h"

#include <string.h>

#include "conv_dense.h"
#include "cpu.h"
#include "num.h"

/* Floats that lie under rows at a time. */
#define SLAB_FLOATS ((size_t)1 << 16)
/* Of sums of examples side by side. */
#define SUMS_FLOATS ((size_t)1 << 18)
/* Rows of dx that are shorter are laid side by side; of multiples of it several are worked out at once where they lie. */
#define WIDE GEMM_PAST
/* Maps that are larger are read where they lie, however short their rows. */
#define SMALL ((size_t)1024)
/* Columns that fill the widest tile. One example of fewer would read all weights for itself. */
#define COLUMNS 64

/* Maps that are small, or whose rows are too short to be read where they lie: not if that took much memory. Behind each row of a slab there
 * is room for what a copy of whole vectors runs past it. */
static void
plan_joined(struct conv_input *d, const struct layer *l, size_t width, size_t area, size_t kernel)
{
	size_t joined = area <= COLUMNS / 2 ? COLUMNS / area : 1, pitch = joined * area + GEMM_PAST;
	size_t most = SUMS_FLOATS / pitch;

	if (conv_dense_is_point(l) ? joined == 1 : width >= WIDE || area > SMALL)
		return;
	if (kernel > SLAB_FLOATS / pitch || d->dy.phases > most || l->in[0].c > most / d->dy.phases)
		return;
	d->joined = joined;
	d->pitch = pitch;
	d->some = SLAB_FLOATS / (kernel * pitch);
	d->some = d->some < l->out.c ? d->some : l->out.c;
}

bool
conv_input_plan(struct conv_input *d, const struct layer *l)
{
	const uint32_t *stride = l->spec.stride;
	size_t kernel = (size_t)l->spec.kernel[0] * l->spec.kernel[1], in = l->in[0].c, area;
	size_t height = (l->in[0].h + stride[0] - 1) / stride[0], result = 0;
	size_t width = (l->in[0].w + stride[1] - 1) / stride[1];
	struct planes_room room = {0, GEMM_PAST, UINT32_MAX};

	*d = (struct conv_input){.dy = planes_of(l), .joined = 1, .rows = 1};
	if (!num_mul(height, width, &area))
		return false;
	plan_joined(d, l, width, area, kernel);
	if (d->some == 0 && width % WIDE == 0) {
		/* About equal parts. */
		size_t fit = d->dy.phases > 1 ? SLAB_FLOATS / (in * width + 1) + 1 : height;
		size_t parts = (height + fit - 1) / fit;
		d->rows = (height + parts - 1) / parts;
	}
	if (d->some > 0)
		result = d->pitch * d->dy.phases;
	else if (d->dy.phases > 1)
		result = d->rows * width;
	/* Points are laid out without planes, or not at all. */
	size_t channels = conv_dense_is_point(l) ? 0 : d->some > 0 ? d->some : l->out.c;
	if (!planes_take(&room, &d->place, channels, kernel, 1) ||
	    !planes_take(&room, &d->planes, d->dy.size[0], d->dy.size[1], channels) ||
	    !planes_take(&room, &d->slab, d->some, kernel, d->pitch) ||
	    !planes_take(&room, &d->result, in, result, 1))
		return false;
	d->lane = room.end;
	return true;
}

void
conv_input_turn(
    const struct layer *l, size_t first, size_t count, const float *weight, float *turned)
{
	for (size_t f = 0; f < planes_of(l).phases; f++) {
		const struct planes_phase p = planes_phase(l, f);
		planes_turn(l, &p,
		    &(struct planes_weights){l->in[0].c, l->out.c, first, count, weight, turned});
		turned += l->in[0].c * l->out.c * p.taps;
	}
}

/* One or some rows of dx at a time, of one example. */
static void
read_phase(const struct conv_input *d, const struct layer *l, const struct planes_phase *p,
    const float *turned, float *dx, float *own)
{
	uint32_t *place = (uint32_t *)(void *)(own + d->place);
	bool direct = d->dy.phases == 1;
	size_t area = (size_t)l->in[0].h * l->in[0].w, width = p->size[1];
	size_t count = l->out.c * p->taps, most = width % WIDE == 0 ? d->rows : 1;

	planes_find(&d->dy, l, p, l->out.c, place);
	for (size_t y = 0; y < p->size[0]; y += most) {
		size_t rows = p->size[0] - y < most ? p->size[0] - y : most, n = rows * width;
		gemm_outer(&(struct gemm){.m = l->in[0].c,
		    .n = n,
		    .k = count,
		    .a = turned,
		    .a_row = count,
		    .a_col = 1,
		    .b = own + d->planes + y * d->dy.size[1],
		    .b_at = place,
		    .b_run = rows == 1 ? 0 : width,
		    .b_skip = d->dy.size[1] - width,
		    .c = direct ? dx + y * width : own + d->result,
		    .c_row = direct ? area : n,
		    .alpha = 1,
		    .beta = direct && l->add[0] ? 1 : 0,
		    .arithmetic = d->arithmetic});
		for (size_t c = 0; !direct && c < l->in[0].c; c++)
			planes_give(l, p, y, rows, own + d->result + c * n, width, dx + c * area);
	}
}

static void
read_planes(const struct conv_input *d, const struct layer *l, const float *turned, const float *dy,
    float *dx, float *own)
{
	memset(own + d->planes, 0, l->out.c * d->dy.apart * sizeof(float));
	planes_fill(&d->dy, l, l->out.c, dy, own + d->planes);
	for (size_t f = 0; f < d->dy.phases; f++) {
		const struct planes_phase p = planes_phase(l, f);
		read_phase(d, l, &p, turned, dx, own);
		turned += l->in[0].c * l->out.c * p.taps;
	}
}

/* A kernel of one element is a product of matrices as they lie. Of mixed networks OpenBLAS has no product of the way back. */
static void
read_points(enum gemm_arithmetic how, const struct layer *l, const float *weight, const float *dy,
    float *dx)
{
	size_t area = (size_t)l->in[0].h * l->in[0].w;

	gemm_outer(&(struct gemm){.m = l->in[0].c,
	    .n = area,
	    .k = l->out.c,
	    .a = weight,
	    .a_row = 1,
	    .a_col = l->in[0].c,
	    .b = dy,
	    .b_row = area,
	    .c = dx,
	    .c_row = area,
	    .alpha = 1,
	    .beta = l->add[0] ? 1 : 0,
	    .arithmetic = how});
}

typedef struct {
	float v[GEMM_PAST];
} vector;

/* Short rows under each product side by side. Whole vectors are copied: what runs past the end of a row is written over by the next, or by
 * the next example. */
CPU_CLONES static void
lay_out(float *slab, size_t pitch, const float *from, const uint32_t *place, size_t count,
    const size_t size[2], size_t apart)
{
	for (size_t p = 0; p < count; p++, slab += pitch)
		for (size_t y = 0; y < size[0]; y++)
			*(vector *)(void *)(slab + y * size[1]) =
			    *(const vector *)(const void *)(from + place[p] + y * apart);
}

/* The phases of one example, of some channels of its dy. */
static void
lay_example(const struct conv_input *d, const struct layer *l, const float *dy, size_t channels,
    size_t index, float *own)
{
	const uint32_t *place = (const uint32_t *)(const void *)(own + d->place);
	float *slab = own + d->slab;
	size_t area = (size_t)l->out.h * l->out.w;

	if (conv_dense_is_point(l)) {
		for (size_t o = 0; o < channels; o++)
			memcpy(slab + o * d->pitch + index * area, dy + o * area,
			    area * sizeof(float));
		return;
	}
	memset(own + d->planes, 0, channels * d->dy.apart * sizeof(float));
	planes_fill(&d->dy, l, channels, dy, own + d->planes);
	for (size_t f = 0; f < d->dy.phases; f++) {
		const struct planes_phase p = planes_phase(l, f);
		lay_out(slab + index * p.size[0] * p.size[1], d->pitch, own + d->planes, place,
		    channels * p.taps, p.size, d->dy.size[1]);
		place += d->some * p.taps;
		slab += d->some * p.taps * d->pitch;
	}
}

/* The products of some channels of dy from the first on, to the sums of those before. */
static void
add_channels(const struct conv_input *d, const struct layer *l, const float *turned, size_t first,
    size_t channels, size_t count, float *own)
{
	const float *slab = own + d->slab;
	float *sums = own + d->result;
	bool point = conv_dense_is_point(l);

	for (size_t f = 0; f < d->dy.phases; f++, sums += l->in[0].c * d->pitch) {
		const struct planes_phase p = planes_phase(l, f);
		size_t all = l->out.c * p.taps;
		gemm_outer(&(struct gemm){.m = l->in[0].c,
		    .n = count * p.size[0] * p.size[1],
		    .k = channels * p.taps,
		    .a = turned + first * (point ? l->in[0].c : p.taps),
		    .a_row = point ? 1 : all,
		    .a_col = point ? l->in[0].c : 1,
		    .b = slab,
		    .b_row = d->pitch,
		    .c = sums,
		    .c_row = d->pitch,
		    .alpha = 1,
		    .chain = first > 0,
		    .own = true,
		    .arithmetic = d->arithmetic});
		turned += l->in[0].c * all;
		slab += d->some * p.taps * d->pitch;
	}
}

static void
give_examples(
    const struct conv_input *d, const struct layer *l, float *dx, size_t count, const float *own)
{
	size_t area = (size_t)l->in[0].h * l->in[0].w;
	const float *sums = own + d->result;

	for (size_t f = 0; f < d->dy.phases; f++) {
		const struct planes_phase p = planes_phase(l, f);
		size_t n = p.size[0] * p.size[1];
		for (size_t c = 0; c < l->in[0].c; c++, sums += d->pitch)
			for (size_t e = 0; e < count; e++)
				planes_give(l, &p, 0, p.size[0], sums + e * n, p.size[1],
				    dx + e * l->in[0].size + c * area);
	}
}

static void
join_examples(const struct conv_input *d, const struct layer *l, const float *turned,
    const float *dy, float *dx, size_t count, float *own)
{
	uint32_t *place = (uint32_t *)(void *)(own + d->place);
	size_t area = (size_t)l->out.h * l->out.w;

	for (size_t f = 0; f < d->dy.phases && !conv_dense_is_point(l); f++) {
		const struct planes_phase p = planes_phase(l, f);
		planes_find(&d->dy, l, &p, d->some, place);
		place += d->some * p.taps;
	}
	for (size_t o = 0; o < l->out.c; o += d->some) {
		size_t channels = l->out.c - o < d->some ? l->out.c - o : d->some;
		for (size_t e = 0; e < count; e++)
			lay_example(d, l, dy + e * l->out.size + o * area, channels, e, own);
		add_channels(d, l, turned, o, channels, count, own);
	}
	give_examples(d, l, dx, count, own);
}

void
conv_input_run(const struct conv_input *d, const struct layer *l, const float *turned,
    const float *dy, float *dx, size_t count, float *own)
{
	if (d->some > 0)
		join_examples(d, l, turned, dy, dx, count, own);
	else if (conv_dense_is_point(l))
		read_points(
		    d->arithmetic == GEMM_MIXED ? GEMM_EXACT : d->arithmetic, l, turned, dy, dx);
	else
		read_planes(d, l, turned, dy, dx, own);
}
