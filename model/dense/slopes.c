#include "cpu.h"

#include <stdbool.h>

#include "backend.h"
#include "cpu_dense.h"
#include "curves.h"
#include "lanes.h"
#include "layer.h"
#include "operands.h"
#include "team.h"

/* LeakyReLU and ELU: curves with a number of the layer's own; the slope is told from y, whose sign is that of x. And the product with such
 * a number. */
struct pass {
	const struct layer *l;
	struct operands v;
};

static void
run(const struct layer *l, const struct backend_pass *p, double each,
    void (*fn)(void *arg, size_t first, size_t count, unsigned lane))
{
	struct pass c = {l, operands_of(l, p)};

	team_elements(p->team, p->n * l->out.size, each, fn, &c);
}

/* Of what nobody asks for the gradient: nothing. */
static void
back(const struct layer *l, const struct backend_pass *p,
    void (*fn)(void *arg, size_t first, size_t count, unsigned lane))
{
	if (operands_of(l, p).dx[0])
		run(l, p, TEAM_MOVE, fn);
}

CPU_CLONES static void
leak(float *y, const float *x, size_t n, float slope)
{
	LANES_FREE
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] > 0 ? x[i] : x[i] * slope;
}

static void
leak_piece(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;

	(void)lane;
	leak(c->v.y + first, c->v.x[0] + first, count, c->l->spec.alpha);
}

static void
leaky_relu_forward(const struct layer *l, const struct backend_pass *p)
{
	run(l, p, TEAM_MOVE, leak_piece);
}

CPU_CLONES static void
leak_back(float *dx, const float *dy, const float *y, size_t n, float slope, bool add)
{
	if (add) {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] += dy[i] * (y[i] > 0 ? 1.0f : slope);
	} else {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] = dy[i] * (y[i] > 0 ? 1.0f : slope);
	}
}

static void
leak_back_piece(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;

	(void)lane;
	leak_back(c->v.dx[0] + first, c->v.dy + first, c->v.y + first, count, c->l->spec.alpha,
	    c->l->add[0]);
}

static void
leaky_relu_backward(const struct layer *l, const struct backend_pass *p)
{
	back(l, p, leak_back_piece);
}

/* Between curves, so many elements stay near. */
#define PIECE ((size_t)512)
#define CURVE 40.0 /* an element of it, in multiply-adds */

/* e^x - 1 = 2 t / (1 - t) with t = tanh(x / 2): near 0 nothing is lost. */
CPU_CLONES static void
bend(float *y, const float *x, const float *tanh, size_t n, float alpha)
{
	for (size_t i = 0; i < n; i++) {
		float below = 2 * tanh[i] / (1 - tanh[i]) * alpha;
		y[i] = x[i] > 0 ? x[i] : below;
	}
}

CPU_CLONES static void
half(float *to, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = x[i] < 0 ? x[i] * 0.5f : x[i] == x[i] ? 0 : x[i];
}

static void
bend_piece(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;
	const float *x = c->v.x[0] + first;
	float *y = c->v.y + first, tanh[PIECE];

	(void)lane;
	for (size_t i = 0; i < count; i += PIECE) {
		size_t some = count - i < PIECE ? count - i : PIECE;
		half(tanh, x + i, some);
		curves_tanh(tanh, tanh, some);
		bend(y + i, x + i, tanh, some, c->l->spec.alpha);
	}
}

static void
elu_forward(const struct layer *l, const struct backend_pass *p)
{
	run(l, p, CURVE, bend_piece);
}

CPU_CLONES static void
bend_back(float *dx, const float *dy, const float *y, size_t n, float alpha, bool add)
{
	if (add) {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] += dy[i] * (y[i] > 0 ? 1.0f : y[i] + alpha);
	} else {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			dx[i] = dy[i] * (y[i] > 0 ? 1.0f : y[i] + alpha);
	}
}

static void
bend_back_piece(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;

	(void)lane;
	bend_back(c->v.dx[0] + first, c->v.dy + first, c->v.y + first, count, c->l->spec.alpha,
	    c->l->add[0]);
}

static void
elu_backward(const struct layer *l, const struct backend_pass *p)
{
	back(l, p, bend_back_piece);
}

CPU_CLONES static void
times(float *to, const float *from, size_t n, float by, bool add)
{
	if (add) {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			to[i] += from[i] * by;
	} else {
		LANES_FREE
		for (size_t i = 0; i < n; i++)
			to[i] = from[i] * by;
	}
}

static void
scale_piece(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;

	(void)lane;
	times(c->v.y + first, c->v.x[0] + first, count, c->l->spec.alpha, false);
}

static void
scale_forward(const struct layer *l, const struct backend_pass *p)
{
	run(l, p, TEAM_MOVE, scale_piece);
}

static void
scale_back_piece(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct pass *c = arg;

	(void)lane;
	times(c->v.dx[0] + first, c->v.dy + first, count, c->l->spec.alpha, c->l->add[0]);
}

static void
scale_backward(const struct layer *l, const struct backend_pass *p)
{
	back(l, p, scale_back_piece);
}

const struct backend_layer slopes_scale_passes = {
    .forward = scale_forward, .backward = scale_backward};
const struct backend_layer slopes_leaky_relu_passes = {
    .forward = leaky_relu_forward, .backward = leaky_relu_backward};
const struct backend_layer slopes_elu_passes = {.forward = elu_forward, .backward = elu_backward};
