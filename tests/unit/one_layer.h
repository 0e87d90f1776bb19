#ifndef ONE_LAYER_H
#define ONE_LAYER_H
#include "net_trial.h"
#include "tensor.h"

/* One layer between others, with everything that goes in, and the sums of model/ARITHMETIC.md in plain loops. */
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

static inline float *
draw(size_t n, uint64_t seed, uint64_t below)
{
	float *out = calloc(n + 1, sizeof(*out));
	struct prng r;

	prng_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		out[i] = below ? (float)prng_below(&r, below) : 2 * prng_float(&r) - 1;
	return out;
}

static inline void
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
static inline void
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
static inline void
same(const char *what, const float *got, const float *want, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(got[i] == want[i]))
			fail_msg(
			    "%s[%zu] is %a, in order %a", what, i, (double)got[i], (double)want[i]);
}

static inline void
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
static inline float
ascend(const float *a, size_t a_step, const float *b, size_t b_step, size_t n)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i * a_step] * b[i * b_step];
	return sum;
}

static inline float
fold(float lanes[16])
{
	for (size_t half = LANES / 2; half > 0; half /= 2)
		for (size_t i = 0; i < half; i++)
			lanes[i] += lanes[i + half];
	return lanes[0];
}

/* In lanes; b NULL: of a. */
static inline float
lanes_of(const float *a, const float *b, size_t n)
{
	float lanes[16] = {0};

	for (size_t i = 0; i < n; i++)
		lanes[i % LANES] += b ? a[i] * b[i] : a[i];
	return fold(lanes);
}

/* gemm_dot's: lanes within blocks of equal length. */
static inline float
blocks(const float *a, const float *b, size_t n, float start)
{
	size_t count = (n + 1023) / 1024;
	size_t step = count > 1 ? ((n + count - 1) / count + 15) / 16 * 16 : n;
	float sum = start;

	for (size_t p = 0; p < n; p += step)
		sum += lanes_of(a + p, b + p, n - p < step ? n - p : step);
	return sum;
}

#endif
