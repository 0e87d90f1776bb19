/* stages: gcc clang address */
/* model/ARITHMETIC.md in plain loops, one operation after the other, compared to the bit: outputs, gradients of what a layer reads and of
 * its parameters. Layers of features and planes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "one_layer.h"

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

/* Of a linear layer of `in` features, with lora of rank 3 and alpha 5: behind its own sums. */
static void
lora_sums(struct one *o, size_t rows, size_t in, size_t out)
{
	const float scale = 5.0f / 3.0f;
	const float *a = o->w + (in + 1) * out, *b = a + 3 * in;
	float *middle = calloc(rows * 3, sizeof(float)), *back = calloc(rows * 3, sizeof(float));
	float *da = o->want_dw + (in + 1) * out, *db = da + 3 * in;

	for (size_t i = 0; i < rows * 3; i++) {
		middle[i] = scale * ascend(o->x + i / 3 * in, 1, a + i % 3 * in, 1, in);
		back[i] = scale * ascend(o->dy + i / 3 * out, 1, b + i % 3, 3, out);
	}
	for (size_t i = 0; i < rows * out; i++)
		o->want_y[i] += ascend(middle + i / out * 3, 1, b + i % out * 3, 1, 3);
	for (size_t i = 0; i < rows * in; i++)
		o->want_dx[i] += ascend(back + i / in * 3, 1, a + i % in, in, 3);
	for (size_t i = 0; i < 3 * in; i++)
		da[i] = ascend(back + i / in, 3, o->x + i % in, in, rows);
	for (size_t i = 0; i < 3 * out; i++)
		db[i] = ascend(o->dy + i / 3, out, middle + i % 3, 3, rows);
	free(middle);
	free(back);
}

