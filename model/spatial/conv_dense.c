#include "conv_dense.h"

#include <string.h>

#include "cpu.h"
#include "gemm.h"
#include "num.h"
#include "planes.h"
#include "runs.h"

/* Floats of pixels at a time. */
#define SLAB_FLOATS ((size_t)1 << 17)
/* Of points, maps of so many places are products by themselves, one example after the other. */
#define LARGE 64

bool
conv_dense_plan(struct conv_dense *d, const struct layer *l)
{
	const struct layer_spec *s = &l->spec;
	size_t height = l->in[0].h + 2 * (size_t)s->padding[0], pixels;
	size_t width = l->in[0].w + 2 * (size_t)s->padding[1];
	struct planes_room room = {0, GEMM_PAST, UINT32_MAX};

	*d = (struct conv_dense){0};
	if (!num_mul(height, width, &pixels) || !num_mul(pixels, l->in[0].c, &pixels))
		return false;
	size_t most = pixels > l->out.size ? pixels : l->out.size;
	d->group = most < SLAB_FLOATS ? SLAB_FLOATS / most : 1;
	/* More brings nothing. */
	size_t places = (size_t)l->out.h * l->out.w, enough = 256 / places + 1;
	d->group = d->group < enough ? d->group : enough;
	d->run = (l->in[0].c * (size_t)s->kernel[1] + GEMM_PAST - 1) / GEMM_PAST * GEMM_PAST;
	d->direct = conv_dense_is_point(l) && places >= LARGE;
	if (d->direct)
		return true;
	if (!planes_take(&room, &d->under, places, d->group, 1) ||
	    !planes_take(&room, &d->value, d->group > 1 ? l->out.c : 0, places, d->group) ||
	    !planes_take(&room, &d->pixels, pixels, d->group, 1))
		return false;
	d->lane = room.end;
	return true;
}

/* So many elements tell, a run of some here and there. */
#define SAMPLES ((size_t)32)
#define SAMPLE ((size_t)1024)

CPU_CLONES static void
count_values(size_t *count, const float *dy, size_t n)
{
	int some = 0;

	for (size_t i = 0; i < n; i++)
		some += dy[i] != 0;
	*count += (size_t)some;
}

bool
conv_dense_pays(const float *dy, size_t n)
{
	size_t found = 0, each = n < SAMPLES * SAMPLE ? n / SAMPLES : SAMPLE;

	if (each == 0)
		return true;
	for (size_t k = 0; k < SAMPLES; k++)
		count_values(&found, dy + (n - each) / SAMPLES * k, each);
	return found > SAMPLES * each / 3;
}

bool
conv_dense_is_point(const struct layer *l)
{
	const struct layer_spec *s = &l->spec;

	return s->kernel[0] == 1 && s->kernel[1] == 1 && s->stride[0] == 1 && s->stride[1] == 1 &&
	    s->padding[0] == 0 && s->padding[1] == 0;
}

/* Channels [first, end). */
static void
lay_pixels(const struct layer *l, const float *x, size_t first, size_t end, float *pixels)
{
	size_t h = l->in[0].h, w = l->in[0].w, depth = end - first;
	size_t top = l->spec.padding[0], left = l->spec.padding[1], width = w + 2 * left;

	memset(pixels, 0, (h + 2 * top) * width * depth * sizeof(float));
	if (depth == 1) {
		planes_copy(pixels + top * width + left, width, x + first * h * w, w, h, w);
		return;
	}
	for (size_t y = 0; y < h; y++)
		runs_turn(pixels + ((y + top) * width + left) * depth, depth,
		    x + (first * h + y) * w, h * w, depth, w);
}

void
conv_dense_pixels(const struct layer *l, const float *x, float *pixels)
{
	lay_pixels(l, x, 0, l->in[0].c, pixels);
}

/* The pixels under the elements of dy of a group of examples. */
static void
find_pixels(const struct conv_dense *d, const struct layer *l, size_t depth, uint32_t *under)
{
	size_t height = l->in[0].h + 2 * (size_t)l->spec.padding[0];
	size_t width = l->in[0].w + 2 * (size_t)l->spec.padding[1];
	size_t down = l->spec.stride[0] * width * depth, right = l->spec.stride[1] * depth;

	for (size_t i = 0; i < d->group; i++)
		for (size_t y = 0; y < l->out.h; y++)
			for (size_t x = 0; x < l->out.w; x++)
				*under++ =
				    (uint32_t)(i * height * width * depth + y * down + x * right);
}

