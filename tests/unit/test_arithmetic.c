/* model/ARITHMETIC.md in plain loops, one operation after the other, compared to the bit: outputs, gradients of what a layer reads and of
 * its parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "curves.h"
#include "net_trial.h"

#define N 3 /* examples */
#define LANES ((size_t)16)

/* One layer of a network, the middle one, with a gradient from outside. */
struct one {
	struct recipe recipe;
	struct net *net;
	size_t in, out, params; /* floats of an example; of all parameters */
	float *x, *w, *y, *dy, *dx, *dw; /* dw: as the layer gave it */
	float *want_y, *want_dx, *want_dw;
};

static float *
draw(size_t n, uint64_t seed, uint64_t below)
{
	float *out = calloc(n + 1, sizeof(*out));
	struct prng r;

	prng_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		out[i] = below ? (float)prng_below(&r, below) : 2 * prng_float(&r) - 1;
	return out;
}

static void
one_begin(struct one *o, const char *shape, const char *layer)
{
	static const struct net_update how = {.rate = 1, .parts = 2};
	char model[1024], data[64];
	bool words = strstr(layer, "embedding") != NULL;
	struct why why = {""};

	*o = (struct one){0};
	snprintf(model, sizeof(model),
	    "{\"layers\": [%s%s, {\"type\": \"flatten\"}], \"loss\": \"mse\"}",
	    words ? "" : "{\"type\": \"dropout\", \"rate\": 0}, ", layer);
	snprintf(data, sizeof(data), "%s", shape);
	net_trial_recipe(&o->recipe, data, model);
	o->recipe.net.arithmetic = ARITHMETIC_EXACT;
	const struct net_part part = {.spec = &o->recipe.net,
	    .first = words ? 0 : 1,
	    .last = words ? 1 : 2,
	    .max_batch = N,
	    .contexts = 1,
	    .train = true};
	if (net_new_part(&o->net, &part, &why))
		fail_msg("%s: %s", layer, why.text);
	assert_int_equal(net_prepare(o->net, &how, &why), ERR_OK);
	uint32_t s[3];
	net_output_shape(o->net, s);
	o->in = net_inputs(o->net);
	o->out = (size_t)s[0] * s[1] * s[2];
	o->params = (size_t)net_tensors(o->net)->elements;
	o->x = draw(N * o->in, 1, net_vocabulary(o->net));
	o->w = draw(o->params, 2, 0);
	o->dy = draw(N * o->out, 3, 0);
	o->want_y = calloc(N * o->out, sizeof(float));
	o->want_dx = calloc(N * o->in, sizeof(float));
	o->want_dw = calloc(o->params + 1, sizeof(float));
}

/* From weights of zero a step of rate 1 leaves the gradient, turned round. */
static void
one_run(struct one *o)
{
	static const struct net_update how = {.rate = 1, .parts = 2};
	const struct net_batch b = {.x = o->x, .n = N};
	struct net_result result;

	memcpy(net_params(o->net), o->w, o->params * sizeof(float));
	assert_int_equal(net_forward(o->net, 0, &b), ERR_OK);
	o->y = malloc(N * o->out * sizeof(float));
	memcpy(o->y, net_context_output(o->net, 0), N * o->out * sizeof(float));
	o->dx = calloc(N * o->in, sizeof(float));
	const struct net_gradients g = {
	    .output = o->dy, .input = net_vocabulary(o->net) > 0 ? NULL : o->dx, .share = 1};
	assert_int_equal(net_backward(o->net, 0, &g, &result), ERR_OK);
	memset(net_params(o->net), 0, o->params * sizeof(float));
	net_move(o->net, &how);
	o->dw = malloc((o->params + 1) * sizeof(float));
	for (size_t i = 0; i < o->params; i++)
		o->dw[i] = -net_params(o->net)[i];
}

/* Zeros of both signs are one. */
static void
same(const char *what, const float *got, const float *want, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(got[i] == want[i]))
			fail_msg(
			    "%s[%zu] is %a, in order %a", what, i, (double)got[i], (double)want[i]);
}

