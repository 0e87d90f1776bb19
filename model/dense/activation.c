#include "cpu_dense.h"

#include "cpu.h"
#include "curves.h"
#include "lanes.h"

/* Of an activation: the slope at each element, from y or from x. */
#define SLOPE_PASSES(name, from, slope) \
	CPU_CLONES static void name##_gradient( \
	    float *dx, const float *dy, const float *a, size_t n, bool add) \
	{ \
		if (add) { \
			LANES_FREE \
			for (size_t i = 0; i < n; i++) \
				dx[i] += dy[i] * (slope); \
		} else { \
			LANES_FREE \
			for (size_t i = 0; i < n; i++) \
				dx[i] = dy[i] * (slope); \
		} \
	} \
	static void name##_backward(const struct layer *l, const struct backend_pass *p) \
	{ \
		const struct operands v = operands_of(l, p); \
		if (v.dx[0]) \
			name##_gradient(v.dx[0], v.dy, v.from, p->n * l->out.size, l->add[0]); \
	}

SLOPE_PASSES(relu6, y, (a[i] > 0 ? 1.0f : 0.0f) * (a[i] < 6 ? 1.0f : 0.0f))
SLOPE_PASSES(sigmoid, y, a[i] * (1.0f - a[i]))
SLOPE_PASSES(tanh, y, 1.0f - a[i] * a[i])
SLOPE_PASSES(hardswish, x[0], a[i] <= -3 ? 0.0f : a[i] >= 3 ? 1.0f : a[i] * (1.0f / 3.0f) + 0.5f)

CPU_CLONES static void
relu6(float *y, const float *x, size_t n)
{
	LANES_FREE
	for (size_t i = 0; i < n; i++) {
		float a = x[i] < 0 ? 0 : x[i];
		y[i] = a > 6 ? 6 : a;
	}
}

CPU_CLONES static void
hardswish(float *y, const float *x, size_t n)
{
	LANES_FREE
	for (size_t i = 0; i < n; i++) {
		float a = x[i] + 3 < 0 ? 0 : x[i] + 3;
		a = a > 6 ? 6 : a;
		y[i] = x[i] * a * (1.0f / 6.0f);
	}
}

#define FORWARD(name, call) \
	static void name##_forward(const struct layer *l, const struct backend_pass *p) \
	{ \
		const struct operands v = operands_of(l, p); \
		call(v.y, v.x[0], p->n * l->out.size); \
	}

FORWARD(relu6, relu6)
FORWARD(hardswish, hardswish)
FORWARD(sigmoid, curves_sigmoid)
FORWARD(tanh, curves_tanh)
FORWARD(silu, curves_silu)

static void
gelu_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	(l->spec.tanh_form ? curves_gelu_tanh : curves_gelu)(v.y, v.x[0], p->n * l->out.size);
}

CPU_CLONES static void
multiply_slope(float *dx, const float *dy, const float *slope, size_t n, bool add)
{
	if (add)
		for (size_t i = 0; i < n; i++)
			dx[i] += dy[i] * slope[i];
	else
		for (size_t i = 0; i < n; i++)
			dx[i] = dy[i] * slope[i];
}

/* Slopes are worked out in pieces that stay in the cache. */
#define PIECE ((size_t)1024)

static enum err
curve_need(struct layer *l, struct why *why)
{
	(void)why;
	l->work = PIECE;
	return ERR_OK;
}

static void
curve_backward(const struct layer *l, const struct backend_pass *p,
    void (*slope)(float *slope, const float *x, size_t n))
{
	const struct operands v = operands_of(l, p);
	size_t n = p->n * l->out.size;

	for (size_t i = 0; v.dx[0] && i < n; i += PIECE) {
		size_t some = n - i < PIECE ? n - i : PIECE;
		slope(v.work, v.x[0] + i, some);
		multiply_slope(v.dx[0] + i, v.dy + i, v.work, some, l->add[0]);
	}
}

static void
silu_backward(const struct layer *l, const struct backend_pass *p)
{
	curve_backward(l, p, curves_silu_slope);
}

static void
gelu_backward(const struct layer *l, const struct backend_pass *p)
{
	curve_backward(l, p, l->spec.tanh_form ? curves_gelu_tanh_slope : curves_gelu_slope);
}

const struct backend_layer activation_relu6_passes = {
    .forward = relu6_forward, .backward = relu6_backward};
const struct backend_layer activation_sigmoid_passes = {
    .forward = sigmoid_forward, .backward = sigmoid_backward};
const struct backend_layer activation_tanh_passes = {
    .forward = tanh_forward, .backward = tanh_backward};
const struct backend_layer activation_hardswish_passes = {
    .forward = hardswish_forward, .backward = hardswish_backward};
const struct backend_layer activation_silu_passes = {
    .need = curve_need, .forward = silu_forward, .backward = silu_backward};
const struct backend_layer activation_gelu_passes = {
    .need = curve_need, .forward = gelu_forward, .backward = gelu_backward};
