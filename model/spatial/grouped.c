#include "cpu_spatial.h"

#include <string.h>

#include "gemm.h"
#include "lanes.h"
#include "norm_sums.h"
#include "num.h"
#include "planes.h"
#include "team.h"

/*
 * Convolutions in groups, of one channel each (depthwise) or more. Planes (planes.h) are walked through as one run of memory, rows and the
 * zeros between them, so that a vector is full however short the rows are: what comes out between rows is dropped. A group is a piece of its
 * own: its outputs, its part of dx and the gradients of its weights.
 */
struct plan {
	struct planes planes;
	size_t in, out; /* channels of a group */
	size_t kernel; /* its elements */
	size_t plane; /* floats of one */
	size_t some; /* output channels whose gradients are summed at once */
	/* Parts of a thread's memory, in floats. */
	size_t x, dy, rows, at, back, turned, lanes;
	struct planes_room room;
	/* Of all: gradients of weights and biases. */
	size_t gradient, bias;
};

/* Floats of lanes at a time. */
#define LANES_FLOATS ((size_t)1 << 16)

static bool
plan(struct plan *p, const struct layer *l)
{
	const struct layer_spec *s = &l->spec;
	size_t inputs, weights;

	*p = (struct plan){.planes = planes_of(l),
	    .in = l->in[0].c / s->groups,
	    .out = s->out / s->groups,
	    .kernel = (size_t)s->kernel[0] * s->kernel[1],
	    .room = {0, 2 * LANES_SIZE, UINT32_MAX}};
	weights = l->param[PARAM_WEIGHT].count;
	size_t each = p->in * p->kernel * LANES_SIZE;
	p->some = each < LANES_FLOATS ? LANES_FLOATS / each : 1;
	p->some = p->some < p->out ? p->some : p->out;
	p->bias = weights;
	return num_mul(p->planes.size[0], p->planes.size[1], &p->plane) &&
	    num_mul(p->in, p->planes.phases, &inputs) &&
	    planes_take(&p->room, &p->x, inputs, p->plane, 1) &&
	    planes_take(&p->room, &p->dy, p->out, p->plane, 1) &&
	    planes_take(&p->room, &p->rows, p->plane, 1, 1) &&
	    planes_take(&p->room, &p->at, p->in, p->kernel, 1) &&
	    planes_take(&p->room, &p->back, p->out, p->kernel, 1) &&
	    planes_take(&p->room, &p->turned, p->in, p->out, p->kernel) &&
	    planes_take(&p->room, &p->lanes, p->some, each, 1);
}

static enum err
need(struct layer *l, struct why *why)
{
	struct plan p;

	if (!plan(&p, l) || !num_add(p.bias, l->spec.out, &l->work))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", l->spec.name);
	l->work_lane = p.room.end;
	return ERR_OK;
}

struct course {
	const struct layer *l;
	const struct backend_pass *pass;
	struct operands v;
	struct plan p;
};

/* What products read that lies between and behind planes is zero. */
static float *
begin(const struct course *c, unsigned lane)
{
	float *own = operands_lane(c->l, c->pass, lane);

	memset(own, 0, c->p.at * sizeof(float));
	return own;
}

/* Floats of a plane's rows, of which the last ends with its own end; in whole lanes. */
static size_t
run_of(const struct plan *p, size_t rows, size_t width)
{
	size_t n = (rows - 1) * p->planes.size[1] + width;

	return (n + LANES_SIZE - 1) / LANES_SIZE * LANES_SIZE;
}

static void
forward_group(void *arg, size_t group, unsigned lane)
{
	const struct course *c = arg;
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	size_t area = (size_t)l->out.h * l->out.w, in = (size_t)l->in[0].h * l->in[0].w;
	size_t n = run_of(p, l->out.h, l->out.w), taps = p->in * p->kernel;
	float *own = begin(c, lane), *rows = own + p->rows;
	uint32_t *at = (uint32_t *)(void *)(own + p->at);

	planes_find_x(&p->planes, l, p->in, at);
	for (size_t i = 0; i < c->pass->n; i++) {
		const float *x = c->v.x[0] + i * l->in[0].size + group * p->in * in;
		planes_fill_x(&p->planes, l, p->in, x, own + p->x);
		for (size_t o = group * p->out; o < (group + 1) * p->out; o++) {
			for (size_t k = 0; k < n; k++)
				rows[k] = c->v.bias ? c->v.bias[o] : 0;
			gemm_gather(rows, own + p->x,
			    &(struct gemm_spots){taps, at, c->v.weight + o * taps}, n);
			planes_copy(c->v.y + i * l->out.size + o * area, l->out.w, rows,
			    p->planes.size[1], l->out.h, l->out.w);
		}
	}
}

static void
run(const struct layer *l, const struct backend_pass *pass,
    void (*fn)(void *arg, size_t group, unsigned lane))
{
	struct course c = {.l = l, .pass = pass, .v = operands_of(l, pass)};
	/* Sums are short: each product costs several of a matrix product's. */
	double work = 6.0 * (double)l->param[PARAM_WEIGHT].count * l->out.h * l->out.w * pass->n;

	if (plan(&c.p, l))
		team_run(team_worth(pass->team, work), l->spec.groups, fn, &c);
}

