#include "net.h"

#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "init.h"
#include "loss.h"
#include "num.h"
#include "sgd.h"

struct net {
	struct graph graph;
	enum loss_type loss;
	size_t outputs;
	uint32_t max_batch;
	bool train;
	uint64_t max_bytes;
	float *params;
	float *velocity; /* NULL until a step has momentum */
	char *block; /* activations, gradients, kept values, workspace */
};

/* What the input of a pass is checked for and worked on. */
struct batch {
	const float *x;
	const int32_t *labels;
	const float *targets;
	uint32_t n;
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
	size_t bytes;

	if (!num_mul(net->graph.tensors.elements, vectors * sizeof(float), &bytes) ||
	    !num_add(bytes, net->graph.bytes, &bytes) ||
	    (net->max_bytes > 0 && bytes > net->max_bytes))
		return err_set(why, ERR_LIMIT,
		    "the network needs more memory than the limit of %llu bytes",
		    (unsigned long long)net->max_bytes);
	return ERR_OK;
}

static enum err
set_up(struct net *net, size_t classes, struct why *why)
{
	enum err e = check_loss(net, classes, why);

	if (e == ERR_OK)
		e = check_bytes(net, 1, why);
	if (e)
		return e;
	size_t bytes = net->graph.tensors.elements * sizeof(float);
	net->params = allocate(bytes);
	net->block = allocate(net->graph.bytes);
	if (!net->params || !net->block)
		return err_set(why, ERR_NOMEM, "no memory for the network");
	memset(net->params, 0, bytes);
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
	if (e == ERR_OK) {
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
	free(net->velocity);
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
check_batch(const struct net *net, const struct batch *b)
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
loss(struct net *net, const struct batch *b, float *gradient, struct net_result *result)
{
	const float *y = last(net)->y;

	if (net->loss == LOSS_MSE)
		return loss_mse(y, b->targets, b->n, net->outputs, gradient, result);
	return loss_cross_entropy(y, b->labels, b->n, net->outputs, gradient, result);
}

enum err
net_eval(struct net *net, const float *x, const int32_t *labels, const float *targets, uint32_t n,
    struct net_result *result)
{
	struct batch b = {x, labels, targets, n};
	struct layer_pass pass = {
	    .n = n, .work = (float *)(void *)(net->block + net->graph.work_at)};
	enum err e = check_batch(net, &b);

	if (e)
		return e;
	forward(net, x, &pass, false);
	return loss(net, &b, NULL, result);
}

static enum err
learn(struct net *net, const struct batch *b, const struct sgd *sgd, struct prng *rng,
    struct net_result *result)
{
	struct layer_pass pass = {
	    .n = b->n,
	    .rng = rng,
	    .work = (float *)(void *)(net->block + net->graph.work_at),
	    .sgd = sgd,
	};
	enum err e = net->train ? check_batch(net, b) : ERR_STATE;

	if (e)
		return e;
	forward(net, b->x, &pass, true);
	e = loss(net, b, last(net)->dy, result);
	for (size_t i = net->graph.count; e == ERR_OK && i-- > 0;)
		if (net->graph.layers[i].trains)
			net->graph.layers[i].ops->backward(&net->graph.layers[i], &pass);
	return e;
}

/* The velocity comes to life with the first step that needs it. */
static enum err
need_velocity(struct net *net)
{
	if (net->velocity)
		return ERR_OK;
	enum err e = check_bytes(net, 2, NULL);
	if (e)
		return e;
	net->velocity = calloc(net->graph.tensors.elements + 1, sizeof(float));
	return net->velocity ? ERR_OK : ERR_NOMEM;
}

enum err
net_step(struct net *net, const float *x, const int32_t *labels, const float *targets, uint32_t n,
    const struct net_sgd *how, struct prng *rng, struct net_result *result)
{
	struct batch b = {x, labels, targets, n};
	struct sgd sgd = {
	    .params = net->params,
	    .rate = how->rate,
	    .momentum = how->momentum,
	    .weight_decay = how->weight_decay,
	};

	if (how->momentum != 0) {
		enum err e = need_velocity(net);
		if (e)
			return e;
		sgd.velocity = net->velocity;
	}
	return learn(net, &b, &sgd, rng, result);
}

void
net_reset_momentum(struct net *net)
{
	if (net->velocity)
		memset(net->velocity, 0, net->graph.tensors.elements * sizeof(float));
}

enum err
net_gradient(struct net *net, const float *x, const int32_t *labels, const float *targets,
    uint32_t n, struct prng *rng, float *grad)
{
	struct batch b = {x, labels, targets, n};
	struct sgd sgd = {.params = net->params, .gradient = grad};
	struct net_result result;

	return learn(net, &b, &sgd, rng, &result);
}
