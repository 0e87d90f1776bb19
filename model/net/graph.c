#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conv.h"
#include "elementwise.h"
#include "linear.h"
#include "num.h"
#include "pool.h"

static const struct layer_ops *const types[] = {
    [LAYER_LINEAR] = &linear_ops,
    [LAYER_CONV2D] = &conv_ops,
    [LAYER_MAXPOOL2D] = &pool_max_ops,
    [LAYER_AVGPOOL2D] = &pool_average_ops,
    [LAYER_RELU] = &elementwise_relu_ops,
    [LAYER_FLATTEN] = &elementwise_flatten_ops,
    [LAYER_DROPOUT] = &elementwise_dropout_ops,
    [LAYER_ADD] = &elementwise_add_ops,
};

/* Inputs exist, come earlier, and are as many as the type takes. */
static enum err
check_inputs(const struct layer *l, size_t index, struct why *why)
{
	const struct layer_spec *s = &l->spec;

	if (s->input_count == 0 || s->input_count > RECIPE_INPUTS_MAX)
		return err_set(why, ERR_INVALID, "layer \"%s\": it needs 1 to %d inputs", s->name,
		    RECIPE_INPUTS_MAX);
	if (s->input_count > 1 && !l->ops->many_inputs)
		return err_set(why, ERR_INVALID, "layer \"%s\": it takes one input", s->name);
	for (size_t i = 0; i < s->input_count; i++)
		if (s->inputs[i] < LAYER_INPUT || s->inputs[i] >= (int)index)
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": its input is no earlier layer", s->name);
	return ERR_OK;
}

static enum err
add_tensors(struct graph *g, struct layer *l, struct why *why)
{
	char name[TENSOR_NAME_MAX];
	enum err e = ERR_OK;

	l->weight_at = g->tensors.elements;
	if (l->weights > 0) {
		snprintf(name, sizeof(name), "%s.weight", l->spec.name);
		e = tensor_table_add(&g->tensors, name, l->weight_shape, l->weight_dims, why);
	}
	l->bias_at = g->tensors.elements;
	if (!e && l->biases > 0) {
		snprintf(name, sizeof(name), "%s.bias", l->spec.name);
		e = tensor_table_add(&g->tensors, name, l->weight_shape, 1, why);
	}
	return e;
}

static enum err
add_layer(struct graph *g, size_t index, struct why *why)
{
	struct layer *l = &g->layers[index];

	if (l->spec.type < 0 || (size_t)l->spec.type >= sizeof(types) / sizeof(types[0]))
		return err_set(why, ERR_UNSUPPORTED, "layer \"%s\": unknown type", l->spec.name);
	l->ops = types[l->spec.type];
	enum err e = check_inputs(l, index, why);
	if (e)
		return e;
	for (size_t i = 0; i < l->spec.input_count; i++) {
		int from = l->spec.inputs[i];
		l->in[i] = from == LAYER_INPUT ? g->input : g->layers[from].out;
		l->trains |= from != LAYER_INPUT && g->layers[from].trains;
	}
	e = l->ops->shape(l, why);
	l->trains |= l->weights > 0;
	return e ? e : add_tensors(g, l, why);
}

/* A layer may write over its input when nobody else reads those bytes. */
static enum err
share_buffers(struct graph *g, struct why *why)
{
	unsigned users[RECIPE_LAYERS_MAX] = {0};
	bool sole[RECIPE_LAYERS_MAX];

	for (size_t i = 0; i < g->count; i++)
		for (size_t k = 0; k < g->layers[i].spec.input_count; k++)
			if (g->layers[i].spec.inputs[k] != LAYER_INPUT)
				users[g->layers[i].spec.inputs[k]]++;
	for (size_t i = 0; i < g->count; i++) {
		struct layer *l = &g->layers[i];
		int from = l->spec.inputs[0];
		bool free_input = from != LAYER_INPUT && users[from] == 1 && sole[from];
		l->in_place = free_input && (l->ops->may_alias || l->ops->same_bytes);
		sole[i] = l->ops->same_bytes ? free_input : true;
		if (users[i] == 0 && i + 1 < g->count)
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": no other layer uses its output", l->spec.name);
	}
	return ERR_OK;
}