static void
one_end(struct one *o)
{
	one_run(o);
	same("y", o->y, o->want_y, N * o->out);
	if (net_vocabulary(o->net) == 0)
		same("dx", o->dx, o->want_dx, N * o->in);
	same("gradient", o->dw, o->want_dw, o->params);
	net_free(o->net);
	recipe_deinit(&o->recipe);
	float *all[] = {o->x, o->w, o->y, o->dy, o->dx, o->dw, o->want_y, o->want_dx, o->want_dw};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

/* --- Sums */

/* Ascending: a[i * a_step] b[i * b_step]. */
static float
ascend(const float *a, size_t a_step, const float *b, size_t b_step, size_t n)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i * a_step] * b[i * b_step];
	return sum;
}

static float
fold(float lanes[16])
{
	for (size_t half = LANES / 2; half > 0; half /= 2)
		for (size_t i = 0; i < half; i++)
			lanes[i] += lanes[i + half];
	return lanes[0];
}

/* In lanes; b NULL: of a. */
static float
lanes_of(const float *a, const float *b, size_t n)
{
	float lanes[16] = {0};

	for (size_t i = 0; i < n; i++)
		lanes[i % LANES] += b ? a[i] * b[i] : a[i];
	return fold(lanes);
}

/* gemm_dot's: lanes within blocks of equal length. */
static float
blocks(const float *a, const float *b, size_t n, float start)
{
	size_t count = (n + 1023) / 1024;
	size_t step = count > 1 ? ((n + count - 1) / count + 15) / 16 * 16 : n;
	float sum = start;

	for (size_t p = 0; p < n; p += step)
		sum += lanes_of(a + p, b + p, n - p < step ? n - p : step);
	return sum;
}

/* --- linear */

static void
linear_back(struct one *o, size_t rows, size_t in, size_t out)
{
	float *dw = o->want_dw, *db = dw + in * out;

	for (size_t r = 0; r < rows; r++)
		for (size_t i = 0; i < in; i++)
			o->want_dx[r * in + i] = ascend(o->dy + r * out, 1, o->w + i, in, out);
	for (size_t k = 0; k < out; k++) {
		for (size_t i = 0; i < in; i++)
			dw[k * in + i] = ascend(o->dy + k, out, o->x + i, in, rows);
		for (size_t r = 0; r < rows; r++)
			db[k] += o->dy[r * out + k];
	}
}

static void
linear(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, "\"shape\": [1100]", "{\"type\": \"linear\", \"out\": 21}");
	for (size_t i = 0; i < (size_t)N * 21; i++)
		o.want_y[i] = blocks(o.x + i / 21 * 1100, o.w + i % 21 * 1100, 1100,
		    o.w[(size_t)1100 * 21 + i % 21]);
	linear_back(&o, N, 1100, 21);
	one_end(&o);
	/* Rows of a sequence; large enough for OpenBLAS. */
	one_begin(&o, "\"shape\": [60, 70]", "{\"type\": \"linear\", \"out\": 50}");
	for (size_t i = 0; i < (size_t)N * 60 * 50; i++)
		o.want_y[i] = ascend(o.x + i / 50 * 70, 1, o.w + i % 50 * 70, 1, 70) +
		    o.w[(size_t)50 * 70 + i % 50];
	linear_back(&o, (size_t)N * 60, 70, 50);
	one_end(&o);
}

/* --- Convolutions */

struct window {
	size_t c, h, w, out, oh, ow, kh, kw, sh, sw, ph, pw, groups;
	size_t slab; /* input channels that are summed before they are added to the others */
};

/* x's element under output (r, q) and element (ky, kx) of the kernel; NULL: padding. */
static float *
under(const struct window *s, float *x, size_t c, size_t r, size_t ky, size_t q, size_t kx)
{
	size_t i = r * s->sh + ky, k = q * s->sw + kx;

	if (i < s->ph || k < s->pw || i - s->ph >= s->h || k - s->pw >= s->w)
		return NULL;
	return x + (c * s->h + i - s->ph) * s->w + k - s->pw;
}

