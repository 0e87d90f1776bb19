#include "recurrent.h"

#include "cpu.h"
#include "curves.h"

/* A row: gates r, z, n behind their curves, and the hidden state's part of n. */
CPU_CLONES static void
add(float *restrict row, const float *restrict pre, size_t n)
{
	for (size_t k = 0; k < n; k++)
		row[k] += pre[k];
}

CPU_CLONES static void
gate(float *restrict row, const float *restrict pre, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		row[3 * n + k] = pre[k];
		row[2 * n + k] += row[k] * pre[k];
	}
}

CPU_CLONES static void
mix_states(float *h, const float *before, const float *row, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		float z = row[n + k], new = row[2 * n + k];
		h[k] = before ? (1 - z) * new + z *before[k] : (1 - z) * new;
	}
}

static void
step(const struct recurrent_step *s)
{
	size_t n = s->hidden;

	add(s->row, s->pre, 2 * n);
	curves_sigmoid(s->row, s->row, 2 * n);
	gate(s->row, s->pre + 2 * n, n);
	curves_tanh(s->row + 2 * n, s->row + 2 * n, n);
	mix_states(s->h, s->h_before, s->row, n);
}

CPU_CLONES static void
unmix_states(float *restrict row, const float *restrict before, float *restrict dh, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		float r = row[k], z = row[n + k], new = row[2 * n + k], part = row[3 * n + k];
		float h = before ? before[k] : 0;
		float dn = dh[k] * (1 - z) * (1 - new *new);
		row[k] = dn * part * (r * (1 - r));
		row[n + k] = dh[k] * (h - new) * (z * (1 - z));
		row[2 * n + k] = dn;
		row[3 * n + k] = dn * r;
		dh[k] = dh[k] * z;
	}
}

static void
back(const struct recurrent_back *b)
{
	unmix_states(b->row, b->h_before, b->dh, b->hidden);
}

const struct recurrent_cell gru_cell = {
    .gates = 3, .row = 4, .apart = true, .step = step, .back = back};
