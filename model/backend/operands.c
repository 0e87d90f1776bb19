#include "operands.h"
#include "sgd.h"

static void *
at(char *block, size_t offset)
{
	return block && offset != LAYER_NOWHERE ? block + offset : NULL;
}

struct operands
operands_of(const struct layer *l, const struct backend_pass *p)
{
	struct operands v = {
	    .weight = l->param_count > PARAM_WEIGHT ? p->weights + l->param[PARAM_WEIGHT].at : NULL,
	    .bias = l->param_count > PARAM_BIAS ? p->weights + l->param[PARAM_BIAS].at : NULL,
	    .dy = at(p->gradients, l->dy_at),
	    .kept = at(l->kept_shared ? p->gradients : p->context, l->kept_at),
	    .work = p->work,
	};

	for (size_t i = 0; i < l->spec.input_count; i++) {
		v.x[i] = l->x_at[i] == LAYER_OUTSIDE
		    ? p->input
		    : at(l->x_shared[i] ? p->gradients : p->context, l->x_at[i]);
		v.dx[i] = l->dx_at[i] == LAYER_OUTSIDE ? p->input_gradient
						       : at(p->gradients, l->dx_at[i]);
	}
	/* A layer of the same bytes only looks at the net's input; nobody writes through its y. */
	v.y = l->y_at == LAYER_OUTSIDE ? (float *)(uintptr_t)p->input
				       : at(l->y_shared ? p->gradients : p->context, l->y_at);
	return v;
}

struct sgd
operands_sgd(const struct layer_param *to, const struct backend_pass *p)
{
	struct sgd s = *p->sgd;

	s.add |= to->adds && !s.apart;
	if (s.apart)
		s.apart = to->apart ? s.apart + to->apart_at : NULL;
	s.waits = to->lent;
	if (s.scratch)
		s.scratch += to->room;
	return s;
}

void
operands_give(
    const struct layer *l, const struct backend_pass *p, size_t param, const float *gradient)
{
	const struct layer_param *to = &l->param[param];

	if (to->hold)
		return;
	const struct sgd s = operands_sgd(to, p);
	sgd_apply(&s, to->at, gradient, to->count);
}

float *
operands_lane(const struct layer *l, const struct backend_pass *p, unsigned lane)
{
	return p->work + l->work + l->work_each * p->n + (l->work_lane + layer_apart(l)) * lane;
}