/* Backward runs from the last layer to the first: who comes first stores a gradient, the others add. */
static void
order_gradients(struct graph *g)
{
	bool stored[RECIPE_LAYERS_MAX] = {0};

	for (size_t i = g->count; i-- > 0;)
		for (size_t k = 0; k < g->layers[i].spec.input_count; k++) {
			int from = g->layers[i].spec.inputs[k];
			if (from == LAYER_INPUT)
				continue;
			g->layers[i].add[k] = stored[from];
			stored[from] = true;
		}
}

/* Takes n * size bytes off the block, on a cache line. */
static bool
reserve(struct graph *g, size_t *at, size_t n, size_t size)
{
	size_t bytes;

	*at = g->bytes;
	return num_mul(n, size, &bytes) && num_add(bytes, 63, &bytes) &&
	    num_add(g->bytes, bytes & ~(size_t)63, &g->bytes);
}

static bool
place_layer(struct graph *g, struct layer *l, size_t batch, bool train)
{
	size_t floats;

	if (!num_mul(l->out.size, batch, &floats))
		return false;
	if (l->in_place) {
		l->y_at = g->layers[l->spec.inputs[0]].y_at;
		l->dy_at = g->layers[l->spec.inputs[0]].dy_at;
	} else if (!l->ops->same_bytes && !reserve(g, &l->y_at, floats, sizeof(float))) {
		return false;
	} else if (train && !reserve(g, &l->dy_at, floats, sizeof(float))) {
		return false;
	}
	return !train || reserve(g, &l->saved_at, batch, l->saved);
}

static enum err
place(struct graph *g, size_t batch, bool train, struct why *why)
{
	size_t work = 0;

	for (size_t i = 0; i < g->count; i++) {
		struct layer *l = &g->layers[i];
		work = l->work > work ? l->work : work;
		if (!place_layer(g, l, batch, train))
			return err_set(why, ERR_LIMIT, "layer \"%s\": too large", l->spec.name);
	}
	if (!reserve(g, &g->work_at, work, sizeof(float)))
		return err_set(why, ERR_LIMIT, "the network is too large");
	return ERR_OK;
}

static enum err
build(struct graph *g, const struct net_spec *spec, uint32_t max_batch, bool train, struct why *why)
{
	enum err e = layer_shape_set(
	    &g->input, spec->input[0], spec->input[1], spec->input[2], "input", why);

	for (size_t i = 0; !e && i < g->count; i++) {
		g->layers[i].spec = spec->layers[i];
		g->layers[i].index = (uint32_t)i;
		e = add_layer(g, i, why);
	}
	if (!e)
		e = share_buffers(g, why);
	if (e)
		return e;
	order_gradients(g);
	return place(g, max_batch, train, why);
}

enum err
graph_build(
    struct graph *g, const struct net_spec *spec, uint32_t max_batch, bool train, struct why *why)
{
	*g = (struct graph){.count = spec->layer_count};
	if (spec->layer_count == 0)
		return err_set(why, ERR_INVALID, "the network has no layers");
	if (spec->layer_count > RECIPE_LAYERS_MAX)
		return err_set(why, ERR_LIMIT, "more than %d layers", RECIPE_LAYERS_MAX);
	g->layers = calloc(g->count, sizeof(*g->layers));
	if (!g->layers)
		return err_set(why, ERR_NOMEM, "no memory for %zu layers", g->count);
	enum err e = build(g, spec, max_batch, train, why);
	if (e)
		graph_deinit(g);
	return e;
}

void
graph_deinit(struct graph *g)
{
	tensor_table_deinit(&g->tensors);
	free(g->layers);
	*g = (struct graph){0};
}