static void
lora(void **state)
{
	static const char *const layer =
	    "{\"type\": \"linear\", \"out\": 21, \"lora\": {\"rank\": 3, \"alpha\": 5}}";
	struct one o;

	(void)state;
	one_begin(&o, "\"shape\": [1100]", layer);
	for (size_t i = 0; i < (size_t)N * 21; i++)
		o.want_y[i] = blocks(o.x + i / 21 * 1100, o.w + i % 21 * 1100, 1100,
		    o.w[(size_t)1100 * 21 + i % 21]);
	linear_back(&o, N, 1100, 21);
	lora_sums(&o, N, 1100, 21);
	one_end(&o);
	one_begin(&o, "\"shape\": [6, 70]", layer);
	for (size_t i = 0; i < (size_t)N * 6 * 21; i++)
		o.want_y[i] = ascend(o.x + i / 21 * 70, 1, o.w + i % 21 * 70, 1, 70) +
		    o.w[(size_t)21 * 70 + i % 21];
	linear_back(&o, (size_t)N * 6, 70, 21);
	lora_sums(&o, (size_t)N * 6, 70, 21);
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
window_begin(struct one *o, const struct window *s)
{
	char shape[64], layer[256];

	snprintf(shape, sizeof(shape), "\"shape\": [%zu, %zu, %zu]", s->c, s->h, s->w);
	snprintf(layer, sizeof(layer),
	    "{\"type\": \"conv2d\", \"out\": %zu, \"kernel\": [%zu, %zu], \"stride\": [%zu, %zu], "
	    "\"padding\": [%zu, %zu], \"groups\": %zu}",
	    s->out, s->kh, s->kw, s->sh, s->sw, s->ph, s->pw, s->groups);
	one_begin(o, shape, layer);
}

static void
conv2d(void **state)
{
	static const struct window all[] = {{3, 7, 9, 5, 4, 4, 3, 2, 2, 3, 1, 2, 1, 3},
	    /* 65,536 / (9 * 20 * 20) input channels at a time; large enough for OpenBLAS. */
	    {24, 20, 20, 24, 20, 20, 3, 3, 1, 1, 1, 1, 1, 18},
	    /* Rows of whole vectors, of which several are worked out at once. */
	    {5, 6, 32, 7, 6, 32, 3, 3, 1, 1, 1, 1, 1, 5},
	    {5, 6, 64, 7, 3, 32, 3, 3, 2, 2, 1, 1, 1, 5},
	    /* Small maps, several examples side by side and some channels at a time: 65,536 / (9 * 4 * 4) are a sum. */
	    {460, 4, 4, 5, 4, 4, 3, 3, 1, 1, 1, 1, 1, 455},
	    {7, 8, 7, 120, 4, 4, 3, 3, 2, 2, 1, 1, 1, 7},
	    /* The same of one long row; of more channels than are laid out side by side; maps too large for it. */
	    {4, 1, 30, 9, 1, 30, 1, 3, 1, 1, 0, 1, 1, 4},
	    {900, 4, 4, 3, 2, 2, 3, 3, 2, 2, 1, 1, 1, 900},
	    {2, 90, 12, 3, 90, 12, 3, 3, 1, 1, 1, 1, 1, 2},
	    /* Points, of large maps and of small ones. */
	    {33, 9, 8, 7, 9, 8, 1, 1, 1, 1, 0, 0, 1, 33},
	    {8, 1, 20, 40, 1, 20, 1, 1, 1, 1, 0, 0, 1, 8},
	    {70, 3, 3, 9, 3, 3, 1, 1, 1, 1, 0, 0, 1, 70},
	    {4, 1, 2, 900, 1, 2, 1, 1, 1, 1, 0, 0, 1, 4},
	    {900, 1, 2, 5, 1, 2, 1, 1, 1, 1, 0, 0, 1, 900},
	    /* Strides larger than x; rows of a phase in more than one part; a kernel of more than 64 elements. */
	    {5, 2, 3, 6, 1, 2, 3, 3, 4, 2, 1, 1, 1, 5},
	    {700, 18, 32, 2, 9, 16, 3, 3, 2, 2, 1, 1, 1, 50},
	    {3, 12, 12, 4, 2, 3, 11, 12, 3, 2, 1, 2, 1, 3}};
	struct one o;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		window_begin(&o, &all[i]);
		conv_forward(&o, &all[i]);
		conv_back(&o, &all[i]);
		one_end(&o);
	}
}