/* Rows of output channels [from, to): the examples' dy side by side. */
static void
join_examples(const struct layer *l, const float *dy, size_t n, size_t from, size_t to, float *rows)
{
	size_t places = (size_t)l->out.h * l->out.w;

	for (size_t o = from; o < to; o++)
		for (size_t i = 0; i < n; i++, rows += places)
			memcpy(rows, dy + i * l->out.size + o * places, places * sizeof(float));
}

struct conv_dense_part
conv_dense_part(const struct layer *l, size_t index, size_t count)
{
	size_t in = l->in[0].c, out = l->out.c;

	if (l->spec.kernel[1] == 1 && in >= count * GEMM_PAST) {
		size_t lanes = in / GEMM_PAST;
		size_t last = index + 1 < count ? lanes * (index + 1) / count * GEMM_PAST : in;
		return (struct conv_dense_part){lanes * index / count * GEMM_PAST, last, 0, out};
	}
	return (struct conv_dense_part){0, in, out * index / count, out * (index + 1) / count};
}

/* A part's product: so many places of dy. */
static struct gemm
product_of(const struct conv_dense *d, const struct layer *l, const struct conv_dense_part *part,
    const float *dy, size_t places)
{
	return (struct gemm){.m = part->out_end - part->out,
	    .n = part->in_end - part->in,
	    .k = places,
	    .a = dy,
	    .a_row = places,
	    .a_col = 1,
	    .c_row = l->spec.kernel[0] * d->run,
	    .alpha = 1,
	    .arithmetic = d->arithmetic};
}

static void
add_bias(struct gemm g, const struct conv_dense_part *part, const struct conv_dense_sums *to)
{
	static const float one = 1;

	if (!to->bias || part->in > 0)
		return;
	g.n = g.c_row = 1;
	g.b = &one;
	g.b_row = 0;
	g.b_at = NULL;
	g.turned = false;
	g.c = to->bias + part->out;
	gemm_outer(&g);
}

/* Rows of x are turned when the product packs them. */
static void
add_points(const struct conv_dense *d, const struct layer *l, const struct operands *v, size_t n,
    const struct conv_dense_part *part, const struct conv_dense_sums *to)
{
	size_t places = (size_t)l->out.h * l->out.w;

	for (size_t i = 0; i < n; i++) {
		struct gemm g =
		    product_of(d, l, part, v->dy + i * l->out.size + part->out * places, places);
		g.b = v->x[0] + i * l->in[0].size + part->in * places;
		g.b_row = places;
		g.turned = true;
		g.c = to->weight + part->out * d->run + part->in;
		g.chain = i > 0;
		gemm_outer(&g);
		add_bias(g, part, to);
	}
}

void
conv_dense_weights(const struct conv_dense *d, const struct layer *l, const struct operands *v,
    size_t n, const struct conv_dense_part *part, const struct conv_dense_sums *to, float *own)
{
	size_t kernel = l->spec.kernel[0], depth = part->in_end - part->in;
	size_t row = (l->in[0].w + 2 * (size_t)l->spec.padding[1]) * depth;
	size_t pixels = (l->in[0].h + 2 * (size_t)l->spec.padding[0]) * row;
	size_t places = (size_t)l->out.h * l->out.w, from = part->out;
	uint32_t *under = (uint32_t *)(void *)(own + d->under);

	if (d->direct) {
		add_points(d, l, v, n, part, to);
		return;
	}
	find_pixels(d, l, depth, under);
	for (size_t i = 0; i < n; i += d->group) {
		size_t some = n - i < d->group ? n - i : d->group;
		for (size_t e = 0; e < some; e++)
			lay_pixels(l, v->x[0] + (i + e) * l->in[0].size, part->in, part->in_end,
			    own + d->pixels + e * pixels);
		const float *dy = v->dy + i * l->out.size;
		struct gemm g = product_of(
		    d, l, part, d->group > 1 ? own + d->value : dy + from * places, some * places);
		g.n = depth < l->in[0].c ? depth : d->run;
		g.b_at = under;
		g.chain = i > 0;
		if (d->group > 1)
			join_examples(l, dy, some, from, part->out_end, own + d->value);
		for (size_t y = 0; y < kernel; y++) {
			g.b = own + d->pixels + y * row;
			g.c = to->weight + (from * kernel + y) * d->run + part->in;
			gemm_outer(&g);
		}
		add_bias(g, part, to);
	}
}
