#include "plan.h"

#include "num.h"

#define LINE ((size_t)64)

static bool
round_up(size_t bytes, size_t *out)
{
	if (!num_add(bytes, LINE - 1, out))
		return false;
	*out &= ~(LINE - 1);
	return true;
}

/* Takes n * size bytes off the end. */
static bool
reserve(size_t *end, size_t *at, size_t n, size_t size)
{
	size_t bytes;

	*at = *end;
	return num_mul(n, size, &bytes) && round_up(bytes, &bytes) && num_add(*end, bytes, end);
}

/* A layer may write over its input when nobody else reads those bytes. */
static enum err
share_outputs(struct layer *layers, size_t count, struct why *why)
{
	unsigned users[RECIPE_LAYERS_MAX] = {0};
	/* Of a layer's output: it has bytes of its own; nobody may write over them. */
	bool sole[RECIPE_LAYERS_MAX], fixed[RECIPE_LAYERS_MAX];

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < layers[i].spec.input_count; k++)
			if (layers[i].spec.inputs[k] != LAYER_INPUT)
				users[layers[i].spec.inputs[k]]++;
	for (size_t i = 0; i < count; i++) {
		struct layer *l = &layers[i];
		const struct layer_traits *t = layer_traits(l->spec.type);
		int from = l->spec.inputs[0];
		bool free_input =
		    from != LAYER_INPUT && users[from] == 1 && sole[from] && !fixed[from];
		l->in_place = free_input && (t->may_alias || t->same_bytes);
		sole[i] = t->same_bytes ? free_input : true;
		fixed[i] = t->reads_output || (t->same_bytes && from != LAYER_INPUT && fixed[from]);
		if (users[i] == 0 && i + 1 < count)
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": no other layer uses its output", l->spec.name);
	}
	return ERR_OK;
}

/* Backward runs from the last layer to the first: who comes first stores a gradient, the others add. */
static void
order_gradients(struct layer *layers, size_t count)
{
	bool stored[1 + RECIPE_LAYERS_MAX] = {false}; /* the net's input first */

	for (size_t i = count; i-- > 0;)
		for (size_t k = 0; k < layers[i].spec.input_count; k++) {
			bool *from = &stored[1 + layers[i].spec.inputs[k]];
			layers[i].add[k] = *from;
			*from = true;
		}
}

static bool
place_output(struct plan *p, struct layer *l, const struct layer *before, size_t floats)
{
	bool same = l->in_place || layer_traits(l->spec.type)->same_bytes;

	if (!same)
		return reserve(&p->context, &l->y_at, floats, sizeof(float));
	l->y_at = before ? before->y_at : LAYER_OUTSIDE;
	return true;
}

static bool
place_gradient(struct plan *p, struct layer *l, const struct layer *before, size_t floats)
{
	if (!l->in_place || !before || before->dy_at == LAYER_NOWHERE)
		return reserve(&p->shared, &l->dy_at, floats, sizeof(float));
	l->dy_at = before->dy_at;
	return true;
}

static void
link_inputs(struct layer *l, const struct layer *layers, const struct plan_want *want)
{
	for (size_t i = 0; i < l->spec.input_count; i++) {
		int from = l->spec.inputs[i];
		bool outside = from == LAYER_INPUT;
		l->x_at[i] = outside ? LAYER_OUTSIDE : layers[from].y_at;
		l->dx_at[i] = LAYER_NOWHERE;
		if (want->train && outside && want->input_gradient)
			l->dx_at[i] = LAYER_OUTSIDE;
		else if (want->train && !outside && layers[from].trains)
			l->dx_at[i] = layers[from].dy_at;
	}
}

static bool
place_kept(struct plan *p, struct layer *l, uint32_t batch)
{
	size_t bytes;

	return num_mul(l->saved, batch, &bytes) && num_add(bytes, l->saved_once, &bytes) &&
	    reserve(&p->context, &l->kept_at, bytes, 1);
}

static bool
count_work(const struct layer *l, uint32_t batch, size_t *work)
{
	size_t floats;

	if (!num_mul(l->work_each, batch, &floats) || !num_add(floats, l->work, &floats))
		return false;
	*work = floats > *work ? floats : *work;
	return true;
}

/* The last layer's gradient is that of the loss, which is worked out even if nothing moves. */
static bool
place_layer(
    struct plan *p, struct layer *layers, size_t count, size_t i, const struct plan_want *want)
{
	struct layer *l = &layers[i];
	int from = l->spec.inputs[0];
	const struct layer *before = from == LAYER_INPUT ? NULL : &layers[from];
	size_t floats;

	l->dy_at = l->kept_at = LAYER_NOWHERE;
	if (!num_mul(l->out.size, want->max_batch, &floats) || !place_output(p, l, before, floats))
		return false;
	if (want->train && (l->trains || i + 1 == count) && !place_gradient(p, l, before, floats))
		return false;
	link_inputs(l, layers, want);
	return !want->train || place_kept(p, l, want->max_batch);
}

static bool
add_up(struct plan *p, size_t work, uint32_t contexts)
{
	size_t all;

	return reserve(&p->shared, &p->work_at, work, sizeof(float)) &&
	    num_mul(p->context, contexts, &all) && num_add(p->shared, all, &p->passes);
}

enum err
plan_passes(struct plan *p, struct layer *layers, size_t count, const struct plan_want *want,
    struct why *why)
{
	size_t work = 0;
	enum err e = share_outputs(layers, count, why);

	if (e)
		return e;
	*p = (struct plan){0};
	order_gradients(layers, count);
	for (size_t i = 0; i < count; i++) {
		if (!count_work(&layers[i], want->max_batch, &work) ||
		    !place_layer(p, layers, count, i, want))
			return err_set(
			    why, ERR_LIMIT, "layer \"%s\": too large", layers[i].spec.name);
	}
	if (!add_up(p, work, want->contexts))
		return err_set(why, ERR_LIMIT, "the network is too large");
	return ERR_OK;
}

bool
plan_state(uint64_t elements, size_t vectors, size_t *bytes)
{
	size_t vector;

	return elements <= SIZE_MAX && num_mul((size_t)elements, sizeof(float), &vector) &&
	    round_up(vector, &vector) && num_mul(vector, vectors, bytes);
}
