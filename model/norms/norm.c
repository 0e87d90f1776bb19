#include "cpu_norms.h"

#include <stdint.h>
#include <string.h>

#include "backend.h"
#include "cpu.h"
#include "lanes.h"
#include "layer.h"
#include "net_spec.h"
#include "norm_sums.h"
#include "operands.h"
#include "team.h"

/*
 * A group of channels of an example is one run of memory; of rows (layernorm, rmsnorm) each row is. What is kept for the way back are its
 * mean and the inverse of its deviation; the rest comes from x again.
 *
 * With m elements, h = (x - mean) inverse, and g = dy weight:
 *   dx = inverse (g - sum g / m - h sum g h / m)        rmsnorm: without the first sum, mean 0
 */
struct spans {
	size_t count, length; /* of a batch */
	size_t channels, area; /* of a span: its length is their product */
};

static struct spans
spans_of(const struct layer *l, uint32_t n)
{
	const struct layer_shape *in = &l->in[0];
	size_t area = in->size / in->c;
	uint32_t groups = l->spec.groups;

	return (struct spans){(size_t)n * groups, in->size / groups, in->c / groups, area};
}

static enum err
group_need(struct layer *l, struct why *why)
{
	(void)why;
	l->saved = 2 * (size_t)l->spec.groups * sizeof(float);
	l->work = 4 * (size_t)l->in[0].c;
	l->rectifies = true;
	return ERR_OK;
}

/* A pass, by groups of channels. */
struct pass {
	const struct layer *l;
	const struct backend_pass *p;
	struct operands v;
	struct spans s;
};

/* An element, in multiply-adds: some, and memory. */
#define ELEMENT 30.0

static void
run_groups(struct pass *c, void (*fn)(void *arg, size_t group, unsigned lane))
{
	double work = ELEMENT * (double)c->l->in[0].size * c->p->n;

	team_run(team_worth(c->p->team, work), c->l->spec.groups, fn, c);
}

static struct norm_sums_affine
line_of(const struct layer *l, const struct operands *v, size_t channel, float mean, float inverse)
{
	float a = v->weight ? inverse * v->weight[channel] : inverse;
	float b = v->bias ? v->bias[channel] - mean * a : -(mean * a);

	return (struct norm_sums_affine){a, b, l->top};
}

static void
group_span(const struct pass *o, size_t i)
{
	const struct operands *v = &o->v;
	const struct spans *s = &o->s;
	const float *x = v->x[0] + i * s->length;
	size_t first = i % o->l->spec.groups * s->channels;
	float *kept = v->kept, mean, inverse;

	if (o->p->again)
		mean = kept[2 * i], inverse = kept[2 * i + 1];
	else
		norm_sums_moments(x, s->length, o->l->spec.epsilon, &mean, &inverse);
	for (size_t c = 0; c < s->channels; c++) {
		const struct norm_sums_affine line = line_of(o->l, v, first + c, mean, inverse);
		norm_sums_line(v->y + i * s->length + c * s->area, x + c * s->area, s->area, &line);
	}
	if (kept) {
		kept[2 * i] = mean;
		kept[2 * i + 1] = inverse;
	}
}

static void
forward_group(void *arg, size_t group, unsigned lane)
{
	const struct pass *o = arg;

	(void)lane;
	for (size_t i = group; i < o->s.count; i += o->l->spec.groups)
		group_span(o, i);
}

static void
group_forward(const struct layer *l, const struct backend_pass *p)
{
	struct pass c = {l, p, operands_of(l, p), spans_of(l, p->n)};

	run_groups(&c, forward_group);
}

