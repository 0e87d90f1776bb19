/* stages: gcc clang address */
/* model/ARITHMETIC.md in plain loops, one operation after the other, compared to the bit: outputs, gradients of what a layer reads and of
 * its parameters. Layers of sequences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "curves.h"
#include "one_layer.h"

/* --- Sequences */

static void
embedding(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, "\"window\": 7", "{\"type\": \"embedding\", \"vocabulary\": 5, \"out\": 19}");
	for (size_t i = 0; i < (size_t)N * 7 * 19; i++) {
		size_t at = (size_t)o.x[i / 19] * 19 + i % 19;
		o.want_y[i] = o.w[at];
		o.want_dw[at] += o.dy[i];
	}
	one_end(&o);
}

#define STEPS ((size_t)5)
#define IN ((size_t)7)
#define H ((size_t)6)

/* x W^T + bias, without the bias: ascending. */
static float
through(const float *x, const float *weight, size_t row, size_t n)
{
	return ascend(x, 1, weight + row * n, 1, n);
}

struct cell {
	size_t gates;
	const float *wi, *wh, *bi, *bh; /* weights and biases */
	float g[N][STEPS][4 * H]; /* gates behind their curves, then gradients at them */
	float u[N][STEPS][H]; /* gru: of n, U h and its bias, then its gradient */
	float c[N][STEPS][H], h[N][STEPS][H];
};

static struct cell
cell_of(const struct one *o, size_t gates)
{
	const float *wh = o->w + gates * H * IN, *bi = wh + gates * H * H;

	return (struct cell){.gates = gates, .wi = o->w, .wh = wh, .bi = bi, .bh = bi + gates * H};
}

static void
lstm_forward(struct one *o, struct cell *l)
{
	for (size_t e = 0; e < N * STEPS; e++) {
		size_t i = e / STEPS, t = e % STEPS;
		float *g = l->g[i][t], *c = l->c[i][t];
		for (size_t k = 0; k < 4 * H; k++) {
			g[k] = through(o->x + e * IN, l->wi, k, IN) + (l->bi[k] + l->bh[k]);
			g[k] = t > 0 ? through(l->h[i][t - 1], l->wh, k, H) + g[k] : g[k];
			(k / H == 2 ? curves_tanh : curves_sigmoid)(&g[k], &g[k], 1);
		}
		for (size_t k = 0; k < H; k++) {
			float tanh;
			c[k] = g[k] * g[2 * H + k];
			if (t > 0)
				c[k] = g[H + k] * l->c[i][t - 1][k] + g[k] * g[2 * H + k];
			curves_tanh(&tanh, &c[k], 1);
			o->want_y[e * H + k] = l->h[i][t][k] = g[3 * H + k] * tanh;
		}
	}
}

static void
lstm_unmix(struct cell *l, size_t i, size_t t, size_t k, float *dh, float *dc)
{
	float *row = l->g[i][t], tanh, before = t > 0 ? l->c[i][t - 1][k] : 0;
	float a = row[k], f = row[H + k], g = row[2 * H + k], o = row[3 * H + k];

	curves_tanh(&tanh, &l->c[i][t][k], 1);
	float d = *dc + *dh * o * (1 - tanh * tanh);
	row[k] = d * g * (a * (1 - a));
	row[H + k] = d * before * (f * (1 - f));
	row[2 * H + k] = d * a * (1 - g * g);
	row[3 * H + k] = *dh * tanh * (o * (1 - o));
	*dc = d * f;
	*dh = 0;
}

static void
gru_unmix(struct cell *l, size_t i, size_t t, size_t k, float *dh, float *dc)
{
	float *row = l->g[i][t], r = row[k], z = row[H + k], n = row[2 * H + k];
	float h = t > 0 ? l->h[i][t - 1][k] : 0, dn = *dh * (1 - z) * (1 - n * n);

	(void)dc;
	row[k] = dn * l->u[i][t][k] * (r * (1 - r));
	row[H + k] = *dh * (h - n) * (z * (1 - z));
	row[2 * H + k] = dn;
	l->u[i][t][k] = dn * r;
	*dh = *dh * z;
}

