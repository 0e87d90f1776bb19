#include "cpu_spatial.h"

#include <string.h>

#include "conv_dense.h"
#include "conv_forward.h"
#include "conv_input.h"
#include "cpu.h"
#include "gemm.h"
#include "num.h"
#include "runs.h"
#include "sgd.h"
#include "team.h"

#define LANES GEMM_PAST /* floats that copies and kernels may run past their end */

/* The way back: sizes, and where the parts of the workspace begin, in floats. */
struct plan {
	size_t height, width; /* of a padded plane */
	size_t deep; /* channels, rounded up to whole lanes: floats per pixel of dx */
	size_t run, deep_run; /* floats under one row of the kernel, in whole lanes: of x, of dx */
	size_t pixels, deep_pixels; /* x and dx, padded, channels innermost */
	size_t spots, at, value; /* the elements of dy that are not zero */
	size_t weights; /* [out][kh][deep_run], or turned; in the end the gradient as it is given */
	size_t gradient, bias; /* [out][kh][run] */
	size_t places; /* of one channel of dy: where in the padded input the kernel begins */
	size_t end;
	size_t lane; /* of a thread: the most of this way and of those of dense and input */
	struct conv_dense dense;
	struct conv_input input;
};

/* False if it is too large to count. */
static bool
plan(struct plan *p, const struct layer *l)
{
	const uint32_t *kernel = l->spec.kernel, *padding = l->spec.padding;
	size_t out = (size_t)l->out.h * l->out.w, pixels;
	struct planes_room room = {0, LANES, SIZE_MAX};

	*p = (struct plan){.height = l->in[0].h + 2 * (size_t)padding[0],
	    .width = l->in[0].w + 2 * (size_t)padding[1]};
	if (!num_round_up(l->in[0].c, LANES, &p->deep) ||
	    !num_mul(l->in[0].c, kernel[1], &p->run) || !num_round_up(p->run, LANES, &p->run) ||
	    !num_mul(p->deep, kernel[1], &p->deep_run) || !num_mul(p->height, p->width, &pixels) ||
	    !num_mul(pixels, p->deep, &pixels))
		return false;
	if (pixels > UINT32_MAX ||
	    !planes_take(&room, &p->pixels, p->height, p->width, l->in[0].c) ||
	    !planes_take(&room, &p->deep_pixels, pixels, 1, 1) ||
	    !planes_take(&room, &p->spots, out, 1, 1) || !planes_take(&room, &p->at, out, 1, 1) ||
	    !planes_take(&room, &p->value, out, 1, 1))
		return false;
	p->lane = room.end;
	room.end = 0;
	if (!planes_take(&room, &p->weights, l->out.c, kernel[0], p->deep_run) ||
	    !planes_take(&room, &p->gradient, l->out.c, kernel[0], p->run) ||
	    !planes_take(&room, &p->bias, l->out.c, 1, 1) ||
	    !planes_take(&room, &p->places, out, 1, 1) || !conv_dense_plan(&p->dense, l) ||
	    !conv_input_plan(&p->input, l))
		return false;
	p->lane = p->dense.lane > p->lane ? p->dense.lane : p->lane;
	p->lane = p->input.lane > p->lane ? p->input.lane : p->lane;
	p->end = room.end;
	return true;
}

static enum err
need(struct layer *l, struct why *why)
{
	struct conv_forward f;
	struct plan p;

	if (l->spec.groups > 1)
		return grouped_passes.need(l, why);
	if (!conv_forward_plan(&f, l) || !plan(&p, l))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", l->spec.name);
	l->work = p.end;
	l->work_lane = f.lane > p.lane ? f.lane : p.lane;
	return ERR_OK;
}

/* The way back over a batch. */
struct pass {
	const struct layer *l;
	const struct backend_pass *pass;
	struct operands v;
	struct plan p;
	size_t chunks; /* of channels, whose weights' gradients are pieces */
	size_t groups; /* of examples, whose dx are pieces */
	bool dense; /* most of dy is not zero */
};

