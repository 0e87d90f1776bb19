#include "cpu_spatial.h"

#include <string.h>

#include "backend.h"
#include "gemm.h"
#include "lanes.h"
#include "layer.h"
#include "net_spec.h"
#include "norm_sums.h"
#include "num.h"
#include "operands.h"
#include "planes.h"
#include "team.h"

/*
 * Convolutions in groups, of one channel each (depthwise) or more. Planes (planes.h) are walked through as one run of memory, rows and the
 * zeros between them, so that a vector is full however short the rows are: what comes out between rows is dropped. Small planes of several
 * examples make one run; each begins on a whole lane, so that it is in the same lanes as alone. A group is a piece of its own: its
 * outputs, its part of dx and the gradients of its weights. Small groups take turns at each few examples, so that memory is read in order.
 */
struct plan {
	struct planes planes;
	size_t in, out; /* channels of a group */
	size_t kernel; /* its elements */
	size_t examples; /* at a time */
	size_t groups; /* that take turns */
	size_t some; /* output channels of a group summed at once; not all only if it is alone */
	/* Parts of a thread's memory, in floats. */
	size_t x, dy, rows, at, back, turned, lanes, sums;
	struct planes_room room;
	/* Of all: gradients of weights and biases. */
	size_t gradient, bias;
};

/* Floats of lanes at a time. */
#define LANES_FLOATS ((size_t)1 << 16)
/* Floats of a group's planes that lie side by side, if they are several examples'. */
#define SIDE_FLOATS ((size_t)1 << 12)

static size_t
whole_lanes(size_t n)
{
	return (n + LANES_SIZE - 1) / LANES_SIZE * LANES_SIZE;
}

/* Of a pass of at most n examples. */
static bool
plan_planes(struct plan *p, size_t n)
{
	size_t plane, group;

	if (!num_mul(p->planes.size[0], p->planes.size[1], &plane) ||
	    !num_add(plane, LANES_SIZE, &group) ||
	    !num_mul(group, p->in * p->planes.residues + p->out, &group))
		return false;
	p->examples = group < SIDE_FLOATS ? SIDE_FLOATS / group : 1;
	p->examples = p->examples < n ? p->examples : n;
	p->planes.example = whole_lanes(plane);
	return num_mul(p->examples, p->planes.example, &p->planes.apart);
}

static bool
plan(struct plan *p, const struct layer *l, size_t n)
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
	p->groups = p->some < p->out ? 1 : LANES_FLOATS / (each * p->out);
	p->groups = p->groups < 1 ? 1 : p->groups < s->groups ? p->groups : s->groups;
	p->bias = weights;
	return num_mul(p->in, p->planes.residues, &inputs) && plan_planes(p, n) &&
	    planes_take(&p->room, &p->x, inputs, p->planes.apart, 1) &&
	    planes_take(&p->room, &p->dy, p->out, p->planes.apart, 1) &&
	    planes_take(&p->room, &p->rows, p->planes.apart, 1, 1) &&
	    planes_take(&p->room, &p->at, p->in, p->kernel, 1) &&
	    planes_take(&p->room, &p->back, p->out, p->kernel, 1) &&
	    planes_take(&p->room, &p->turned, p->groups * p->in, p->out, p->kernel) &&
	    planes_take(&p->room, &p->lanes, p->groups * p->some, each, 1) &&
	    planes_take(&p->room, &p->sums, p->groups * p->some, 2 * LANES_SIZE, 1);
}

static enum err
need(struct layer *l, struct why *why)
{
	struct plan p;

	if (!plan(&p, l, SIZE_MAX) || !num_add(p.bias, l->spec.out, &l->work))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", l->spec.name);
	l->work_lane = p.room.end;
	return ERR_OK;
}

struct pass;
/* Groups [first, first + count), as many as take turns. */
typedef void groups_fn(const struct pass *c, size_t first, size_t count, float *own);

struct pass {
	const struct layer *l;
	const struct backend_pass *pass;
	struct operands v;
	struct plan p;
	groups_fn *fn;
	bool begun[TEAM_MAX]; /* by lane */
};

/* What all groups use that a thread works on: zeros, where nothing else is put between and behind planes, and tables. */
static void
begin(const struct pass *c, unsigned lane)
{
	const struct plan *p = &c->p;
	float *own = operands_lane(c->l, c->pass, lane);
	uint32_t *words = (uint32_t *)(void *)own, *back = words + p->back;

	memset(own, 0, p->rows * sizeof(float));
	planes_find_x(&p->planes, c->l, p->in, words + p->at);
	for (size_t f = 0; f < p->planes.phases; f++) {
		const struct planes_phase phase = planes_phase(c->l, f);
		planes_find(&p->planes, c->l, &phase, p->out, back);
		back += p->out * phase.taps;
	}
}

