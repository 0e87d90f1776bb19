#include "recurrent.h"

#include "cpu.h"
#include "curves.h"
#include "runs.h"

/* A row: gates i, f, g, o behind their curves, and the cell c. */
CPU_CLONES static void
mix(float *row, const float *before, size_t n)
{
	const float *i = row, *f = row + n, *g = row + 2 * n;
	float *c = row + 4 * n;

	if (before)
		for (size_t k = 0; k < n; k++)
			c[k] = f[k] * before[k] + i[k] * g[k];
	else
		for (size_t k = 0; k < n; k++)
			c[k] = i[k] * g[k];
}

/* Between curves, so many elements stay near. */
#define PIECE ((size_t)64)

CPU_CLONES static void
multiply_gate(float *h, const float *a, const float *b, size_t n)
{
	for (size_t k = 0; k < n; k++)
		h[k] = a[k] * b[k];
}

static void
step(const struct recurrent_step *s)
{
	size_t n = s->hidden;
	float tanh[PIECE];

	if (s->pre)
		runs_add(s->row, s->pre, 4 * n);
	curves_sigmoid(s->row, s->row, 2 * n);
	curves_tanh(s->row + 2 * n, s->row + 2 * n, n);
	curves_sigmoid(s->row + 3 * n, s->row + 3 * n, n);
	mix(s->row, s->before ? s->before + 4 * n : NULL, n);
	for (size_t k = 0; k < n; k += PIECE) {
		size_t some = n - k < PIECE ? n - k : PIECE;
		curves_tanh(tanh, s->row + 4 * n + k, some);
		multiply_gate(s->h + k, s->row + 3 * n + k, tanh, some);
	}
}

/* Of some elements; `width` is of a gate. tanh: of the cell. */
CPU_CLONES static void
unmix(float *restrict row, size_t width, const float *restrict before, const float *restrict tanh,
    float *restrict dh, float *restrict dc, size_t n)
{
	float *restrict fs = row + width, *restrict gs = fs + width, *restrict os = gs + width;

	for (size_t k = 0; k < n; k++) {
		float i = row[k], f = fs[k], g = gs[k], o = os[k];
		float d = dc[k] + dh[k] * o * (1 - tanh[k] * tanh[k]);
		float c = before ? before[k] : 0;
		row[k] = d * g * (i * (1 - i));
		fs[k] = d * c * (f * (1 - f));
		gs[k] = d * i * (1 - g * g);
		os[k] = dh[k] * tanh[k] * (o * (1 - o));
		dc[k] = d * f;
		dh[k] = 0;
	}
}

static void
back(const struct recurrent_back *b)
{
	size_t n = b->hidden;
	float tanh[PIECE];

	for (size_t k = 0; k < n; k += PIECE) {
		size_t some = n - k < PIECE ? n - k : PIECE;
		curves_tanh(tanh, b->row + 4 * n + k, some);
		unmix(b->row + k, n, b->before ? b->before + 4 * n + k : NULL, tanh, b->dh + k,
		    b->dc + k, some);
	}
}

const struct recurrent_cell lstm_cell = {.gates = 4, .row = 5, .step = step, .back = back};