/* The gradient at h U of gate row k: of gru's n it is another than at x W. */
static float
at_hidden(const struct cell *l, size_t i, size_t t, size_t k)
{
	return l->gates == 3 && k >= 2 * H ? l->u[i][t][k - 2 * H] : l->g[i][t][k];
}

static void
cell_back(struct one *o, struct cell *l)
{
	void (*unmix)(struct cell *, size_t, size_t, size_t, float *, float *) =
	    l->gates == 3 ? gru_unmix : lstm_unmix;

	for (size_t i = 0; i < N; i++) {
		float dh[H] = {0}, dc[H] = {0};
		for (size_t t = STEPS; t-- > 0;) {
			for (size_t k = 0; k < H; k++) {
				dh[k] += o->dy[(i * STEPS + t) * H + k];
				unmix(l, i, t, k, &dh[k], &dc[k]);
			}
			for (size_t k = 0; t > 0 && k < H; k++) {
				float parts[2] = {0, 0}; /* gru: r and z, then n */
				for (size_t r = 0; r < l->gates * H; r++)
					parts[l->gates == 3 && r >= 2 * H] +=
					    at_hidden(l, i, t, r) * l->wh[r * H + k];
				dh[k] = parts[0] + dh[k];
				if (l->gates == 3)
					dh[k] = parts[1] + dh[k];
			}
		}
	}
}

static void
cell_gradients(struct one *o, const struct cell *l)
{
	size_t wide = l->gates * H, wh = wide * IN, bi = wh + wide * H;

	for (size_t e = 0; e < N * STEPS; e++)
		for (size_t r = 0; r < wide; r++) {
			size_t i = e / STEPS, t = e % STEPS;
			float at = l->g[i][t][r], hidden = at_hidden(l, i, t, r);
			for (size_t k = 0; k < IN; k++) {
				o->want_dw[r * IN + k] += at * o->x[e * IN + k];
				o->want_dx[e * IN + k] += at * l->wi[r * IN + k];
			}
			for (size_t k = 0; t > 0 && k < H; k++)
				o->want_dw[wh + r * H + k] += hidden * l->h[i][t - 1][k];
			o->want_dw[bi + r] += at;
			o->want_dw[bi + wide + r] += hidden;
		}
}

#define SEQUENCE "\"shape\": [5, 7]"

static void
lstm(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, SEQUENCE, "{\"type\": \"lstm\", \"out\": 6}");
	struct cell l = cell_of(&o, 4);
	lstm_forward(&o, &l);
	cell_back(&o, &l);
	cell_gradients(&o, &l);
	one_end(&o);
}

/* One step of one example. */
static void
gru_step(struct one *o, struct cell *l, size_t i, size_t t)
{
	const float *x = o->x + (i * STEPS + t) * IN;
	float *g = l->g[i][t], u[3 * H];

	for (size_t k = 0; k < 3 * H; k++) {
		g[k] = through(x, l->wi, k, IN) + l->bi[k];
		u[k] = t > 0 ? through(l->h[i][t - 1], l->wh, k, H) + l->bh[k] : l->bh[k];
	}
	for (size_t k = 0; k < 2 * H; k++) {
		g[k] += u[k];
		curves_sigmoid(&g[k], &g[k], 1);
	}
	for (size_t k = 0; k < H; k++) {
		float *n = &g[2 * H + k], z = g[H + k];
		l->u[i][t][k] = u[2 * H + k];
		*n += g[k] * u[2 * H + k];
		curves_tanh(n, n, 1);
		l->h[i][t][k] = t > 0 ? (1 - z) * *n + z * l->h[i][t - 1][k] : (1 - z) * *n;
		o->want_y[(i * STEPS + t) * H + k] = l->h[i][t][k];
	}
}