static size_t
most(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* In groups, one output channel: weights' gradients in lanes over planes whose rows lie apart, of all examples. */
static void
grouped_weights(struct one *o, const struct window *s, size_t k)
{
	size_t area = s->oh * s->ow, in = s->c / s->groups, base = k / (s->out / s->groups) * in;
	size_t kernel = s->kh * s->kw,
	       apart = (s->kw - 1) / s->sw + most((s->w - 1 + s->pw) / s->sw + 1, s->ow);

	for (size_t e = 0; e < in * kernel; e++) {
		float lanes[16] = {0};
		for (size_t i = 0; i < N * area; i++) {
			size_t p = i % area, n = i / area, r = p / s->ow, q = p % s->ow;
			const float *v = under(s, o->x + n * o->in, base + e / kernel, r,
			    e % kernel / s->kw, q, e % s->kw);
			lanes[(r * apart + q) % LANES] +=
			    o->dy[n * o->out + k * area + p] * (v ? *v : 0);
		}
		o->want_dw[k * in * kernel + e] = fold(lanes);
	}
	float bias[16] = {0};
	for (size_t i = 0; i < N * area; i++)
		bias[i % area % LANES] += o->dy[i / area * o->out + k * area + i % area];
	o->want_dw[s->out * in * kernel + k] = fold(bias);
}

/* dx as in one group. */
static void
grouped_input(struct one *o, const struct window *s, size_t i)
{
	size_t area = s->oh * s->ow, k = i % s->out, in = s->c / s->groups;
	size_t base = k / (s->out / s->groups) * in, kernel = in * s->kh * s->kw;
	float *x = o->x + i / s->out * o->in, *dx = o->want_dx + i / s->out * o->in;

	for (size_t ky = 0; ky < s->kh; ky++)
		for (size_t p = 0; p < area; p++)
			for (size_t c = 0; c < in; c++)
				for (size_t kx = 0; kx < s->kw; kx++) {
					size_t at = k * kernel + (c * s->kh + ky) * s->kw + kx;
					float *v =
					    under(s, x, base + c, p / s->ow, ky, p % s->ow, kx);
					if (v)
						dx[v - x] += o->w[at] * o->dy[i * area + p];
				}
}

static void
grouped(void **state)
{
	static const struct window all[] = {{4, 7, 41, 6, 7, 20, 3, 4, 1, 2, 1, 1, 2, 0},
	    {3, 9, 21, 3, 5, 21, 3, 3, 2, 1, 1, 1, 3, 0},
	    {2, 30, 27, 2, 30, 27, 3, 3, 1, 1, 1, 1, 2, 0},
	    /* Lanes for four groups of ten at a time; for two channels of a group's five. */
	    {10, 8, 8, 10, 8, 8, 31, 31, 1, 1, 15, 15, 10, 0},
	    {4, 8, 8, 10, 8, 8, 31, 31, 1, 1, 15, 15, 2, 0}};
	struct one o;

	(void)state;
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
		window_begin(&o, &all[k]);
		conv_forward(&o, &all[k]);
		for (size_t i = 0; i < N * all[k].out; i++)
			grouped_input(&o, &all[k], i);
		for (size_t i = 0; i < all[k].out; i++)
			grouped_weights(&o, &all[k], i);
		one_end(&o);
	}
}

/* --- Norms */

#define EPSILON 1e-5f

/* Of n floats, `count` runs of `length` of them `apart`: each run goes on in the same lanes. */
static void
moments(const float *x, size_t length, size_t count, size_t apart, float *mean, float *inverse)
{
	float sums[16] = {0}, squares[16] = {0}, n = (float)count * (float)length;

	for (size_t i = 0; i < count * length; i++)
		sums[i % length % LANES] += x[i / length * apart + i % length];
	*mean = fold(sums) / n;
	for (size_t i = 0; i < count * length; i++) {
		float d = x[i / length * apart + i % length] - *mean;
		squares[i % length % LANES] += d * d;
	}
	*inverse = 1.0f / sqrtf(fold(squares) / n + EPSILON);
}

/* Of groups of channels of `area` places. */
static void
group_span(struct one *o, size_t span, size_t groups, size_t channels, size_t area)
{
	size_t length = channels * area, first = span % groups * channels, all = channels * groups;
	const float *x = o->x + span * length, *dy = o->dy + span * length;
	float mean, inverse, total = 0, along = 0;

	moments(x, length, 1, 0, &mean, &inverse);
	for (size_t c = 0; c < channels; c++) {
		float w = o->w[first + c], scale = inverse * w;
		float shift = o->w[all + first + c] - mean * scale;
		float a = lanes_of(dy + c * area, NULL, area);
		float b = (lanes_of(dy + c * area, x + c * area, area) - mean * a) * inverse;
		for (size_t i = c * area; i < (c + 1) * area; i++)
			o->want_y[span * length + i] = x[i] * scale + shift;
		o->want_dw[all + first + c] += a;
		o->want_dw[first + c] += b;
		total += w * a;
		along += w * b;
	}
	total /= (float)length;
	along /= (float)length;
	float slope = -(inverse * inverse * along), level = -(mean * slope) - inverse * total;
	for (size_t i = 0; i < length; i++)
		o->want_dx[span * length + i] =
		    dy[i] * (inverse * o->w[first + i / area]) + (x[i] * slope + level);
}

