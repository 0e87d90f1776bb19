#include "costs.h"

#include "net_inside.h"

/* The range of a layer. */
static size_t
range_of(const struct net *net, size_t layer)
{
	return net->graph.ranges > 1 && layer >= net->graph.range[1].begin ? 1 : 0;
}

/* Where something of a context begins, that layer `layer` keeps: what lies there reaches to where the next one begins. */
static size_t
end_of(const struct net *net, size_t layer, size_t from)
{
	const struct graph_range *g = &net->graph.range[range_of(net, layer)];
	size_t end = net->run[range_of(net, layer)].plan.context;

	for (size_t i = g->begin; i < g->begin + g->count; i++) {
		const struct layer *l = &net->graph.layers[i];
		if (!l->y_shared && l->y_at > from && l->y_at < end)
			end = l->y_at;
		if (!l->kept_shared && l->kept_at > from && l->kept_at < end)
			end = l->kept_at;
	}
	return end;
}

static bool
is_own(const struct net *net, size_t i)
{
	const struct layer *l = &net->graph.layers[i];

	return !l->in_place && !layer_traits(l->spec.type)->same_bytes &&
	    l->y_at != LAYER_OUTSIDE && l->out.size > 0;
}

static bool
has_gradient(const struct net *net, size_t i)
{
	const struct layer *l = &net->graph.layers[i];
	const struct layer *layers = net->graph.layers + net->graph.range[range_of(net, i)].begin;
	int from = l->spec.inputs[0];

	/* That of the loss is written over what it is about. */
	if (i + 1 == net->graph.count && l->y_shared && l->dy_at == l->y_at)
		return false;
	return net->part.train && l->dy_at != LAYER_NOWHERE &&
	    !(l->spends && from != LAYER_INPUT && layers[from].dy_at == l->dy_at);
}

size_t
costs_layers(const struct net *net)
{
	return net->graph.count;
}

void
costs_layer(const struct net *net, size_t i, struct costs_layer *out)
{
	const struct layer *l = &net->graph.layers[i];
	const struct plan_want want = {.max_batch = net->part.max_batch,
	    .contexts = net->run[range_of(net, i)].contexts,
	    .threads = net_threads(net)};
	uint64_t output = (uint64_t)l->out.size * want.max_batch * sizeof(float);
	size_t floats = 0;

	*out = (struct costs_layer){.name = l->spec.name, .type = l->spec.type, .output = output};
	for (size_t k = 0; k < l->param_count; k++)
		out->parameters += l->param[k].count * sizeof(float);
	if (is_own(net, i) && l->y_shared)
		out->passing = output;
	else if (is_own(net, i))
		out->kept = end_of(net, i, l->y_at) - l->y_at;
	if (l->kept_at != LAYER_NOWHERE && l->kept_shared)
		out->passing += l->saved * want.max_batch + l->saved_once;
	else if (l->kept_at != LAYER_NOWHERE && l->saved + l->saved_once > 0)
		out->kept += end_of(net, i, l->kept_at) - l->kept_at;
	if (out->kept > l->saved_once)
		out->each = (out->kept - l->saved_once) / want.max_batch;
	if (has_gradient(net, i))
		out->gradient = output;
	if (plan_work(l, &want, &floats))
		out->work = (uint64_t)floats * sizeof(float);
}

void
costs_all(const struct net *net, struct costs *out)
{
	uint64_t vector = (uint64_t)net->stride * sizeof(float);

	*out = (struct costs){.weights = vector,
	    .gradient = (net->stores ? vector : 0) + (uint64_t)net->scratch * sizeof(float),
	    .optimizer = (net->vectors - 1 - net->stores) * vector};
	for (size_t r = 0; r < net->graph.ranges; r++) {
		const struct plan *p = &net->run[r].plan;
		out->contexts += p->passes - p->shared;
		out->shared += p->work_at;
	}
	out->work = net_workspace(net);
}