static bool
begin(struct pass *c, const struct layer *l, const struct backend_pass *pass)
{
	*c = (struct pass){.l = l, .pass = pass, .v = operands_of(l, pass)};
	if (!plan(&c->p, l))
		return false;
	c->p.dense.arithmetic = c->p.input.arithmetic = pass->arithmetic;
	return true;
}

static struct team *
team_of(const struct layer *l, const struct backend_pass *pass)
{
	double each = (double)l->param[PARAM_WEIGHT].count * l->out.h * l->out.w;

	return team_worth(pass->team, each * pass->n);
}

static void
forward(const struct layer *l, const struct backend_pass *pass)
{
	if (l->spec.groups > 1)
		grouped_passes.forward(l, pass);
	else
		conv_forward_run(l, pass, team_of(l, pass));
}

/* The way back, for dx. */
static void
from_pixels(const struct layer *l, const struct plan *p, const float *pixels, float *dx, bool add)
{
	uint32_t h = l->in[0].h, w = l->in[0].w;

	for (uint32_t c = 0; c < l->in[0].c; c++)
		for (uint32_t y = 0; y < h; y++, dx += w) {
			const float *from = pixels +
			    ((y + l->spec.padding[0]) * p->width + l->spec.padding[1]) * p->deep +
			    c;
			if (add)
				for (uint32_t i = 0; i < w; i++)
					dx[i] += from[i * p->deep];
			else
				for (uint32_t i = 0; i < w; i++)
					dx[i] = from[i * p->deep];
		}
}

static void
find_places(const struct layer *l, const struct plan *p, uint32_t *places)
{
	const uint32_t *stride = l->spec.stride;

	for (size_t y = 0; y < l->out.h; y++)
		for (size_t x = 0; x < l->out.w; x++)
			*places++ = (uint32_t)(y * stride[0] * p->width + x * stride[1]);
}

CPU_CLONES static void
scale(uint32_t *at, const uint32_t *spots, size_t n, uint32_t factor)
{
	for (size_t i = 0; i < n; i++)
		at[i] = spots[i] * factor;
}

/* Of some output channels: weight[out][c][kh][kw] to [out][kh][kw][deep], zeros behind the channels. */
static void
spread_weights(const struct pass *c, size_t first, size_t count)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	size_t in = l->in[0].c, area = (size_t)l->spec.kernel[0] * l->spec.kernel[1];
	size_t spread = area * p->deep;
	float *to = c->v.work + p->weights + first * spread;

	memset(to, 0, count * spread * sizeof(float));
	for (size_t o = first; o < first + count; o++, to += spread)
		runs_turn(to, p->deep, c->v.weight + o * in * area, area, in, area);
}

/* Of some channels, input's or output's. */
static void
turn_weights(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;

	(void)lane;
	if (c->dense)
		conv_input_turn(c->l, first, count, c->v.weight, c->v.work + c->p.weights);
	else
		spread_weights(c, first, count);
}

/* The gradient of some output channels from [out][kh][run] to the layout of the weights. */
static void
gather_gradient(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;
	const struct layer *l = c->l;
	size_t rows = l->spec.kernel[0], width = l->spec.kernel[1], in = l->in[0].c, run = c->p.run;
	const float *from = c->v.work + c->p.gradient + first * rows * run;
	float *to = c->v.work + c->p.weights + first * in * rows * width;

	(void)lane;
	for (size_t o = 0; o < count; o++, from += rows * run, to += in * rows * width)
		if (run == width * in)
			runs_turn(to, rows * width, from, in, rows * width, in);
		else
			for (size_t y = 0; y < rows; y++)
				runs_turn(
				    to + y * width, rows * width, from + y * run, in, width, in);
}

/* What is worked out of an example's dy. */
enum parts { WEIGHTS = 1, INPUT = 2 };

