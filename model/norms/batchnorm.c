#include "cpu_norms.h"

#include <math.h>
#include <stdint.h>

#include "backend.h"
#include "cpu.h"
#include "lanes.h"
#include "layer.h"
#include "norm_sums.h"
#include "operands.h"
#include "runs.h"
#include "team.h"

/*
 * A channel's statistics run over examples and places. In training they are the batch's, and the way back moves the running ones towards
 * them: a pass whose loss is not finite leaves no trace. Otherwise the running ones are used.
 */
static enum err
need(struct layer *l, struct why *why)
{
	(void)why;
	l->saved_once = 2 * (size_t)l->in[0].c * sizeof(float);
	l->work = 2 * (size_t)l->in[0].c;
	l->rectifies = l->in[0].size > l->in[0].c;
	return ERR_OK;
}

/* Where a layer's statistics stand among its parameters: behind weight and bias, if it has them. */
static size_t
running(const struct layer *l)
{
	return l->spec.bias ? PARAM_MEAN : 0;
}

static size_t
area_of(const struct layer *l)
{
	return l->in[0].size / l->in[0].c;
}

static void
running_moments(const struct layer *l, const struct backend_pass *p, float *kept)
{
	const float *mean = p->weights + l->param[running(l)].at;
	const float *variance = p->weights + l->param[running(l) + 1].at;
	size_t channels = l->in[0].c;

	for (size_t c = 0; c < channels; c++) {
		kept[c] = mean[c];
		kept[channels + c] = 1.0f / sqrtf(variance[c] + l->spec.epsilon);
	}
}

/* A pass, by channels. */
struct pass;
typedef void block_fn(const struct pass *c, size_t first, size_t some);

struct pass {
	const struct layer *l;
	const struct backend_pass *p;
	struct operands v;
	float *kept;
	block_fn *block; /* of some channels */
};

/* Channels whose values in all examples, up to so many floats, stay in the cache from one sum to the next; examples are walked through in
 * memory's order. */
#define BLOCK_FLOATS ((size_t)1 << 15)
#define BLOCK ((size_t)64)
#define LEAST_COLUMNS ((size_t)16)

static size_t
block_of(const struct pass *c, size_t left)
{
	size_t channel = c->p->n * area_of(c->l), n = BLOCK_FLOATS / channel;

	/* Columns, one place each, by whole vectors. */
	size_t least = area_of(c->l) == 1 ? LEAST_COLUMNS : 1;
	n = n < least ? least : n < BLOCK ? n : BLOCK;
	return n < left ? n : left;
}

static void
run_channels(void *arg, size_t from, size_t count, unsigned lane)
{
	const struct pass *o = arg;

	(void)lane;
	for (size_t some, end = from + count; from < end; from += some)
		o->block(o, from, some = block_of(o, end - from));
}

/* Some channels are a piece. */
static void
run(struct pass *c, block_fn *block)
{
	size_t channels = c->l->in[0].c, area = area_of(c->l);

	c->block = block;
	/* An element costs some multiply-adds, and memory. */
	team_share(c->p->team,
	    &(struct team_work){.n = channels,
		.least = 1,
		.each = 30.0 * (double)area * c->p->n,
		.fn = run_channels,
		.arg = c});
}

static void
block_moments(const struct pass *o, size_t first, size_t some)
{
	const struct layer *l = o->l;
	size_t channels = l->in[0].c, area = area_of(l), size = l->in[0].size;
	const float *x = o->v.x[0] + first * area;
	float count = (float)o->p->n * (float)area, *mean = o->kept + first;
	struct norm_sums s[BLOCK] = {{{{0}}}};

	for (uint32_t i = 0; i < o->p->n; i++)
		for (size_t c = 0; c < some; c++) {
			const float *run = x + i * size + c * area;
			if (i + 1 < o->p->n)
				runs_ask(run + size, area);
			norm_sums_add(&s[c], run, area);
		}
	for (size_t c = 0; c < some; c++)
		mean[c] = norm_sums_first(&s[c]) / count;
	for (uint32_t i = 0; i < o->p->n; i++)
		for (size_t c = 0; c < some; c++)
			norm_sums_add_squares(&s[c], x + i * size + c * area, area, mean[c]);
	for (size_t c = 0; c < some; c++)
		mean[channels + c] =
		    1.0f / sqrtf(norm_sums_second(&s[c]) / count + l->spec.epsilon);
}

static struct norm_sums_affine
line_of(const struct pass *o, size_t c)
{
	const struct layer *l = o->l;
	const struct operands *v = &o->v;
	float inverse = o->kept[l->in[0].c + c];
	float a = l->spec.bias ? inverse * v->weight[c] : inverse;

	return (struct norm_sums_affine){
	    a, (l->spec.bias ? v->bias[c] : 0) - o->kept[c] * a, l->top};
}

