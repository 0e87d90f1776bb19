#include "cpu_dense.h"

#include "backend.h"
#include "cpu.h"
#include "curves.h"
#include "elements.h"
#include "lanes.h"
#include "layer.h"
#include "operands.h"
#include "runs.h"

/* dy times the slope, worked out from y or from x. */
static void
run_back(
    const struct layer *l, const struct backend_pass *p, elements_fn *fn, bool output, bool curve)
{
	const struct operands v = operands_of(l, p);

	if (v.dx[0])
		elements_run(p->team,
		    &(struct elements){.fn = fn,
			.to = v.dx[0],
			.a = v.dy,
			.b = output ? v.y : v.x[0],
			.n = p->n * l->out.size,
			.add = l->add[0],
			.curve = curve});
}

static void
run_forward(const struct layer *l, const struct backend_pass *p, elements_fn *fn, bool curve)
{
	const struct operands v = operands_of(l, p);

	elements_run(p->team,
	    &(struct elements){
		.fn = fn, .to = v.y, .a = v.x[0], .n = p->n * l->out.size, .curve = curve});
}

#define SLOPE_PASSES(name, output, slope) \
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
	static void name##_back(float *dx, const float *dy, const float *a, size_t n, bool add) \
	{ \
		name##_gradient(dx, dy, a, n, add); \
	} \
	static void name##_backward(const struct layer *l, const struct backend_pass *p) \
	{ \
		run_back(l, p, name##_back, output, false); \
	}

SLOPE_PASSES(relu6, true, ((a[i] > 0) & (a[i] < 6)) ? 1.0f : 0.0f)
SLOPE_PASSES(sigmoid, true, a[i] * (1.0f - a[i]))
SLOPE_PASSES(tanh, true, 1.0f - a[i] * a[i])
SLOPE_PASSES(hardswish, false, a[i] <= -3 ? 0.0f : a[i] >= 3 ? 1.0f : a[i] * (1.0f / 3.0f) + 0.5f)

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

#define FORWARD(name, call, curve) \
	static void name##_elements(float *y, const float *x, const float *b, size_t n, bool add) \
	{ \
		(void)b; \
		(void)add; \
		call(y, x, n); \
	} \
	static void name##_forward(const struct layer *l, const struct backend_pass *p) \
	{ \
		run_forward(l, p, name##_elements, curve); \
	}

FORWARD(relu6, relu6, false)
FORWARD(hardswish, hardswish, false)
FORWARD(sigmoid, curves_sigmoid, true)
FORWARD(tanh, curves_tanh, true)
FORWARD(silu, curves_silu, true)
FORWARD(gelu_erf, curves_gelu, true)
FORWARD(gelu_tanh, curves_gelu_tanh, true)

static void
gelu_forward(const struct layer *l, const struct backend_pass *p)
{
	(l->spec.tanh_form ? gelu_tanh_forward : gelu_erf_forward)(l, p);
}

/* Slopes are worked out in pieces that stay in the cache. */
#define PIECE ((size_t)512)

#define CURVE_PASSES(name, curve) \
	static void name##_back(float *dx, const float *dy, const float *x, size_t n, bool add) \
	{ \
		float slope[PIECE]; \
		for (size_t i = 0; i < n; i += PIECE) { \
			size_t some = n - i < PIECE ? n - i : PIECE; \
			curve(slope, x + i, some); \
			runs_product(dx + i, dy + i, slope, some, add); \
		} \
	} \
	static void name##_backward(const struct layer *l, const struct backend_pass *p) \
	{ \
		run_back(l, p, name##_back, false, true); \
	}

CURVE_PASSES(silu, curves_silu_slope)
CURVE_PASSES(gelu_erf, curves_gelu_slope)
CURVE_PASSES(gelu_tanh, curves_gelu_tanh_slope)

static void
gelu_backward(const struct layer *l, const struct backend_pass *p)
{
	(l->spec.tanh_form ? gelu_tanh_backward : gelu_erf_backward)(l, p);
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
    .forward = silu_forward, .backward = silu_backward};
const struct backend_layer activation_gelu_passes = {
    .forward = gelu_forward, .backward = gelu_backward};
