#include "net.h"

#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "init.h"
#include "loss.h"
#include "num.h"
#include "sgd.h"
#include "update.h"

struct net {
	struct graph graph;
	enum loss_type loss;
	size_t outputs;
	uint32_t max_batch;
	bool train;
	uint64_t max_bytes;
	float *params;
	struct update update;
	struct update_range *moving; /* what steps may move, one range per tensor */
	size_t moving_count;
	char *block; /* activations, gradients, kept values, workspace */
};

static void *
allocate(size_t bytes)
{
	void *p = NULL;

	/* Fresh pages come zeroed from the kernel and cost nothing until they are used. */
	if (posix_memalign(&p, 64, bytes > 0 ? bytes : 64) != 0)
		return NULL;
	return p;
}

static enum err
check_loss(const struct net *net, size_t classes, struct why *why)
{
	const struct layer *last = &net->graph.layers[net->graph.count - 1];

	if (net->loss == LOSS_MSE)
		return ERR_OK;
	if (last->out.h != 1 || last->out.w != 1)
		return err_set(why, ERR_INVALID, "layer \"%s\": cross-entropy needs a flat output",
		    last->spec.name);
	if (last->out.size != classes)
		return err_set(why, ERR_INVALID, "layer \"%s\": it has %zu outputs for %zu classes",
		    last->spec.name, last->out.size, classes);
	return ERR_OK;
}