static void
forward(const struct layer *l, const struct backend_pass *pass)
{
	run(l, pass, forward_group);
}

/* What every example's way back through a group uses: its tables, its weights turned round. */
static float *
begin_back(const struct course *c, size_t group, unsigned lane)
{
	const struct plan *p = &c->p;
	float *own = begin(c, lane), *turned = own + p->turned;
	uint32_t *words = (uint32_t *)(void *)own, *back = words + p->back;

	planes_find_x(&p->planes, c->l, p->in, words + p->at);
	for (size_t f = 0; c->v.dx[0] && f < p->planes.phases; f++) {
		const struct planes_phase phase = planes_phase(c->l, f);
		planes_find(&p->planes, c->l, &phase, p->out, back);
		planes_turn(c->l, &phase, p->in, p->out,
		    c->v.weight + group * p->out * p->in * p->kernel, turned);
		back += p->out * phase.taps;
		turned += p->in * p->out * phase.taps;
	}
	return own;
}

/* Of one group of an example, whose dy is in planes. */
static void
input_group(const struct course *c, float *own, float *dx)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	size_t area = (size_t)l->in[0].h * l->in[0].w;
	const float *weight = own + p->turned;
	const uint32_t *at = (const uint32_t *)(const void *)(own + p->back);

	for (size_t f = 0; f < p->planes.phases; f++) {
		const struct planes_phase phase = planes_phase(l, f);
		size_t taps = p->out * phase.taps;
		for (size_t k = 0; phase.size[0] * phase.size[1] > 0 && k < p->in; k++) {
			size_t n = run_of(p, phase.size[0], phase.size[1]);
			memset(own + p->rows, 0, n * sizeof(float));
			gemm_gather(own + p->rows, own + p->dy,
			    &(struct gemm_spots){taps, at, weight + k * taps}, n);
			planes_give(l, &phase, 0, phase.size[0], own + p->rows, p->planes.size[1],
			    dx + k * area);
		}
		weight += p->in * taps;
		at += taps;
	}
}

/* Output channels [from, to) of a group, of which they are all or some; dx with the first of them. */
static void
backward_some(const struct course *c, size_t group, size_t from, size_t to, float *own)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	size_t area = (size_t)l->out.h * l->out.w, in = (size_t)l->in[0].h * l->in[0].w;
	size_t taps = p->in * p->kernel, pitch = p->planes.size[1];
	size_t n = (l->out.h - 1) * pitch + l->out.w, first = group * p->out;
	const float *begin = own + p->dy + p->planes.lead[0] * pitch + p->planes.lead[1];
	float *gradient = c->v.work, *bias = gradient + p->bias;
	const uint32_t *at = (const uint32_t *)(const void *)(own + p->at);

	memset(own + p->lanes, 0, (to - from) * taps * LANES_SIZE * sizeof(float));
	for (size_t i = 0; i < c->pass->n; i++) {
		planes_fill(
		    &p->planes, l, p->out, c->v.dy + i * l->out.size + first * area, own + p->dy);
		planes_fill_x(&p->planes, l, p->in,
		    c->v.x[0] + i * l->in[0].size + group * p->in * in, own + p->x);
		if (c->v.dx[0] && from == 0)
			input_group(c, own, c->v.dx[0] + i * l->in[0].size + group * p->in * in);
		for (size_t o = from; o < to; o++)
			gemm_dots(own + p->lanes + (o - from) * taps * LANES_SIZE,
			    begin + o * p->plane, own + p->x, at, taps, n);
	}
	for (size_t k = 0; k < (to - from) * taps; k++) {
		lanes16 sum = LANES_AT(own + p->lanes + k * LANES_SIZE);
		gradient[(first + from) * taps + k] = lanes_fold(&sum);
	}
	for (size_t o = first + from; c->v.bias && o < first + to; o++) {
		struct norm_sums sum = {0};
		for (size_t i = 0; i < c->pass->n; i++)
			norm_sums_add(&sum, c->v.dy + i * l->out.size + o * area, area);
		bias[o] = norm_sums_first(&sum);
	}
}

static void
backward_group(void *arg, size_t group, unsigned lane)
{
	const struct course *c = arg;
	const struct plan *p = &c->p;
	float *own = begin_back(c, group, lane);

	for (size_t o = 0; o < p->out; o += p->some)
		backward_some(c, group, o, o + p->some < p->out ? o + p->some : p->out, own);
}

static void
backward(const struct layer *l, const struct backend_pass *pass)
{
	const struct operands v = operands_of(l, pass);

	run(l, pass, backward_group);
	operands_give(l, pass, PARAM_WEIGHT, v.work);
	if (v.bias)
		operands_give(l, pass, PARAM_BIAS, v.work + l->param[PARAM_WEIGHT].count);
}

const struct backend_layer grouped_passes = {
    .need = need, .forward = forward, .backward = backward};