/* One span: adds to the gradients of its channels, writes dx. */
static void
group_span_back(const struct layer *l, const struct operands *v, const struct spans *s, size_t i)
{
	const float *kept = v->kept, *x = v->x[0] + i * s->length, *dy = v->dy + i * s->length;
	size_t first = i % l->spec.groups * s->channels, all = l->in[0].c;
	float mean = kept[2 * i], inverse = kept[2 * i + 1], total = 0, along = 0;
	float *shift = v->work + first, *scale = v->work + all + first;

	for (size_t c = 0; c < s->channels; c++) {
		float a, b, w = v->weight ? v->weight[first + c] : 1;
		const struct norm_sums_affine line = line_of(l, v, first + c, mean, inverse);
		norm_sums_pair(dy + c * s->area, x + c * s->area, s->area, &line, &a, &b);
		b = (b - mean * a) * inverse;
		shift[c] += a;
		scale[c] += b;
		total += w * a;
		along += w * b;
	}
	total /= (float)s->length;
	along /= (float)s->length;
	float slope = -(inverse * inverse * along);
	float level = -(mean * slope) - inverse * total;
	for (size_t c = 0; v->dx[0] && c < s->channels; c++) {
		const struct norm_sums_affine line = line_of(l, v, first + c, mean, inverse);
		const struct norm_sums_terms terms = {line.a, slope, level, line};
		size_t at = c * s->area;
		norm_sums_plane(
		    v->dx[0] + i * s->length + at, dy + at, x + at, s->area, &terms, l->add[0]);
	}
}

static void
backward_group(void *arg, size_t group, unsigned lane)
{
	const struct pass *o = arg;

	(void)lane;
	for (size_t i = group; i < o->s.count; i += o->l->spec.groups)
		group_span_back(o->l, &o->v, &o->s, i);
}

static void
group_backward(const struct layer *l, const struct backend_pass *p)
{
	struct pass c = {l, p, operands_of(l, p), spans_of(l, p->n)};
	const struct operands v = c.v;
	size_t channels = l->in[0].c;

	for (size_t k = 0; k < 2 * channels; k++)
		v.work[k] = 0;
	run_groups(&c, backward_group);
	if (!v.weight)
		return;
	operands_give(l, p, PARAM_WEIGHT, v.work + channels);
	operands_give(l, p, PARAM_BIAS, v.work);
}

const struct backend_layer norm_group_passes = {
    .need = group_need, .forward = group_forward, .backward = group_backward};

static enum err
row_need(struct layer *l, struct why *why)
{
	(void)why;
	l->saved = 2 * layer_rows(&l->in[0]) * sizeof(float);
	l->work = 2 * layer_width(&l->in[0]);
	return ERR_OK;
}

