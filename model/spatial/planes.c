#include "planes.h"

#include <string.h>

#include "cpu.h"
#include "layer.h"
#include "net_spec.h"
#include "num.h"

bool
planes_take(struct planes_room *room, size_t *at, size_t a, size_t b, size_t c)
{
	size_t n;

	*at = room->end;
	return num_mul(a, b, &n) && num_mul(n, c, &n) && n <= room->most &&
	    num_add(n, room->past, &n) && num_round_up(n, LAYER_LINE, &n) &&
	    num_add(room->end, n, &room->end);
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

struct planes
planes_of(const struct layer *l)
{
	const uint32_t in[2] = {l->in[0].h, l->in[0].w}, out[2] = {l->out.h, l->out.w};
	const struct layer_spec *s = &l->spec;
	struct planes p = {.phases = least(s->stride[0], in[0]) * least(s->stride[1], in[1]),
	    .residues = (size_t)s->stride[0] * s->stride[1],
	    .examples = 1};

	for (int k = 0; k < 2; k++) {
		size_t reach = ((size_t)in[k] - 1 + s->padding[k]) / s->stride[k] + 1;
		p.lead[k] = ((size_t)s->kernel[k] - 1) / s->stride[k];
		p.size[k] = p.lead[k] + (reach > out[k] ? reach : out[k]);
	}
	p.apart = p.size[0] * p.size[1];
	return p;
}

struct planes_phase
planes_phase(const struct layer *l, size_t index)
{
	const uint32_t in[2] = {l->in[0].h, l->in[0].w}, *stride = l->spec.stride;
	size_t across = least(stride[1], in[1]);
	struct planes_phase p = {.from = {index / across, index % across}};

	for (int k = 0; k < 2; k++) {
		size_t kernel = l->spec.kernel[k];
		p.size[k] = (in[k] - p.from[k] + stride[k] - 1) / stride[k];
		p.first[k] = (p.from[k] + l->spec.padding[k]) % stride[k];
		p.count[k] = p.first[k] < kernel ? (kernel - p.first[k] - 1) / stride[k] + 1 : 0;
	}
	p.taps = p.count[0] * p.count[1];
	return p;
}

void
planes_find(const struct planes *p, const struct layer *l, const struct planes_phase *phase,
    size_t out, uint32_t *at)
{
	const uint32_t *stride = l->spec.stride;
	/* By the first row and the last column of the kernel. */
	size_t y = (phase->from[0] + l->spec.padding[0] - phase->first[0]) / stride[0] + p->lead[0];
	size_t x = (phase->from[1] + l->spec.padding[1] - phase->first[1]) / stride[1] +
	    p->lead[1] + 1 - phase->count[1];

	for (size_t i = 0; i < phase->taps; i++)
		at[i] =
		    (uint32_t)((y - i / phase->count[1]) * p->size[1] + x + i % phase->count[1]);
	for (size_t k = phase->taps; k < out * phase->taps; k++)
		at[k] = at[k - phase->taps] + (uint32_t)p->apart;
}

/* Elements of the kernel that reach a phase, in planes_find's order: up to TAPS of them from the first on. */
#define TAPS ((size_t)64)

static size_t
order_of(const struct layer *l, const struct planes_phase *p, size_t first, size_t order[TAPS])
{
	const uint32_t *stride = l->spec.stride;
	size_t some = least(p->taps - first, TAPS);

	for (size_t t = 0; t < some; t++) {
		size_t y = (first + t) / p->count[1],
		       x = p->count[1] - 1 - (first + t) % p->count[1];
		order[t] =
		    (p->first[0] + y * stride[0]) * l->spec.kernel[1] + p->first[1] + x * stride[1];
	}
	return some;
}

/* Input channels whose weights are turned at a time: lines of memory that are written bit by bit. */
#define TURN ((size_t)16)
/* Output channels ahead whose weights are asked for: they lie too far apart for the CPU to guess. */
#define AHEAD 4

/* `some` elements of the kernel, from tap `first` on. */
static inline __attribute__((always_inline)) void
turn_some(const struct planes_weights *w, size_t area, size_t taps, size_t first,
    const size_t *order, size_t some)
{
	for (size_t k = w->first; k < w->first + w->count; k += TURN)
		for (size_t o = 0; o < w->out; o++) {
			size_t count = w->first + w->count - k;
			const float *from = w->from + (o * w->in + k) * area;
			float *to = w->to + (k * w->out + o) * taps + first;
			for (size_t c = 0; c < count && c < TURN; c++) {
				if (o + AHEAD < w->out)
					__builtin_prefetch(from + AHEAD * w->in * area);
				for (size_t t = 0; t < some; t++)
					to[t] = from[order[t]];
				from += area;
				to += w->out * taps;
			}
		}
}

void
planes_turn(const struct layer *l, const struct planes_phase *phase, const struct planes_weights *w)
{
	size_t area = (size_t)l->spec.kernel[0] * l->spec.kernel[1], order[TAPS] = {0};

	for (size_t first = 0; first < phase->taps; first += TAPS) {
		size_t some = order_of(l, phase, first, order);
		/* A constant number is no loop. */
		if (some == 9)
			turn_some(w, area, phase->taps, first, order, 9);
		else
			turn_some(w, area, phase->taps, first, order, some);
	}
}

typedef struct {
	float v[8];
} eight;
typedef struct {
	float v[4];
} four;

/* The last vector of a row begins where it ends with the row, over what is there already. */
CPU_CLONES static void
copy_rows(
    float *to, size_t to_apart, const float *from, size_t from_apart, size_t rows, size_t width)
{
	for (; rows > 0; rows--, to += to_apart, from += from_apart)
		if (width >= 8) {
			for (size_t x = 0; x + 8 < width; x += 8)
				*(eight *)(void *)(to + x) =
				    *(const eight *)(const void *)(from + x);
			*(eight *)(void *)(to + width - 8) =
			    *(const eight *)(const void *)(from + width - 8);
		} else if (width >= 4) {
			*(four *)(void *)to = *(const four *)(const void *)from;
			*(four *)(void *)(to + width - 4) =
			    *(const four *)(const void *)(from + width - 4);
		} else {
			for (size_t x = 0; x < width; x++)
				to[x] = from[x];
		}
}

void
planes_copy(
    float *to, size_t to_apart, const float *from, size_t from_apart, size_t rows, size_t width)
{
	copy_rows(to, to_apart, from, from_apart, rows, width);
}

void
planes_fill(
    const struct planes *p, const struct layer *l, size_t out, const float *dy, float *planes)
{
	size_t area = (size_t)l->out.h * l->out.w;

	planes += p->lead[0] * p->size[1] + p->lead[1];
	for (size_t o = 0; o < out; o++)
		for (size_t e = 0; e < p->examples; e++)
			copy_rows(planes + o * p->apart + e * p->example, p->size[1],
			    dy + e * l->out.size + o * area, l->out.w, l->out.h, l->out.w);
}

void
planes_find_x(const struct planes *p, const struct layer *l, size_t in, uint32_t *at)
{
	const uint32_t *kernel = l->spec.kernel, *stride = l->spec.stride;

	for (size_t c = 0; c < in; c++)
		for (size_t y = 0; y < kernel[0]; y++)
			for (size_t x = 0; x < kernel[1]; x++) {
				size_t phase = y % stride[0] * stride[1] + x % stride[1];
				*at++ = (uint32_t)((c * p->residues + phase) * p->apart +
				    y / stride[0] * p->size[1] + x / stride[1]);
			}
}

/* Every second element or so of each row. */
CPU_CLONES static void
thin_rows(float *to, size_t to_apart, const float *from, size_t from_apart, size_t rows,
    size_t width, size_t stride)
{
	for (; rows > 0; rows--, to += to_apart, from += from_apart)
		if (stride == 2)
			for (size_t x = 0; x < width; x++)
				to[x] = from[2 * x];
		else
			for (size_t x = 0; x < width; x++)
				to[x] = from[x * stride];
}

/* One phase of a channel of x. */
static void
fill_phase(const struct planes *p, const struct layer *l, const struct planes_phase *f,
    const float *x, float *to)
{
	size_t apart = l->spec.stride[0] * (size_t)l->in[0].w, stride = l->spec.stride[1];

	for (size_t e = 0; e < p->examples; e++, x += l->in[0].size, to += p->example)
		if (stride == 1)
			copy_rows(to, p->size[1], x, apart, f->size[0], f->size[1]);
		else
			thin_rows(to, p->size[1], x, apart, f->size[0], f->size[1], stride);
}

void
planes_fill_x(
    const struct planes *p, const struct layer *l, size_t in, const float *x, float *planes)
{
	const uint32_t *stride = l->spec.stride, *padding = l->spec.padding;
	size_t w = l->in[0].w, area = l->in[0].h * w;

	for (size_t i = 0; i < p->phases; i++) {
		const struct planes_phase f = planes_phase(l, i);
		size_t y = f.from[0] + padding[0], c = f.from[1] + padding[1];
		size_t phase = y % stride[0] * stride[1] + c % stride[1];
		float *to = planes + phase * p->apart + y / stride[0] * p->size[1] + c / stride[1];
		const float *from = x + f.from[0] * w + f.from[1];
		for (size_t k = 0; k < in; k++)
			fill_phase(p, l, &f, from + k * area, to + k * p->residues * p->apart);
	}
}

CPU_CLONES static void
give_places(float *to, size_t to_apart, size_t stride, const float *from, size_t from_apart,
    size_t rows, size_t width, bool add)
{
	for (; rows > 0; rows--, to += to_apart, from += from_apart)
		if (add && stride == 1)
			for (size_t x = 0; x < width; x++)
				to[x] += from[x];
		else if (add)
			for (size_t x = 0; x < width; x++)
				to[x * stride] += from[x];
		else
			for (size_t x = 0; x < width; x++)
				to[x * stride] = from[x];
}

void
planes_give(const struct layer *l, const struct planes_phase *phase, size_t first, size_t rows,
    const float *from, size_t apart, float *dx)
{
	const uint32_t *stride = l->spec.stride;
	size_t w = l->in[0].w;
	float *to = dx + (phase->from[0] + first * stride[0]) * w + phase->from[1];

	if (stride[1] == 1 && !l->add[0])
		copy_rows(to, stride[0] * w, from, apart, rows, phase->size[1]);
	else
		give_places(
		    to, stride[0] * w, stride[1], from, apart, rows, phase->size[1], l->add[0]);
}