static enum err
check_bytes(const struct net *net, size_t vectors, struct why *why)
{
	uint64_t elements = net->graph.tensors.elements;
	size_t bytes;

	if (elements > SIZE_MAX || !num_mul((size_t)elements, vectors * sizeof(float), &bytes) ||
	    !num_add(bytes, net->graph.bytes, &bytes) ||
	    (net->max_bytes > 0 && bytes > net->max_bytes))
		return err_set(why, ERR_LIMIT,
		    "the network needs more memory than the limit of %llu bytes",
		    (unsigned long long)net->max_bytes);
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
set_up(struct net *net, size_t classes, struct why *why)
{
	enum err e = check_loss(net, classes, why);

	if (!e)
		e = check_bytes(net, 1, why);
	if (e)
		return e;
	size_t bytes = net->graph.tensors.elements * sizeof(float);
	net->params = allocate(bytes);
	net->block = allocate(net->graph.bytes);
	net->moving = calloc(net->graph.tensors.count + 1, sizeof(*net->moving));
	if (!net->params || !net->block || !net->moving)
		return err_set(why, ERR_NOMEM, "no memory for the network");
	memset(net->params, 0, bytes);
	list_moving(net);
	return ERR_OK;
}

enum err
net_new(struct net **out, const struct net_spec *spec, size_t classes, uint32_t max_batch,
    bool train, uint64_t max_bytes, struct why *why)
{
	if (max_batch == 0)
		return err_set(why, ERR_INVALID, "the batch is empty");
	struct net *net = calloc(1, sizeof(*net));
	if (!net)
		return err_set(why, ERR_NOMEM, "no memory for the network");
	net->loss = spec->loss;
	net->max_batch = max_batch;
	net->train = train;
	net->max_bytes = max_bytes;
	enum err e = graph_build(&net->graph, spec, max_batch, train, why);
	if (!e) {
		net->outputs = net->graph.layers[net->graph.count - 1].out.size;
		e = set_up(net, classes, why);
	}
	if (e)
		net_free(net);
	else
		*out = net;
	return e;
}

void
net_free(struct net *net)
{
	if (!net)
		return;
	graph_deinit(&net->graph);
	free(net->params);
	update_deinit(&net->update);
	free(net->moving);
	free(net->block);
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
	return net->params;
}

size_t
net_inputs(const struct net *net)
{
	return net->graph.input.size;
}

size_t
net_outputs(const struct net *net)
{
	return net->outputs;
}

uint32_t
net_max_batch(const struct net *net)
{
	return net->max_batch;
}

void
net_init(struct net *net, uint64_t seed)
{
	memset(net->params, 0, net->graph.tensors.elements * sizeof(float));
	for (size_t i = 0; i < net->graph.count; i++) {
		const struct layer *l = &net->graph.layers[i];
		if (l->weights > 0)
			init_weights(net->params + l->weight_at, l->weights, l->spec.init,
			    l->fan_in, l->fan_out, seed, i);
	}
}

/* Points a layer at this batch and its places in the blocks. */
static void
bind(struct net *net, struct layer *l, const float *x, bool backward)
{
	l->weight = l->weights > 0 ? net->params + l->weight_at : NULL;
	l->bias = l->biases > 0 ? net->params + l->bias_at : NULL;
	l->kept = net->train ? net->block + l->saved_at : NULL;
	l->dy = backward ? (float *)(void *)(net->block + l->dy_at) : NULL;
	for (size_t i = 0; i < l->spec.input_count; i++) {
		int from = l->spec.inputs[i];
		struct layer *before = from == LAYER_INPUT ? NULL : &net->graph.layers[from];
		l->x[i] = before ? before->y : x;
		l->dx[i] = backward && before && before->trains ? before->dy : NULL;
	}
	/* A layer of the same bytes only looks at its input; nobody writes through its y. */
	l->y = l->ops->same_bytes ? (float *)(uintptr_t)l->x[0]
				  : (float *)(void *)(net->block + l->y_at);
}

static void
forward(struct net *net, const float *x, const struct layer_pass *pass, bool backward)
{
	for (size_t i = 0; i < net->graph.count; i++) {
		struct layer *l = &net->graph.layers[i];
		bind(net, l, x, backward);
		l->ops->forward(l, pass);
	}
}

static struct layer *
last(const struct net *net)
{
	return &net->graph.layers[net->graph.count - 1];
}

const float *
net_output(const struct net *net)
{
	return last(net)->y;
}

static enum err
check_batch(const struct net *net, const struct net_batch *b)
{
	if (b->n == 0 || b->n > net->max_batch)
		return ERR_INVALID;
	if (net->loss == LOSS_MSE)
		return b->targets ? ERR_OK : ERR_INVALID;
	if (!b->labels)
		return ERR_INVALID;
	for (uint32_t i = 0; i < b->n; i++)
		if (b->labels[i] < 0 || (size_t)b->labels[i] >= net->outputs)
			return ERR_INVALID;
	return ERR_OK;
}

static enum err
loss(struct net *net, const struct net_batch *b, float *gradient, struct net_result *result)
{
	const float *y = last(net)->y;

	if (net->loss == LOSS_MSE)
		return loss_mse(y, b->targets, b->n, net->outputs, gradient, result);
	return loss_cross_entropy(y, b->labels, b->n, net->outputs, gradient, result);
}

enum err
net_eval(struct net *net, const struct net_batch *batch, struct net_result *result)
{
	struct layer_pass pass = {
	    .n = batch->n, .work = (float *)(void *)(net->block + net->graph.work_at)};
	enum err e = check_batch(net, batch);

	if (e)
		return e;
	forward(net, batch->x, &pass, false);
	return loss(net, batch, NULL, result);
}

static enum err
learn(struct net *net, const struct net_batch *b, const struct sgd *sgd, struct net_result *result)
{
	struct layer_pass pass = {
	    .n = b->n,
	    .draw = b->draw,
	    .work = (float *)(void *)(net->block + net->graph.work_at),
	    .sgd = sgd,
	};
	enum err e = net->train ? check_batch(net, b) : ERR_STATE;

	if (e)
		return e;
	forward(net, b->x, &pass, true);
	e = loss(net, b, last(net)->dy, result);
	for (size_t i = net->graph.count; !e && i-- > 0;)
		if (net->graph.layers[i].trains)
			net->graph.layers[i].ops->backward(&net->graph.layers[i], &pass);
	return e;
}

enum err
net_prepare(struct net *net, const struct net_update *how, struct why *why)
{
	enum err e = net->train ? check_bytes(net, 1 + update_vectors(how), why) : ERR_STATE;

	if (e)
		return e;
	e = update_begin(&net->update, how, net->params, net->graph.tensors.elements);
	return e ? err_set(why, e, "no memory for the optimizer") : ERR_OK;
}

/* Steps that nobody prepared, as of tests: the vectors come to life with the first that needs them. */
static enum err
need_vectors(struct net *net, const struct net_update *how)
{
	const struct update *u = &net->update;
	bool adaptive = how->type != OPTIMIZER_SGD;

	if ((how->prox != 0 && !u->anchor) || (adaptive && !u->second))
		return ERR_STATE;
	if ((u->first || how->momentum == 0) && (u->gradient || !update_collects(how)))
		return ERR_OK;
	return net_prepare(net, how, NULL);
}

static enum err
collect(struct net *net, const struct net_batch *b, float share, struct net_result *result)
{
	struct update *u = &net->update;
	const struct sgd sgd = {
	    .params = net->params, .gradient = u->gradient, .share = share, .add = u->collected};
	enum err e = learn(net, b, &sgd, result);

	u->collected = u->collected || !e;
	return e;
}

enum err
net_step(struct net *net, const struct net_batch *batch, const struct net_update *how,
    struct net_result *result)
{
	enum err e = need_vectors(net, how);

	if (e)
		return e;
	if (update_collects(how)) {
		e = collect(net, batch, 1, result);
		if (!e)
			net_move(net, how);
		return e;
	}
	const struct sgd sgd = {
	    .params = net->params,
	    .velocity = how->momentum != 0 ? net->update.first : NULL,
	    .rate = how->rate,
	    .momentum = how->momentum,
	    .weight_decay = how->weight_decay,
	};
	return learn(net, batch, &sgd, result);
}

enum err
net_add(struct net *net, const struct net_batch *batch, float share, struct net_result *result)
{
	return net->update.gradient ? collect(net, batch, share, result) : ERR_STATE;
}

void
net_move(struct net *net, const struct net_update *how)
{
	update_move(&net->update, how, net->params, net->moving, net->moving_count);
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
net_gradient(struct net *net, const struct net_batch *batch, float *grad)
{
	struct sgd sgd = {.params = net->params, .gradient = grad, .share = 1};
	struct net_result result;

	return learn(net, batch, &sgd, &result);
}