/* Floats of some examples' planes, of which the last ends with its last row's own end. */
static size_t
run_of(const struct planes *p, size_t rows, size_t width)
{
	return (p->examples - 1) * p->example + (rows - 1) * p->size[1] + width;
}

/* The planes of a pass's examples from the i-th on, as many as lie side by side. */
static struct planes
planes_from(const struct pass *c, size_t i)
{
	struct planes some = c->p.planes;
	size_t left = c->pass->n - i;

	some.examples = left < c->p.examples ? left : c->p.examples;
	return some;
}

/* Of one group of some examples, whose x is in planes. */
static void
forward_some(const struct pass *c, const struct planes *some, size_t group, float *own, float *y)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	size_t area = (size_t)l->out.h * l->out.w, taps = p->in * p->kernel;
	size_t n = whole_lanes(run_of(some, l->out.h, l->out.w));
	float *rows = own + p->rows;
	const uint32_t *at = (const uint32_t *)(const void *)(own + p->at);

	for (size_t o = group * p->out; o < (group + 1) * p->out; o++) {
		for (size_t k = 0; k < n; k++)
			rows[k] = c->v.bias ? c->v.bias[o] : 0;
		gemm_gather(c->pass->arithmetic, rows, own + p->x,
		    &(struct gemm_spots){taps, at, c->v.weight + o * taps}, n);
		for (size_t e = 0; e < some->examples; e++)
			planes_copy(y + e * l->out.size + o * area, l->out.w,
			    rows + e * some->example, some->size[1], l->out.h, l->out.w);
	}
}

static void
forward_groups(const struct pass *c, size_t first, size_t count, float *own)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	size_t in = (size_t)l->in[0].h * l->in[0].w;

	for (size_t i = 0; i < c->pass->n; i += p->examples) {
		const struct planes some = planes_from(c, i);
		const float *x = c->v.x[0] + i * l->in[0].size;
		for (size_t group = first; group < first + count; group++) {
			planes_fill_x(&some, l, p->in, x + group * p->in * in, own + p->x);
			forward_some(c, &some, group, own, c->v.y + i * l->out.size);
		}
	}
}

static void
run_groups(void *arg, size_t first, size_t count, unsigned lane)
{
	struct pass *c = arg;
	size_t end = first + count;

	if (!c->begun[lane])
		begin(c, lane);
	c->begun[lane] = true;
	for (; first < end; first += c->p.groups)
		c->fn(c, first, end - first < c->p.groups ? end - first : c->p.groups,
		    operands_lane(c->l, c->pass, lane));
}

static void
run(const struct layer *l, const struct backend_pass *pass, groups_fn *fn)
{
	struct pass c = {.l = l, .pass = pass, .v = operands_of(l, pass), .fn = fn};
	/* Sums are short: each product costs several of a matrix product's, and beside them a channel some that does not hang on its size. */
	double products = (double)l->param[PARAM_WEIGHT].count * l->out.h * l->out.w;
	double work = pass->n * (6.0 * products + 2000.0 * l->out.c);

	if (!plan(&c.p, l, pass->n))
		return;
	team_share(pass->team,
	    &(struct team_work){.n = l->spec.groups,
		.least = 1,
		.each = work / l->spec.groups,
		.fn = run_groups,
		.arg = &c});
}

static void
forward(const struct layer *l, const struct backend_pass *pass)
{
	run(l, pass, forward_groups);
}

/* A group's weights as the way back wants them. */
static void
turn(const struct pass *c, size_t group, float *turned)
{
	const struct plan *p = &c->p;
	size_t count = p->out * p->in;

	for (size_t f = 0; c->v.dx[0] && f < p->planes.phases; f++) {
		const struct planes_phase phase = planes_phase(c->l, f);
		planes_turn(c->l, &phase,
		    &(struct planes_weights){.in = p->in,
			.out = p->out,
			.count = p->in,
			.from = c->v.weight + group * count * p->kernel,
			.to = turned});
		turned += count * phase.taps;
	}
}

/* Of one group of some examples, whose dy is in planes. */
static void
input_some(
    const struct pass *c, const struct planes *some, const float *weight, float *own, float *dx)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	size_t area = (size_t)l->in[0].h * l->in[0].w, pitch = some->size[1];
	const uint32_t *at = (const uint32_t *)(const void *)(own + p->back);

	for (size_t f = 0; f < some->phases; f++) {
		const struct planes_phase phase = planes_phase(l, f);
		size_t taps = p->out * phase.taps;
		for (size_t k = 0; k < p->in; k++) {
			size_t n = whole_lanes(run_of(some, phase.size[0], phase.size[1]));
			memset(own + p->rows, 0, n * sizeof(float));
			gemm_gather(c->pass->arithmetic, own + p->rows, own + p->dy,
			    &(struct gemm_spots){taps, at, weight + k * taps}, n);
			for (size_t e = 0; e < some->examples; e++)
				planes_give(l, &phase, 0, phase.size[0],
				    own + p->rows + e * some->example, pitch,
				    dx + e * l->in[0].size + k * area);
		}
		weight += p->in * taps;
		at += taps;
	}
}