/* One output of one channel: its sum over the input channels [first, last) of its group. */
static float
convolve(const struct window *s, float *x, const float *w, const size_t at[5], float sum)
{
	size_t first = at[0], last = at[1], r = at[2], q = at[3], base = at[4];

	for (size_t c = first; c < last; c++)
		for (size_t ky = 0; ky < s->kh; ky++)
			for (size_t kx = 0; kx < s->kw; kx++) {
				const float *v = under(s, x, base + c, r, ky, q, kx);
				sum += w[(c * s->kh + ky) * s->kw + kx] * (v ? *v : 0);
			}
	return sum;
}

static void
conv_forward(struct one *o, const struct window *s)
{
	size_t area = s->oh * s->ow, in = s->c / s->groups, weights = s->out * in * s->kh * s->kw;

	for (size_t i = 0; i < N * s->out * area; i++) {
		size_t k = i / area % s->out, base = k / (s->out / s->groups) * in;
		float *x = o->x + i / area / s->out * o->in, y = o->w[weights + k];
		const float *w = o->w + k * in * s->kh * s->kw;
		if (s->groups > 1)
			y = convolve(
			    s, x, w, (size_t[]){0, in, i % area / s->ow, i % s->ow, base}, y);
		for (size_t c = 0; s->groups == 1 && c < in; c += s->slab) {
			size_t end = c + s->slab < in ? c + s->slab : in;
			y = convolve(
				s, x, w, (size_t[]){c, end, i % area / s->ow, i % s->ow, 0}, 0) +
			    y;
		}
		o->want_y[i] = y;
	}
}

/* In one group: examples, then places that are not zero, ascending; dx: rows of the kernel before places. */
static void
conv_back(struct one *o, const struct window *s)
{
	size_t area = s->oh * s->ow, kernel = s->c * s->kh * s->kw;

	for (size_t i = 0; i < N * s->out; i++) {
		size_t k = i % s->out;
		const float *dy = o->dy + i * area;
		float *x = o->x + i / s->out * o->in, *dx = o->want_dx + i / s->out * o->in;
		for (size_t ky = 0; ky < s->kh; ky++)
			for (size_t p = 0; p < area; p++)
				for (size_t c = 0; c < s->c; c++)
					for (size_t kx = 0; kx < s->kw; kx++) {
						size_t at =
						    k * kernel + (c * s->kh + ky) * s->kw + kx;
						float *v =
						    under(s, x, c, p / s->ow, ky, p % s->ow, kx);
						if (!v)
							continue;
						o->want_dw[at] += dy[p] * *v;
						dx[v - x] += dy[p] * o->w[at];
					}
		for (size_t p = 0; p < area; p++)
			o->want_dw[s->out * kernel + k] += dy[p];
	}
}

static void
conv2d(void **state)
{
	struct one o;

	(void)state;
	struct window s = {3, 7, 9, 5, 4, 4, 3, 2, 2, 3, 1, 2, 1, 3};
	one_begin(&o, "\"shape\": [3, 7, 9]",
	    "{\"type\": \"conv2d\", \"out\": 5, \"kernel\": [3, 2], \"stride\": [2, 3], "
	    "\"padding\": [1, 2]}");
	conv_forward(&o, &s);
	conv_back(&o, &s);
	one_end(&o);
	/* 65,536 / (9 * 20 * 20) input channels at a time; large enough for OpenBLAS. */
	s = (struct window){24, 20, 20, 24, 20, 20, 3, 3, 1, 1, 1, 1, 1, 18};
	one_begin(&o, "\"shape\": [24, 20, 20]",
	    "{\"type\": \"conv2d\", \"out\": 24, \"kernel\": 3, \"padding\": 1}");
	conv_forward(&o, &s);
	conv_back(&o, &s);
	one_end(&o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(linear),
	    cmocka_unit_test(conv2d),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