static void
gru(void **state)
{
	struct one o;

	(void)state;
	one_begin(&o, SEQUENCE, "{\"type\": \"gru\", \"out\": 6}");
	struct cell l = cell_of(&o, 3);
	for (size_t e = 0; e < N * STEPS; e++)
		gru_step(&o, &l, e / STEPS, e % STEPS);
	cell_back(&o, &l);
	cell_gradients(&o, &l);
	one_end(&o);
}

/* --- Attention */

#define LONG ((size_t)70) /* more than the 64 rows of a block */
#define ROOM ((LONG + 15) / 16 * 16) /* that curves_softmax wants */
#define WIDTH ((size_t)12)
#define HEAD ((size_t)6)
#define BLOCK ((size_t)64)

struct attention {
	bool causal, rotary;
	float scale;
	float qkv[LONG][3 * WIDTH], mixed[LONG][WIDTH], dmixed[LONG][WIDTH], dqkv[LONG][3 * WIDTH];
};

/* Queries and keys, or their gradients with way -1: halves of each head. */
static void
rotate(float rows[LONG][3 * WIDTH], float way)
{
	for (size_t t = 0; t < LONG; t++)
		for (size_t k = 0; k < 2 * WIDTH; k++) {
			size_t place = k % HEAD;
			double slow, sine, cosine;
			if (place >= HEAD / 2)
				continue;
			slow = curves_exp_negative(
			    -9.210340371976184 * (2.0 * (double)place / (double)HEAD));
			curves_turn((double)t * slow, &sine, &cosine);
			float u = rows[t][k], w = rows[t][k + HEAD / 2], s = way * (float)sine;
			rows[t][k] = u * (float)cosine - w * s;
			rows[t][k + HEAD / 2] = w * (float)cosine + u * s;
		}
}

/* Weights of attention of one row of one head. */
static void
attend(const struct attention *a, size_t r, size_t head, float *scores)
{
	size_t seen = a->causal ? r + 1 : LONG;

	for (size_t s = 0; s < LONG; s++)
		scores[s] = s < seen ? a->scale *
			ascend(&a->qkv[r][head * HEAD], 1, &a->qkv[s][WIDTH + head * HEAD], 1, HEAD)
				     : 0;
	curves_softmax(scores, seen);
}

static void
attention_forward(struct one *o, struct attention *a, size_t example)
{
	const float *x = o->x + example * LONG * WIDTH, *in_bias = o->w + 3 * WIDTH * WIDTH;
	const float *out = in_bias + 3 * WIDTH, *out_bias = out + WIDTH * WIDTH;
	float scores[ROOM];

	for (size_t i = 0; i < LONG * 3 * WIDTH; i++) {
		size_t t = i / (3 * WIDTH), k = i % (3 * WIDTH);
		a->qkv[t][k] = through(x + t * WIDTH, o->w, k, WIDTH) + in_bias[k];
	}
	if (a->rotary)
		rotate(a->qkv, 1);
	for (size_t i = 0; i < LONG * WIDTH; i++) {
		size_t t = i / WIDTH, k = i % WIDTH;
		attend(a, t, k / HEAD, scores);
		a->mixed[t][k] = ascend(scores, 1, &a->qkv[0][2 * WIDTH + k], 3 * WIDTH, LONG);
	}
	for (size_t i = 0; i < LONG * WIDTH; i++)
		o->want_y[example * LONG * WIDTH + i] =
		    through(a->mixed[i / WIDTH], out, i % WIDTH, WIDTH) + out_bias[i % WIDTH];
}

