#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backend.h"
#include "cpu.h"
#include "cpu_sequence.h"
#include "err.h"
#include "layer.h"
#include "net_spec.h"
#include "operands.h"
#include "runs.h"

/* Sequences turned round, and one row made of all steps. Arrays are [example][step][width]. */

static void
reverse_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t steps = l->in[0].c, width = l->in[0].w;

	for (size_t i = 0; i < p->n; i++)
		for (size_t t = 0; t < steps; t++)
			memcpy(v.y + (i * steps + t) * width,
			    v.x[0] + (i * steps + steps - 1 - t) * width, width * sizeof(float));
}

static void
reverse_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t steps = l->in[0].c, width = l->in[0].w;

	for (size_t i = 0; v.dx[0] && i < p->n; i++)
		for (size_t t = 0; t < steps; t++)
			runs_give(v.dx[0] + (i * steps + t) * width,
			    v.dy + (i * steps + steps - 1 - t) * width, width, l->add[0]);
}

const struct backend_layer steps_reverse_passes = {
    .forward = reverse_forward, .backward = reverse_backward};

/* Of the largest is kept which step has it: the first of equals, and what is no number is the largest of all, as in PyTorch. */
static enum err
pool_need(struct layer *l, struct why *why)
{
	(void)why;
	l->saved = l->spec.pool == POOL_MAX ? l->in[0].w * sizeof(uint32_t) : 0;
	return ERR_OK;
}

static void
mean_rows(float *y, const float *rows, size_t steps, size_t width)
{
	memcpy(y, rows, width * sizeof(float));
	for (size_t t = 1; t < steps; t++)
		runs_add(y, rows + t * width, width);
	runs_scale(y, width, 1 / (float)steps);
}

static void
largest_rows(float *y, uint32_t *which, const float *rows, size_t steps, size_t width)
{
	memcpy(y, rows, width * sizeof(float));
	if (which)
		memset(which, 0, width * sizeof(*which));
	for (size_t t = 1; t < steps; t++)
		for (size_t k = 0; k < width; k++)
			if (rows[t * width + k] > y[k] || isnan(rows[t * width + k])) {
				y[k] = rows[t * width + k];
				if (which)
					which[k] = (uint32_t)t;
			}
}

static void
pool_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t steps = l->in[0].c, width = l->in[0].w;
	size_t at = l->spec.pool == POOL_LAST ? steps - 1 : 0;

	for (size_t i = 0; i < p->n; i++) {
		const float *rows = v.x[0] + i * steps * width;
		float *y = v.y + i * width;
		if (l->spec.pool == POOL_MEAN)
			mean_rows(y, rows, steps, width);
		else if (l->spec.pool == POOL_MAX)
			largest_rows(
			    y, v.kept ? (uint32_t *)v.kept + i * width : NULL, rows, steps, width);
		else
			memcpy(y, rows + at * width, width * sizeof(float));
	}
}

CPU_CLONES static void
add_part(float *dx, const float *dy, size_t n, float part)
{
	for (size_t i = 0; i < n; i++)
		dx[i] += dy[i] * part;
}

/* The gradient of example `i`: its rows hold what is added to. */
static void
pool_back(const struct layer *l, const struct operands *v, size_t i)
{
	size_t steps = l->in[0].c, width = l->in[0].w;
	float *dx = v->dx[0] + i * steps * width;
	const float *dy = v->dy + i * width;
	const uint32_t *which = v->kept;

	switch (l->spec.pool) {
	case POOL_MEAN:
		for (size_t t = 0; t < steps; t++)
			add_part(dx + t * width, dy, width, 1 / (float)steps);
		break;
	case POOL_MAX:
		for (size_t k = 0; k < width; k++)
			dx[which[i * width + k] * width + k] += dy[k];
		break;
	case POOL_FIRST:
		runs_add(dx, dy, width);
		break;
	case POOL_LAST:
		runs_add(dx + (steps - 1) * width, dy, width);
		break;
	}
}

static void
pool_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);

	if (!v.dx[0])
		return;
	if (!l->add[0])
		memset(v.dx[0], 0, p->n * l->in[0].size * sizeof(float));
	for (size_t i = 0; i < p->n; i++)
		pool_back(l, &v, i);
}

const struct backend_layer steps_pool_passes = {
    .need = pool_need, .forward = pool_forward, .backward = pool_backward};