/* y = (x - mean) * inverse * weight + bias */
CPU_CLONES static void
affine_row(float *y, const float *x, const float *weight, const float *bias, size_t n, float mean,
    float inverse)
{
	if (weight && bias)
		for (size_t i = 0; i < n; i++)
			y[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
	else if (weight)
		for (size_t i = 0; i < n; i++)
			y[i] = (x[i] - mean) * inverse * weight[i];
	else
		for (size_t i = 0; i < n; i++)
			y[i] = (x[i] - mean) * inverse;
}

static struct pass
rows_pass(const struct layer *l, const struct backend_pass *p)
{
	size_t width = layer_width(&l->in[0]), rows = p->n * layer_rows(&l->in[0]);

	return (struct pass){l, p, operands_of(l, p), {rows, width, width, 1}};
}

static void
share(struct pass *c, size_t n, size_t least,
    void (*fn)(void *arg, size_t first, size_t count, unsigned lane))
{
	team_share(c->p->team,
	    &(struct team_work){.n = n,
		.least = least,
		.each = ELEMENT * (double)c->s.count * (double)c->s.length / (double)n,
		.fn = fn,
		.arg = c});
}

static void
forward_rows(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;
	const struct layer *l = c->l;
	const struct operands *v = &c->v;
	size_t width = c->s.length;
	float *kept = v->kept;

	(void)lane;
	for (size_t i = first; i < first + count; i++) {
		const float *x = v->x[0] + i * width;
		float mean = 0, inverse;
		if (c->p->again)
			mean = kept[2 * i], inverse = kept[2 * i + 1];
		else if (l->spec.type == LAYER_LAYERNORM)
			norm_sums_moments(x, width, l->spec.epsilon, &mean, &inverse);
		else
			norm_sums_root(x, width, l->spec.epsilon, &inverse);
		affine_row(v->y + i * width, x, v->weight, v->bias, width, mean, inverse);
		if (kept) {
			kept[2 * i] = mean;
			kept[2 * i + 1] = inverse;
		}
	}
}

static void
row_forward(const struct layer *l, const struct backend_pass *p)
{
	struct pass c = rows_pass(l, p);

	share(&c, c.s.count, 1, forward_rows);
}

/* Adds dy and dy h of n columns of a row to their sums. */
CPU_CLONES static void
add_row(float *shift, float *scale, const float *dy, const float *x, size_t n, float mean,
    float inverse)
{
	for (size_t i = 0; i < n; i++) {
		shift[i] += dy[i];
		scale[i] += dy[i] * ((x[i] - mean) * inverse);
	}
}

static void
backward_columns(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;
	const struct operands *v = &c->v;
	size_t width = c->s.length;
	const float *kept = v->kept;
	float *shift = v->work + first, *scale = v->work + width + first;

	(void)lane;
	memset(shift, 0, count * sizeof(*shift));
	memset(scale, 0, count * sizeof(*scale));
	for (size_t i = 0; i < c->s.count; i++)
		add_row(shift, scale, v->dy + i * width + first, v->x[0] + i * width + first, count,
		    kept[2 * i], kept[2 * i + 1]);
}

/* Sums of g and of g h over a row. */
CPU_CLONES static void
row_sums(const float *dy, const float *x, const float *weight, size_t n, float mean, float inverse,
    float *total, float *along)
{
	float sums[2][LANES_SIZE] = {{0}, {0}};

	if (weight) {
		LANES_ADD(
		    sums[0], n, LANES_FOUR(dy + i) * LANES_FOUR(weight + i), dy[i] * weight[i]);
		LANES_ADD(sums[1], n,
		    LANES_FOUR(dy + i) * LANES_FOUR(weight + i) *
			((LANES_FOUR(x + i) - mean) * inverse),
		    dy[i] * weight[i] * ((x[i] - mean) * inverse));
	} else {
		LANES_ADD(sums[0], n, LANES_FOUR(dy + i), dy[i]);
		LANES_ADD(sums[1], n, LANES_FOUR(dy + i) * ((LANES_FOUR(x + i) - mean) * inverse),
		    dy[i] * ((x[i] - mean) * inverse));
	}
	lanes16 a = LANES_AT(sums[0]), b = LANES_AT(sums[1]);
	*total = lanes_fold(&a);
	*along = lanes_fold(&b);
}

CPU_CLONES static void
row_gradient(float *dx, const float *dy, const float *x, const float *weight, size_t n, float mean,
    float inverse, float total, float along, bool add)
{
	LANES_FREE
	for (size_t i = 0; i < n; i++) {
		float g = weight ? dy[i] * weight[i] : dy[i];
		float d = inverse * (g - total - (x[i] - mean) * inverse * along);
		dx[i] = add ? dx[i] + d : d;
	}
}

static void
backward_rows(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;
	const struct layer *l = c->l;
	const struct operands *v = &c->v;
	size_t width = c->s.length;
	const float *kept = v->kept;

	(void)lane;
	for (size_t i = first; i < first + count; i++) {
		const float *dy = v->dy + i * width, *x = v->x[0] + i * width;
		float mean = kept[2 * i], inverse = kept[2 * i + 1], total, along;
		row_sums(dy, x, v->weight, width, mean, inverse, &total, &along);
		total = l->spec.type == LAYER_LAYERNORM ? total / (float)width : 0;
		row_gradient(v->dx[0] + i * width, dy, x, v->weight, width, mean, inverse, total,
		    along / (float)width, l->add[0]);
	}
}

/* The columns' sums first: dx may take the place of dy. */
static void
row_backward(const struct layer *l, const struct backend_pass *p)
{
	struct pass c = rows_pass(l, p);
	const struct operands *v = &c.v;

	if (v->weight)
		share(&c, c.s.length, 4 * LANES_SIZE, backward_columns);
	if (v->dx[0])
		share(&c, c.s.count, 1, backward_rows);
	if (v->weight)
		operands_give(l, p, PARAM_WEIGHT, v->work + c.s.length);
	if (v->bias)
		operands_give(l, p, PARAM_BIAS, v->work);
}

const struct backend_layer norm_row_passes = {
    .need = row_need, .forward = row_forward, .backward = row_backward};