/* One channel of one example's dy. work: the pass's; own: the lane's. */
static void
backward_channel(const struct pass *c, float *own, uint32_t o, const float *dy, int parts)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	uint32_t kh = l->spec.kernel[0], depth = l->in[0].c;
	float *work = c->v.work, *value = own + p->value;
	uint32_t *spots = (uint32_t *)(void *)(own + p->spots);
	uint32_t *at = (uint32_t *)(void *)(own + p->at);
	size_t n = gemm_find(c->pass->arithmetic, spots, value, dy,
	    (const uint32_t *)(void *)(work + p->places), (size_t)l->out.h * l->out.w);
	struct gemm_spots s = {n, at, value};

	if (parts & WEIGHTS) {
		/* In a register: other threads write beside it. */
		float sum = work[p->bias + o];
		for (size_t i = 0; c->v.bias && i < n; i++)
			sum += value[i];
		work[p->bias + o] = sum;
		scale(at, spots, n, depth);
		for (uint32_t k = 0; k < kh; k++)
			gemm_gather(c->pass->arithmetic,
			    work + p->gradient + ((size_t)o * kh + k) * p->run,
			    own + p->pixels + k * p->width * depth, &s, p->run);
	}
	if (parts & INPUT) {
		scale(at, spots, n, (uint32_t)p->deep);
		for (uint32_t k = 0; k < kh; k++)
			gemm_scatter(c->pass->arithmetic,
			    own + p->deep_pixels + k * p->width * p->deep,
			    work + p->weights + ((size_t)o * kh + k) * p->deep_run, &s,
			    p->deep_run);
	}
}

/* Output channels [from, to) of an example. */
static void
backward_example(
    const struct pass *c, size_t index, unsigned lane, uint32_t from, uint32_t to, int parts)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	float *own = operands_lane(l, c->pass, lane);
	size_t out = (size_t)l->out.h * l->out.w;
	const float *dy = c->v.dy + index * l->out.size;

	if (parts & WEIGHTS)
		conv_dense_pixels(l, c->v.x[0] + index * l->in[0].size, own + p->pixels);
	if (parts & INPUT)
		memset(own + p->deep_pixels, 0, p->height * p->width * p->deep * sizeof(float));
	for (uint32_t o = from; o < to; o++)
		backward_channel(c, own, o, dy + o * out, parts);
	if (parts & INPUT)
		from_pixels(
		    l, p, own + p->deep_pixels, c->v.dx[0] + index * l->in[0].size, l->add[0]);
}

/* Of a group of examples. */
static void
backward_input(const struct pass *c, size_t group, unsigned lane)
{
	const struct layer *l = c->l;
	size_t first = c->pass->n * group / c->groups;
	size_t count = c->pass->n * (group + 1) / c->groups - first;

	if (c->dense)
		conv_input_run(&c->p.input, l,
		    conv_dense_is_point(l) ? c->v.weight : c->v.work + c->p.weights,
		    c->v.dy + first * l->out.size, c->v.dx[0] + first * l->in[0].size, count,
		    operands_lane(l, c->pass, lane));
	else
		backward_example(c, first, lane, 0, l->out.c, INPUT);
}

/* Of some channels, all examples in their order. */
static void
backward_weights(const struct pass *c, size_t chunk, unsigned lane)
{
	const struct layer *l = c->l;
	const struct plan *p = &c->p;
	size_t all = l->out.c, rows = l->spec.kernel[0] * p->run;
	uint32_t from = (uint32_t)(all * chunk / c->chunks);
	uint32_t to = (uint32_t)(all * (chunk + 1) / c->chunks);
	float *gradient = c->v.work + p->gradient, *bias = c->v.work + p->bias;

	if (c->dense) {
		const struct conv_dense_part part = conv_dense_part(l, chunk, c->chunks);
		const struct conv_dense_sums sums = {gradient, c->v.bias ? bias : NULL};
		conv_dense_weights(
		    &p->dense, l, &c->v, c->pass->n, &part, &sums, operands_lane(l, c->pass, lane));
		return;
	}
	memset(gradient + from * rows, 0, (to - from) * rows * sizeof(float));
	memset(bias + from, 0, (to - from) * sizeof(float));
	for (size_t i = 0; i < c->pass->n; i++)
		backward_example(c, i, lane, from, to, WEIGHTS);
}