/* A thread's sums of biases' gradients. */
static struct norm_sums *
sums_of(const struct pass *c, float *own)
{
	return (struct norm_sums *)(void *)(own + c->p.sums);
}

/* Of some examples, one channel of dy. */
static void
add_bias(const struct pass *c, const struct planes *some, const float *dy, struct norm_sums *sum)
{
	for (size_t e = 0; e < some->examples; e++)
		norm_sums_add(sum, dy + e * c->l->out.size, (size_t)c->l->out.h * c->l->out.w);
}

/* Output channels [from, to) of each of some groups: all of them, or some of one group's. */
struct part {
	size_t first, count; /* groups */
	size_t from, to;
	float *own;
};

/* Of some examples from the i-th on, the k-th of these groups. dx comes with its first channels. */
static void
backward_some(
    const struct pass *c, const struct part *part, const struct planes *some, size_t i, size_t k)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	float *own = part->own;
	size_t area = (size_t)l->out.h * l->out.w, in = (size_t)l->in[0].h * l->in[0].w;
	size_t taps = p->in * p->kernel, group = part->first + k, sums = taps * LANES_SIZE;
	const float *begin =
	    own + p->dy + p->planes.lead[0] * p->planes.size[1] + p->planes.lead[1];
	const uint32_t *at = (const uint32_t *)(const void *)(own + p->at);
	float *lanes = own + p->lanes + k * p->out * sums;
	size_t x = i * l->in[0].size + group * p->in * in;
	const float *dy = c->v.dy + i * l->out.size + group * p->out * area;

	planes_fill(some, l, p->out, dy, own + p->dy);
	for (size_t o = part->from; c->v.bias && o < part->to; o++)
		add_bias(c, some, dy + o * area, sums_of(c, own) + k * p->out + o - part->from);
	planes_fill_x(some, l, p->in, c->v.x[0] + x, own + p->x);
	if (c->v.dx[0] && part->from == 0)
		input_some(c, some, own + p->turned + k * p->out * taps, own, c->v.dx[0] + x);
	for (size_t o = part->from; o < part->to; o++)
		gemm_dots(c->pass->arithmetic, lanes + (o - part->from) * sums,
		    begin + o * some->apart, own + p->x, at, taps,
		    run_of(some, l->out.h, l->out.w));
}

static void
backward_part(const struct pass *c, const struct part *part)
{
	const struct plan *p = &c->p;
	size_t taps = p->in * p->kernel;
	size_t first = part->first * p->out + part->from,
	       count = part->count * (part->to - part->from);
	float *gradient = c->v.work, *bias = gradient + p->bias, *lanes = part->own + p->lanes;
	struct norm_sums *sums = sums_of(c, part->own);

	memset(sums, 0, count * sizeof(*sums));
	memset(lanes, 0, count * taps * LANES_SIZE * sizeof(float));
	for (size_t i = 0; i < c->pass->n; i += p->examples) {
		const struct planes some = planes_from(c, i);
		for (size_t k = 0; k < part->count; k++)
			backward_some(c, part, &some, i, k);
	}
	for (size_t k = 0; k < count * taps; k++) {
		lanes16 sum = LANES_AT(lanes + k * LANES_SIZE);
		gradient[first * taps + k] = lanes_fold(&sum);
	}
	for (size_t o = 0; c->v.bias && o < count; o++)
		bias[first + o] = norm_sums_first(&sums[o]);
}

static void
backward_groups(const struct pass *c, size_t first, size_t count, float *own)
{
	const struct plan *p = &c->p;
	struct part part = {.first = first, .count = count, .own = own};

	for (size_t k = 0; k < count; k++)
		turn(c, first + k, own + p->turned + k * p->in * p->out * p->kernel);
	for (; part.from < p->out; part.from = part.to) {
		part.to = part.from + p->some < p->out ? part.from + p->some : p->out;
		backward_part(c, &part);
	}
}

static void
backward(const struct layer *l, const struct backend_pass *pass)
{
	const struct operands v = operands_of(l, pass);

	run(l, pass, backward_groups);
	operands_give(l, pass, PARAM_WEIGHT, v.work);
	if (v.bias)
		operands_give(l, pass, PARAM_BIAS, v.work + l->param[PARAM_WEIGHT].count);
}

const struct backend_layer grouped_passes = {
    .need = need, .forward = forward, .backward = backward};
