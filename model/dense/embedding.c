#include "cpu_dense.h"

#include <string.h>

#include "backend.h"
#include "err.h"
#include "layer.h"
#include "operands.h"
#include "runs.h"

/* The net's input holds whole numbers below the vocabulary: net/run.c has looked. */
static enum err
need(struct layer *l, struct why *why)
{
	(void)why;
	l->work = l->param[PARAM_WEIGHT].count;
	return ERR_OK;
}

static void
forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t width = l->spec.out;

	for (size_t i = 0; i < p->n * l->in[0].size; i++)
		memcpy(
		    v.y + i * width, v.weight + (size_t)v.x[0][i] * width, width * sizeof(float));
}

/* The gradient of a row is the sum of those of its uses, in their order. */
static void
backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t width = l->spec.out;

	if (l->param[PARAM_WEIGHT].hold)
		return;
	memset(v.work, 0, l->param[PARAM_WEIGHT].count * sizeof(float));
	for (size_t i = 0; i < p->n * l->in[0].size; i++)
		runs_add(v.work + (size_t)v.x[0][i] * width, v.dy + i * width, width);
	operands_give(l, p, PARAM_WEIGHT, v.work);
}

const struct backend_layer embedding_passes = {
    .need = need, .forward = forward, .backward = backward};

static enum err
positions_need(struct layer *l, struct why *why)
{
	(void)why;
	l->work = l->out.size;
	return ERR_OK;
}

static void
positions_forward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);

	for (size_t i = 0; i < p->n; i++) {
		float *y = v.y + i * l->out.size;
		if (y != v.x[0] + i * l->out.size)
			memcpy(y, v.x[0] + i * l->out.size, l->out.size * sizeof(float));
		runs_add(y, v.weight, l->out.size);
	}
}

static void
positions_backward(const struct layer *l, const struct backend_pass *p)
{
	const struct operands v = operands_of(l, p);
	size_t n = l->out.size;

	memset(v.work, 0, n * sizeof(float));
	for (size_t i = 0; i < p->n; i++)
		runs_add(v.work, v.dy + i * n, n);
	if (v.dx[0] && v.dx[0] != v.dy)
		runs_give(v.dx[0], v.dy, p->n * n, l->add[0]);
	operands_give(l, p, PARAM_WEIGHT, v.work);
}

const struct backend_layer embedding_positions_passes = {
    .need = positions_need, .forward = positions_forward, .backward = positions_backward};
