#include <stdlib.h>
#include <string.h>

#include "init.h"
#include "net_inside.h"
#include "num.h"

static enum err
check_loss(const struct net *net, struct why *why)
{
	const struct layer *l = net_last(net);

	if (!net->ends || net->loss == LOSS_MSE)
		return ERR_OK;
	if (l->out.h != 1 || l->out.w != 1)
		return err_set(why, ERR_INVALID, "layer \"%s\": cross-entropy needs a flat output",
		    l->spec.name);
	if (l->out.size != net->part.classes)
		return err_set(why, ERR_INVALID, "layer \"%s\": it has %zu outputs for %zu classes",
		    l->spec.name, l->out.size, net->part.classes);
	return ERR_OK;
}

/* Room for so many vectors of state. The weights move along. */
static enum err
make_state(struct net *net, size_t vectors, struct why *why)
{
	size_t bytes, all;

	if (!plan_state(net->graph.tensors.elements, vectors, &bytes) ||
	    !num_add(bytes, net->plan.passes, &all) ||
	    (net->part.max_bytes > 0 && all > net->part.max_bytes))
		return err_set(why, ERR_LIMIT,
		    "the network needs more memory than the limit of %llu bytes",
		    (unsigned long long)net->part.max_bytes);
	if (net->state && vectors <= net->vectors)
		return ERR_OK;
	float *state = net->backend->allocate(bytes);
	if (!state)
		return err_set(why, ERR_NOMEM, "no memory for the network's parameters");
	size_t weights = (size_t)net->graph.tensors.elements * sizeof(float);
	if (net->state)
		memcpy(state, net->state, weights);
	else
		memset(state, 0, weights);
	net->backend->release(net->state);
	net->state = state;
	net->vectors = vectors;
	net->stride = bytes / vectors / sizeof(float);
	net->update = (struct update){0};
	return ERR_OK;
}

static bool
held(const struct net *net, uint64_t first)
{
	for (size_t i = 0; i < net->graph.count; i++) {
		const struct layer *l = &net->graph.layers[i];
		if ((l->hold_weight && l->weights > 0 && l->weight_at == first) ||
		    (l->hold_bias && l->biases > 0 && l->bias_at == first))
			return true;
	}
	return false;
}

static void
list_moving(struct net *net)
{
	const struct tensor_table *t = &net->graph.tensors;

	net->moving_count = 0;
	for (size_t i = 0; i < t->count; i++)
		if (!held(net, t->items[i].begin / sizeof(float)))
			net->moving[net->moving_count++] =
			    (struct update_range){(size_t)(t->items[i].begin / sizeof(float)),
				(size_t)t->items[i].elements};
}

static enum err
set_up(struct net *net, const struct net_spec *spec, struct why *why)
{
	const struct net_part *p = &net->part;
	const struct plan_want want = {p->max_batch, p->contexts, p->train, p->first > 0};
	enum err e = graph_build(&net->graph, spec, p->first, p->last, net->backend, why);

	if (!e)
		e = plan_passes(&net->plan, net->graph.layers, net->graph.count, &want, why);
	if (!e)
		e = check_loss(net, why);
	if (!e)
		e = make_state(net, 1, why);
	if (e)
		return e;
	net->passes = net->backend->allocate(net->plan.passes);
	net->moving = calloc(net->graph.tensors.count + 1, sizeof(*net->moving));
	net->contexts = calloc(p->contexts, sizeof(*net->contexts));
	if (!net->passes || !net->moving || !net->contexts)
		return err_set(why, ERR_NOMEM, "no memory for the network");
	list_moving(net);
	return ERR_OK;
}

enum err
net_new_part(struct net **out, const struct net_part *part, struct why *why)
{
	if (part->max_batch == 0 || part->contexts == 0)
		return err_set(why, ERR_INVALID,
		    part->contexts > 0 ? "the batch is empty" : "a net needs a context");
	struct net *net = calloc(1, sizeof(*net));
	if (!net)
		return err_set(why, ERR_NOMEM, "no memory for the network");
	net->backend = &backend_cpu;
	net->loss = part->spec->loss;
	net->part = *part;
	net->ends = part->last == part->spec->layer_count;
	enum err e = set_up(net, part->spec, why);
	if (e)
		net_free(net);
	else
		*out = net;
	return e;
}

enum err
net_new(struct net **out, const struct net_spec *spec, size_t classes, uint32_t max_batch,
    bool train, uint64_t max_bytes, struct why *why)
{
	const struct net_part whole = {.spec = spec,
	    .classes = classes,
	    .last = spec->layer_count,
	    .max_batch = max_batch,
	    .contexts = 1,
	    .train = train,
	    .max_bytes = max_bytes};

	return net_new_part(out, &whole, why);
}

void
net_free(struct net *net)
{
	if (!net)
		return;
	graph_deinit(&net->graph);
	net->backend->release(net->state);
	net->backend->release(net->passes);
	free(net->moving);
	free(net->contexts);
	free(net);
}

const struct tensor_table *
net_tensors(const struct net *net)
{
	return &net->graph.tensors;
}

float *
net_params(struct net *net)
{
	return net->state;
}

size_t
net_inputs(const struct net *net)
{
	return net->graph.input.size;
}

size_t
net_outputs(const struct net *net)
{
	return net_last(net)->out.size;
}

void
net_output_shape(const struct net *net, uint32_t out[3])
{
	const struct layer_shape *s = &net_last(net)->out;

	out[0] = s->c;
	out[1] = s->h;
	out[2] = s->w;
}

uint32_t
net_max_batch(const struct net *net)
{
	return net->part.max_batch;
}

double
net_work(const struct net *net)
{
	double sum = 0;

	for (size_t i = 0; i < net->graph.count; i++)
		sum += layer_work(&net->graph.layers[i]);
	return sum;
}

uint64_t
net_bytes(const struct net *net)
{
	return (uint64_t)net->vectors * net->stride * sizeof(float) + net->plan.passes;
}

void
net_init(struct net *net, uint64_t seed)
{
	memset(net->state, 0, net->graph.tensors.elements * sizeof(float));
	for (size_t i = 0; i < net->graph.count; i++) {
		const struct layer *l = &net->graph.layers[i];
		if (l->weights > 0)
			init_weights(net->state + l->weight_at, l->weights, l->spec.init, l->fan_in,
			    l->fan_out, seed, l->index);
		/* In a stream of its own, behind those of all layers. */
		if (l->biases > 0 && l->spec.init == INIT_TORCH)
			init_weights(net->state + l->bias_at, l->biases, INIT_TORCH, l->fan_in,
			    l->fan_out, seed, RECIPE_LAYERS_MAX + l->index);
	}
}

void
net_hold(struct net *net, size_t i)
{
	uint64_t first = net->graph.tensors.items[i].begin / sizeof(float);

	for (size_t k = 0; k < net->graph.count; k++) {
		struct layer *l = &net->graph.layers[k];
		l->hold_weight |= l->weights > 0 && l->weight_at == first;
		l->hold_bias |= l->biases > 0 && l->bias_at == first;
	}
	list_moving(net);
}

enum err
net_prepare(struct net *net, const struct net_update *how, struct why *why)
{
	if (!net->part.train)
		return ERR_STATE;
	if (how->clip > 0 && (net->part.first > 0 || !net->ends))
		return err_set(why, ERR_UNSUPPORTED,
		    "the norm of a gradient is known to the whole network only");
	enum err e = make_state(net, 1 + update_vectors(how), why);
	if (!e)
		update_begin(&net->update, how, net->state, net->stride,
		    (size_t)net->graph.tensors.elements);
	return e;
}
