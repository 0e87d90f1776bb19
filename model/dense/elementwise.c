#include "cpu_dense.h"

#include <string.h>

#include "backend.h"
#include "cpu.h"
#include "draw.h"
#include "elements.h"
#include "lanes.h"
#include "layer.h"
#include "net_spec.h"
#include "operands.h"
#include "runs.h"
#include "team.h"

CPU_CLONES static void
rectify(float *y, const float *x, size_t n)
{
	LANES_FREE
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] < 0 ? 0 : x[i];
}

static void
relu(float *y, const float *x, const float *b, size_t n, bool add)
{
	(void)b;
	(void)add;
	rectify(y, x, n);
}

/* dx = dy where `gate` is positive, elsewhere 0; added to dx if `add`. */
CPU_CLONES static void
gate_gradient(float *dx, const float *dy, const float *gate, size_t n, bool add)
{
	if (add) {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] += gate[i] > 0 ? dy[i] : 0;
	} else {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] = gate[i] > 0 ? dy[i] : 0;
	}
}

static void
relu_back(float *dx, const float *dy, const float *y, size_t n, bool add)
{
	gate_gradient(dx, dy, y, n, add);
}

static void
hand_on(float *to, const float *from, const float *b, size_t n, bool add)
{
	(void)b;
	runs_give(to, from, n, add);
}

/* Gives dy to dx unchanged. */
static void
pass_gradient(
    const struct layer *l, const struct operands *v, size_t i, size_t n, struct team *team)
{
	if (v->dx[i] && v->dx[i] != v->dy)
		elements_run(team,
		    &(struct elements){
			.fn = hand_on, .to = v->dx[i], .a = v->dy, .n = n, .add = l->add[i]});
}

/* Which elements of y are positive: bit k of byte j of a block is that of element k SIDE + j. */
#define SIDE ((size_t)64)
#define BLOCK (8 * SIDE)
/* Of an element, in multiply-adds. */
#define SIGN 10.0

CPU_CLONES static void
store_signs(uint8_t *to, const float *y, size_t n)
{
	for (size_t i = 0; i < n; i += BLOCK, to += SIDE) {
		memset(to, 0, SIDE);
		for (size_t k = 0; k < 8 && i + k * SIDE < n; k++) {
			const float *some = y + i + k * SIDE;
			size_t count = n - i - k * SIDE;
			count = count < SIDE ? count : SIDE;
			for (size_t j = 0; j < count; j++)
				to[j] |= (uint8_t)((some[j] > 0) << k);
		}
	}
}

/* dx = dy where the bit is set, elsewhere 0; added to dx if `add`. */
CPU_CLONES static void
sign_gradient(float *dx, const float *dy, const uint8_t *signs, size_t n, bool add)
{
	for (size_t i = 0; i < n; i += SIDE) {
		const uint8_t *from = signs + i / BLOCK * SIDE;
		size_t k = i / SIDE % 8, count = n - i < SIDE ? n - i : SIDE;
		for (size_t j = 0; j < count; j++) {
			float g = from[j] >> k & 1 ? dy[i + j] : 0;
			dx[i + j] = add ? dx[i + j] + g : g;
		}
	}
}

static enum err
relu_need(struct layer *l, struct why *why)
{
	(void)why;
	l->saved = (l->out.size + BLOCK - 1) / BLOCK * SIDE;
	return ERR_OK;
}

/* A pass that keeps signs, by examples. */
struct pass {
	const struct layer *l;
	struct operands v;
};

static void
run(const struct layer *l, const struct backend_pass *p,
    void (*fn)(void *arg, size_t first, size_t count, unsigned lane))
{
	struct pass c = {l, operands_of(l, p)};

	team_share(p->team,
	    &(struct team_work){
		.n = p->n, .least = 1, .each = SIGN * (double)l->out.size, .fn = fn, .arg = &c});
}

static void
rectify_examples(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;
	size_t n = c->l->out.size;

	(void)lane;
	for (size_t i = first; i < first + count; i++) {
		float *y = c->v.y + i * n;
		rectify(y, c->v.x[0] + i * n, n);
		store_signs((uint8_t *)c->v.kept + i * c->l->saved, y, n);
	}
}

static void
gate_examples(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;
	size_t n = c->l->out.size;

	(void)lane;
	for (size_t i = first; i < first + count; i++)
		sign_gradient(c->v.dx[0] + i * n, c->v.dy + i * n,
		    (const uint8_t *)c->v.kept + i * c->l->saved, n, c->l->add[0]);
}

/* The signs are kept where the plan does not keep y. */
static void
relu_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);

	if (v.kept)
		run(l, p, rectify_examples);
	else
		elements_run(p->team,
		    &(struct elements){
			.fn = relu, .to = v.y, .a = v.x[0], .n = p->n * l->out.size});
}