static void
forward_block(const struct pass *o, size_t first, size_t some)
{
	size_t area = area_of(o->l), size = o->l->in[0].size;
	struct norm_sums_affine line[BLOCK];

	if (o->p->training && !o->p->again)
		block_moments(o, first, some);
	for (size_t c = 0; c < some; c++)
		line[c] = line_of(o, first + c);
	for (uint32_t i = 0; i < o->p->n; i++)
		for (size_t c = 0; c < some; c++) {
			size_t at = i * size + (first + c) * area;
			norm_sums_line(o->v.y + at, o->v.x[0] + at, area, &line[c]);
		}
}

/* With one value for each channel and example, columns of the examples' rows, which lie `apart`. */
struct columns {
	size_t rows, apart, width;
};

CPU_CLONES static void
add_columns(float *sum, const float *x, const struct columns *k)
{
	for (size_t i = 0; i < k->rows; i++, x += k->apart) {
		LANES_FREE
		for (size_t c = 0; c < k->width; c++)
			sum[c] += x[c];
	}
}

CPU_CLONES static void
add_column_squares(float *sum, const float *x, const float *mean, const struct columns *k)
{
	for (size_t i = 0; i < k->rows; i++, x += k->apart) {
		LANES_FREE
		for (size_t c = 0; c < k->width; c++) {
			float d = x[c] - mean[c];
			sum[c] += d * d;
		}
	}
}

CPU_CLONES static void
add_column_products(float *sum, const float *dy, const float *x, const struct columns *k)
{
	for (size_t i = 0; i < k->rows; i++, dy += k->apart, x += k->apart) {
		LANES_FREE
		for (size_t c = 0; c < k->width; c++)
			sum[c] += dy[c] * x[c];
	}
}

/* What columns are multiplied by and what is added. */
struct lines {
	float dy[BLOCK], x[BLOCK], one[BLOCK];
};

CPU_CLONES static void
column_lines(float *y, const float *x, const struct lines *t, const struct columns *k)
{
	for (size_t i = 0; i < k->rows; i++, y += k->apart, x += k->apart) {
		LANES_FREE
		for (size_t c = 0; c < k->width; c++)
			y[c] = x[c] * t->x[c] + t->one[c];
	}
}

CPU_CLONES static void
column_planes(float *dx, const float *dy, const float *x, const struct lines *t,
    const struct columns *k, bool add)
{
	for (size_t i = 0; i < k->rows; i++, dx += k->apart, dy += k->apart, x += k->apart)
		if (add) {
			LANES_FREE
			for (size_t c = 0; c < k->width; c++)
				dx[c] += dy[c] * t->dy[c] + (x[c] * t->x[c] + t->one[c]);
		} else {
			LANES_FREE
			for (size_t c = 0; c < k->width; c++)
				dx[c] = dy[c] * t->dy[c] + (x[c] * t->x[c] + t->one[c]);
		}
}

static void
column_moments(const struct pass *o, size_t first, const struct columns *k)
{
	const float *x = o->v.x[0] + first;
	float mean[BLOCK] = {0}, squares[BLOCK] = {0}, *kept = o->kept + first;

	add_columns(mean, x, k);
	for (size_t c = 0; c < k->width; c++)
		kept[c] = mean[c] /= (float)k->rows;
	add_column_squares(squares, x, mean, k);
	for (size_t c = 0; c < k->width; c++)
		kept[k->apart + c] = 1.0f / sqrtf(squares[c] / (float)k->rows + o->l->spec.epsilon);
}

static void
forward_columns(const struct pass *o, size_t first, size_t some)
{
	const struct columns k = {o->p->n, o->l->in[0].c, some};
	struct lines t;

	if (o->p->training && !o->p->again)
		column_moments(o, first, &k);
	for (size_t c = 0; c < some; c++) {
		const struct norm_sums_affine line = line_of(o, first + c);
		t.x[c] = line.a;
		t.one[c] = line.b;
	}
	column_lines(o->v.y + first, o->v.x[0] + first, &t, &k);
}

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	struct pass c = {.l = l, .p = p, .v = operands_of(l, p)};

	c.kept = c.v.kept ? c.v.kept : c.v.work;
	if (!p->again && !p->training)
		running_moments(l, p, c.kept);
	run(&c, area_of(l) == 1 ? forward_columns : forward_block);
}