/* Some threads begin with a chunk of the weights, others with the examples, whose groups lie between the chunks. */
static void
backward_piece(void *arg, size_t piece, unsigned lane)
{
	const struct pass *c = arg;
	size_t groups = c->v.dx[0] ? c->groups : 0;

	if (piece == 0)
		backward_weights(c, 0, lane);
	else if (piece <= groups)
		backward_input(c, piece - 1, lane);
	else
		backward_weights(c, piece - groups, lane);
}

/* One thread turns each example's x round once for both; several cut the one by examples, the other by channels. */
static void
backward_all(struct pass *c)
{
	struct team *team = team_of(c->l, c->pass);
	const struct plan *p = &c->p;
	const struct layer *l = c->l;
	int parts = c->v.dx[0] ? WEIGHTS | INPUT : WEIGHTS;

	if (c->dense || team) {
		size_t joined = c->dense ? p->input.joined : 1, threads = team_active(team);
		/* The weights are about half of the work, and each chunk of them turns all examples. */
		size_t chunks = parts & INPUT ? (threads + 1) / 2 : threads;
		c->chunks = chunks < l->out.c ? chunks : l->out.c;
		c->groups = team_groups(team, c->pass->n, joined);
		team_run(team, c->chunks + (parts & INPUT ? c->groups : 0), backward_piece, c);
		return;
	}
	memset(c->v.work + p->gradient, 0, l->out.c * l->spec.kernel[0] * p->run * sizeof(float));
	memset(c->v.work + p->bias, 0, l->out.c * sizeof(float));
	for (size_t i = 0; i < c->pass->n; i++)
		backward_example(c, i, 0, 0, l->out.c, parts);
}

static void
give(const struct pass *c)
{
	const struct layer *l = c->l;
	const float *gradient = c->v.work + c->p.gradient;

	if (l->param[PARAM_WEIGHT].fan_in > l->in[0].c || l->in[0].c != c->p.run) {
		team_share(c->pass->team,
		    &(struct team_work){.n = l->out.c,
			.least = 1,
			.each = TEAM_MOVE * (double)l->param[PARAM_WEIGHT].fan_in,
			.fn = gather_gradient,
			.arg = (void *)(uintptr_t)c});
		gradient = c->v.work + c->p.weights;
	}
	operands_give(l, c->pass, PARAM_WEIGHT, gradient);
	if (c->v.bias)
		operands_give(l, c->pass, PARAM_BIAS, c->v.work + c->p.bias);
}

static void
backward(const struct layer *l, const struct backend_pass *pass)
{
	struct pass c;

	if (l->spec.groups > 1) {
		grouped_passes.backward(l, pass);
		return;
	}
	if (!begin(&c, l, pass))
		return;
	c.dense = conv_dense_pays(c.v.dy, pass->n * l->out.size);
	if (!c.dense)
		find_places(l, &c.p, (uint32_t *)(void *)(c.v.work + c.p.places));
	if (c.v.dx[0] && !(c.dense && conv_dense_is_point(l)))
		team_share(pass->team,
		    &(struct team_work){.n = c.dense ? l->in[0].c : l->out.c,
			.least = 1,
			.each = TEAM_MOVE * (double)l->param[PARAM_WEIGHT].count /
			    (c.dense ? l->in[0].c : l->out.c),
			.fn = turn_weights,
			.arg = &c});
	backward_all(&c);
	give(&c);
}

const struct backend_layer conv_passes = {.need = need, .forward = forward, .backward = backward};