static void
relu_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t n = l->out.size;

	if (v.dx[0] && !v.kept)
		elements_run(p->team,
		    &(struct elements){.fn = relu_back,
			.to = v.dx[0],
			.a = v.dy,
			.b = v.y,
			.n = p->n * n,
			.add = l->add[0]});
	if (v.dx[0] && v.kept)
		run(l, p, gate_examples);
}

const struct backend_layer elementwise_relu_passes = {
    .need = relu_need, .forward = relu_forward, .backward = relu_backward};

/* What is dropped alone: elements, or channels. */
static size_t
drop_units(const struct layer *l)
{
	return l->spec.type == LAYER_DROPOUT2D ? l->out.c : l->out.size;
}

static enum err
dropout_need(struct layer *l, struct why *why)
{
	(void)why;
	l->saved = drop_units(l);
	l->work = l->out.size;
	return ERR_OK;
}

/* Numbers in [0, 1) become what elements are multiplied by. */
CPU_CLONES static void
make_mask(float *mask, size_t n, float rate)
{
	float scale = 1 / (1 - rate);

	for (size_t i = 0; i < n; i++)
		mask[i] = mask[i] < rate ? 0 : scale;
}

CPU_CLONES static void
store_mask(uint8_t *stays, const float *mask, size_t n)
{
	for (size_t i = 0; i < n; i++)
		stays[i] = mask[i] > 0;
}

CPU_CLONES static void
load_mask(float *mask, const uint8_t *stays, size_t n, float rate)
{
	float scale = 1 / (1 - rate);

	for (size_t i = 0; i < n; i++)
		mask[i] = stays[i] ? scale : 0;
}

/* From one factor for each unit to one for each element, in place: the last unit first, so that none is written over before. */
static void
spread_mask(float *mask, size_t units, size_t n)
{
	size_t area = n / units;

	for (size_t u = units; area > 1 && u-- > 0;) {
		float factor = mask[u];
		for (size_t i = 0; i < area; i++)
			mask[u * area + i] = factor;
	}
}

/* Of each unit is kept whether it stays. Example by example, so that the factors need little room. */
static void
dropout_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t n = l->out.size, units = drop_units(l);
	bool drops = p->training && p->draw;

	if (!drops && v.y != v.x[0])
		memcpy(v.y, v.x[0], p->n * n * sizeof(float));
	for (uint32_t i = 0; drops && i < p->n; i++) {
		uint8_t *stays = v.kept ? (uint8_t *)v.kept + i * units : NULL;
		struct draw draw = *p->draw;
		draw.example += i;
		if (p->again) {
			load_mask(v.work, stays, units, l->spec.rate);
		} else {
			draw_floats(&draw, l->index, units, v.work, units);
			make_mask(v.work, units, l->spec.rate);
			if (stays)
				store_mask(stays, v.work, units);
		}
		spread_mask(v.work, units, n);
		runs_product(v.y + i * n, v.x[0] + i * n, v.work, n, false);
	}
}

static void
dropout_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t n = l->out.size, units = drop_units(l);

	if (!p->draw)
		pass_gradient(l, &v, 0, p->n * n, p->team);
	for (uint32_t i = 0; p->draw && v.dx[0] && i < p->n; i++) {
		load_mask(v.work, (const uint8_t *)v.kept + i * units, units, l->spec.rate);
		spread_mask(v.work, units, n);
		runs_product(v.dx[0] + i * n, v.dy + i * n, v.work, n, l->add[0]);
	}
}

const struct backend_layer elementwise_dropout_passes = {
    .need = dropout_need, .forward = dropout_forward, .backward = dropout_backward};

static void
flatten_forward(const struct layer *l, const struct backend_pass *p)
{
	(void)l;
	(void)p;
}

static void
flatten_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	pass_gradient(l, &v, 0, p->n * l->out.size, p->team);
}

const struct backend_layer elementwise_flatten_passes = {
    .forward = flatten_forward, .backward = flatten_backward};

CPU_CLONES static void
add_two(float *y, const float *a, const float *b, size_t n)
{
	LANES_FREE
	for (size_t i = 0; i < n; i++)
		y[i] = a[i] + b[i];
}

static void
add_pair(float *y, const float *a, const float *b, size_t n, bool add)
{
	(void)add;
	add_two(y, a, b, n);
}

static void
add_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	struct elements e = {.fn = hand_on, .to = v.y, .a = v.x[0], .n = p->n * l->out.size};

	if (l->spec.input_count > 1) {
		e.fn = add_pair;
		e.b = v.x[1];
	}
	elements_run(p->team, &e);
	for (size_t i = 2; i < l->spec.input_count; i++)
		elements_run(p->team,
		    &(struct elements){
			.fn = hand_on, .to = v.y, .a = v.x[i], .n = e.n, .add = true});
}

static void
add_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	for (size_t i = 0; i < l->spec.input_count; i++)
		pass_gradient(l, &v, i, p->n * l->out.size, p->team);
}

const struct backend_layer elementwise_add_passes = {
    .forward = add_forward, .backward = add_backward};
