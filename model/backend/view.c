#include "cpu_inside.h"

static void *
at(char *block, size_t offset)
{
	return block && offset != LAYER_NOWHERE ? block + offset : NULL;
}

struct view
view_of(const struct layer *l, const struct backend_pass *p)
{
	struct view v = {
	    .weight = l->weights > 0 ? p->weights + l->weight_at : NULL,
	    .bias = l->biases > 0 ? p->weights + l->bias_at : NULL,
	    .dy = at(p->gradients, l->dy_at),
	    .kept = at(p->context, l->kept_at),
	    .work = p->work,
	};

	for (size_t i = 0; i < l->spec.input_count; i++) {
		v.x[i] = l->x_at[i] == LAYER_OUTSIDE ? p->input : at(p->context, l->x_at[i]);
		v.dx[i] = l->dx_at[i] == LAYER_OUTSIDE ? p->input_gradient
						       : at(p->gradients, l->dx_at[i]);
	}
	/* A layer of the same bytes only looks at the net's input; nobody writes through its y. */
	v.y = l->y_at == LAYER_OUTSIDE ? (float *)(uintptr_t)p->input : at(p->context, l->y_at);
	return v;
}