static void
groupnorm(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, "\"shape\": [6, 5, 7]", "{\"type\": \"groupnorm\", \"groups\": 2}");
	for (size_t span = 0; span < (size_t)N * 2; span++)
		group_span(&o, span, 2, 3, 35);
	one_end(&o);
}

/* root: rmsnorm, without mean and shift. */
static void
layer_row(struct one *o, size_t row, size_t n, bool root)
{
	const float *x = o->x + row * n, *dy = o->dy + row * n, *w = o->w;
	float mean = 0, inverse, g[64], h[64];

	if (root)
		inverse = 1.0f / sqrtf(lanes_of(x, x, n) / (float)n + 1e-6f);
	else
		moments(x, n, 1, 0, &mean, &inverse);
	for (size_t i = 0; i < n; i++) {
		h[i] = (x[i] - mean) * inverse;
		o->want_y[row * n + i] = root ? h[i] * w[i] : h[i] * w[i] + w[n + i];
		g[i] = dy[i] * w[i];
		o->want_dw[i] += dy[i] * h[i];
		if (!root)
			o->want_dw[n + i] += dy[i];
	}
	float total = root ? 0 : lanes_of(g, NULL, n) / (float)n,
	      along = lanes_of(g, h, n) / (float)n;
	for (size_t i = 0; i < n; i++)
		o->want_dx[row * n + i] = inverse * (g[i] - total - h[i] * along);
}

static void
layernorm(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, "\"shape\": [5, 37]", "{\"type\": \"layernorm\"}");
	for (size_t row = 0; row < (size_t)N * 5; row++)
		layer_row(&o, row, 37, false);
	one_end(&o);
	one_begin(&o, "\"shape\": [61]", "{\"type\": \"rmsnorm\"}");
	for (size_t row = 0; row < N; row++)
		layer_row(&o, row, 61, true);
	one_end(&o);
}

/* Planes: runs of each example in the same lanes. Flat: examples ascending. */
static void
batch_channel(struct one *o, size_t c, size_t channels, size_t area)
{
	size_t size = channels * area;
	float *w = o->w, count = (float)N * (float)area, mean, inverse, a = 0, b = 0;
	float lanes[2][16] = {{0}, {0}};

	moments(o->x + c * area, area, N, size, &mean, &inverse);
	float scale = inverse * w[c], shift = w[channels + c] - mean * scale;
	for (size_t i = 0; i < N * area; i++) {
		size_t at = i / area * size + c * area + i % area;
		o->want_y[at] = o->x[at] * scale + shift;
		lanes[0][i % area % LANES] += o->dy[at];
		lanes[1][i % area % LANES] += o->dy[at] * o->x[at];
	}
	a = fold(lanes[0]);
	b = (fold(lanes[1]) - mean * a) * inverse;
	float slope = -(inverse * inverse * (w[c] * b / count));
	float level = -(mean * slope) - inverse * (w[c] * a / count);
	for (size_t i = 0; i < N * area; i++) {
		size_t at = i / area * size + c * area + i % area;
		o->want_dx[at] = o->dy[at] * (inverse * w[c]) + (o->x[at] * slope + level);
	}
	o->want_dw[c] = b;
	o->want_dw[channels + c] = a;
}

static void
batchnorm(void **state)
{
	struct one o;

	(void)state;
	for (int flat = 0; flat < 2; flat++) {
		one_begin(&o, flat ? "\"shape\": [19]" : "\"shape\": [3, 5, 7]",
		    "{\"type\": \"batchnorm\"}");
		for (size_t c = 0; c < (flat ? 19 : 3); c++)
			batch_channel(&o, c, flat ? 19 : 3, flat ? 1 : 35);
		one_end(&o);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(linear),
	    cmocka_unit_test(lora),
	    cmocka_unit_test(conv2d),
	    cmocka_unit_test(grouped),
	    cmocka_unit_test(groupnorm),
	    cmocka_unit_test(layernorm),
	    cmocka_unit_test(batchnorm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