/* Towards the batch's; its variance as of a sample (one less in the count), as PyTorch has it. */
static void
move_running(const struct layer *l, const struct backend_pass *p, const float *kept)
{
	float *mean = p->statistics + l->param[running(l)].at;
	float *variance = p->statistics + l->param[running(l) + 1].at;
	size_t channels = l->in[0].c;
	float count = (float)p->n * (float)area_of(l), rate = l->spec.rate;
	float sample = count > 1 ? count / (count - 1) : 1;

	for (size_t c = 0; c < channels; c++) {
		float inverse = kept[channels + c];
		float spread = 1.0f / (inverse * inverse) - l->spec.epsilon;
		mean[c] = (1 - rate) * mean[c] + rate * kept[c];
		variance[c] =
		    (1 - rate) * variance[c] + rate * ((spread > 0 ? spread : 0) * sample);
	}
}

/* From the sums of dy and of dy x, in a and b, to those of dy h and what dx is made of. */
static struct norm_sums_terms
terms(const struct pass *o, size_t c, const float *a, float *b)
{
	const struct layer *l = o->l;
	const float *kept = o->kept;
	float inverse = kept[l->in[0].c + c], w = l->spec.bias ? o->v.weight[c] : 1;
	float count = (float)o->p->n * (float)area_of(l);

	b[c] = (b[c] - kept[c] * a[c]) * inverse;
	float slope = -(inverse * inverse * (w * b[c] / count));
	return (struct norm_sums_terms){.dy = inverse * w,
	    .x = slope,
	    .one = -(kept[c] * slope) - inverse * (w * a[c] / count),
	    .line = line_of(o, c)};
}

static void
backward_block(const struct pass *o, size_t first, size_t some)
{
	const struct layer *l = o->l;
	const struct operands *v = &o->v;
	size_t area = area_of(l), size = l->in[0].size;
	float *a = v->work, *b = v->work + l->in[0].c;
	struct norm_sums s[BLOCK] = {{{{0}}}};
	struct norm_sums_terms t[BLOCK];

	for (size_t c = 0; c < some; c++)
		t[c].line = line_of(o, first + c);
	for (uint32_t i = 0; i < o->p->n; i++)
		for (size_t c = 0; c < some; c++) {
			size_t at = i * size + (first + c) * area;
			if (i + 1 < o->p->n) {
				runs_ask(v->dy + at + size, area);
				runs_ask(v->x[0] + at + size, area);
			}
			norm_sums_add_pair(&s[c], v->dy + at, v->x[0] + at, area, &t[c].line);
		}
	for (size_t c = 0; c < some; c++) {
		a[first + c] = norm_sums_first(&s[c]);
		b[first + c] = norm_sums_second(&s[c]);
		t[c] = terms(o, first + c, a, b);
	}
	for (uint32_t i = 0; v->dx[0] && i < o->p->n; i++)
		for (size_t c = 0; c < some; c++) {
			size_t at = i * size + (first + c) * area;
			norm_sums_plane(
			    v->dx[0] + at, v->dy + at, v->x[0] + at, area, &t[c], l->add[0]);
		}
}

static void
backward_columns(const struct pass *o, size_t first, size_t some)
{
	const struct operands *v = &o->v;
	const struct columns k = {o->p->n, o->l->in[0].c, some};
	float *a = v->work, *b = v->work + o->l->in[0].c;
	float sum[BLOCK] = {0}, products[BLOCK] = {0};
	struct lines lines;

	add_columns(sum, v->dy + first, &k);
	add_column_products(products, v->dy + first, v->x[0] + first, &k);
	for (size_t c = 0; c < some; c++) {
		a[first + c] = sum[c];
		b[first + c] = products[c];
		const struct norm_sums_terms t = terms(o, first + c, a, b);
		lines.dy[c] = t.dy;
		lines.x[c] = t.x;
		lines.one[c] = t.one;
	}
	if (v->dx[0])
		column_planes(
		    v->dx[0] + first, v->dy + first, v->x[0] + first, &lines, &k, o->l->add[0]);
}

static void
backward(const struct layer *l, const struct backend_pass *p)
{
	struct pass c = {.l = l, .p = p, .v = operands_of(l, p)};
	const struct operands v = c.v;
	float *a = v.work, *b = v.work + l->in[0].c;

	c.kept = v.kept;
	run(&c, area_of(l) == 1 ? backward_columns : backward_block);
	/* Not if they are held, as frozen ones are. */
	if (l->param[running(l)].counts)
		move_running(l, p, v.kept);
	if (!l->spec.bias)
		return;
	operands_give(l, p, PARAM_WEIGHT, b);
	operands_give(l, p, PARAM_BIAS, a);
}

const struct backend_layer batchnorm_passes = {
    .need = need, .forward = forward, .backward = backward};