/* Of a block of rows, each a sum over its rows, then added to those of earlier blocks. */
static void
attention_block(struct attention *a, size_t first, size_t head)
{
	static float scores[BLOCK][ROOM], slopes[BLOCK][LONG];
	size_t count = LONG - first < BLOCK ? LONG - first : BLOCK, at = head * HEAD;

	for (size_t r = 0; r < count; r++) {
		attend(a, first + r, head, scores[r]);
		for (size_t s = 0; s < LONG; s++)
			slopes[r][s] = ascend(
			    &a->dmixed[first + r][at], 1, &a->qkv[s][2 * WIDTH + at], 1, HEAD);
		float mean = lanes_of(slopes[r], scores[r], LONG);
		for (size_t s = 0; s < LONG; s++)
			slopes[r][s] = scores[r][s] * (slopes[r][s] - mean) * a->scale;
		for (size_t k = at; k < at + HEAD; k++)
			a->dqkv[first + r][k] =
			    ascend(slopes[r], 1, &a->qkv[0][WIDTH + k], 3 * WIDTH, LONG);
	}
	for (size_t s = 0; s < LONG; s++)
		for (size_t k = at; k < at + HEAD; k++) {
			a->dqkv[s][WIDTH + k] +=
			    ascend(&slopes[0][s], LONG, &a->qkv[first][k], 3 * WIDTH, count);
			a->dqkv[s][2 * WIDTH + k] +=
			    ascend(&scores[0][s], ROOM, &a->dmixed[first][k], WIDTH, count);
		}
}

/* Gradients of weights are sums over all rows of the batch. */
static void
attention_back(struct one *o, struct attention *a, size_t example)
{
	size_t begin = example * LONG * WIDTH, bias = 3 * WIDTH * WIDTH, out = bias + 3 * WIDTH;
	const float *dy = o->dy + begin, *x = o->x + begin;

	memset(a->dqkv, 0, sizeof(a->dqkv));
	for (size_t i = 0; i < LONG * WIDTH; i++)
		a->dmixed[i / WIDTH][i % WIDTH] =
		    ascend(dy + i / WIDTH * WIDTH, 1, o->w + out + i % WIDTH, WIDTH, WIDTH);
	for (size_t head = 0; head < WIDTH / HEAD; head++)
		for (size_t first = 0; first < LONG; first += BLOCK)
			attention_block(a, first, head);
	if (a->rotary)
		rotate(a->dqkv, -1);
	for (size_t t = 0; t < LONG; t++)
		for (size_t k = 0; k < WIDTH; k++) {
			o->want_dx[begin + t * WIDTH + k] =
			    ascend(a->dqkv[t], 1, o->w + k, WIDTH, 3 * WIDTH);
			for (size_t r = 0; r < 3 * WIDTH; r++)
				o->want_dw[r * WIDTH + k] += a->dqkv[t][r] * x[t * WIDTH + k];
			for (size_t r = 0; r < WIDTH; r++)
				o->want_dw[out + r * WIDTH + k] +=
				    dy[t * WIDTH + r] * a->mixed[t][k];
			o->want_dw[out + WIDTH * WIDTH + k] += dy[t * WIDTH + k];
		}
	for (size_t i = 0; i < LONG * 3 * WIDTH; i++)
		o->want_dw[bias + i % (3 * WIDTH)] += a->dqkv[i / (3 * WIDTH)][i % (3 * WIDTH)];
}

static void
attention(void **state)
{
	static const char *const layers[] = {"{\"type\": \"attention\", \"heads\": 2}",
	    "{\"type\": \"attention\", \"heads\": 2, \"causal\": true}",
	    "{\"type\": \"attention\", \"heads\": 2, \"causal\": true, \"positions\": \"rotary\"}"};
	static struct attention a;
	struct one o;

	(void)state;
	for (size_t form = 0; form < 3; form++) {
		one_begin(&o, "\"shape\": [70, 12]", layers[form]);
		a.causal = form > 0;
		a.rotary = form == 2;
		a.scale = 1.0f / sqrtf((float)HEAD);
		for (size_t i = 0; i < N; i++) {
			attention_forward(&o, &a, i);
			attention_back(&o, &a, i);
		}
		one_end(&o);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(embedding),
	    cmocka_unit_test(lstm),
	    cmocka_unit_test(gru),
	    cmocka_unit_test(attention),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
