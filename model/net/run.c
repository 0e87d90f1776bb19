#include <string.h>

#include "loss.h"
#include "net_inside.h"
#include "sgd.h"

static char *
context_at(const struct net *net, uint32_t context)
{
	return net->passes + net->plan.shared + context * net->plan.context;
}

const float *
net_context_output(const struct net *net, uint32_t context)
{
	const struct layer *l = net_last(net);

	if (l->y_at == LAYER_OUTSIDE)
		return net->contexts[context].x;
	const char *block = l->y_shared ? net->passes : context_at(net, context);
	return (const float *)(const void *)(block + l->y_at);
}

const float *
net_output(const struct net *net)
{
	return net_context_output(net, 0);
}

static enum err
check_tokens(const float *x, size_t n, size_t vocabulary)
{
	for (size_t i = 0; i < n; i++)
		if (!(x[i] >= 0 && x[i] < (float)vocabulary) || x[i] != (float)(uint32_t)x[i])
			return ERR_INVALID;
	return ERR_OK;
}

static enum err
check_examples(const struct net *net, const struct net_batch *b)
{
	if (net->part.planned > 0)
		return ERR_STATE;
	if (b->n == 0 || b->n > net->part.max_batch || !b->x)
		return ERR_INVALID;
	return net->vocabulary > 0
	    ? check_tokens(b->x, b->n * net->graph.input.size, net->vocabulary)
	    : ERR_OK;
}

static enum err
check_batch(const struct net *net, const struct net_batch *b)
{
	enum err e = check_examples(net, b);

	if (e)
		return e;
	if (!net->ends)
		return ERR_OK;
	size_t labels = net_labels(net) * b->n;
	if ((net_targets(net) > 0 && !b->targets) || (labels > 0 && !b->labels))
		return ERR_INVALID;
	for (size_t i = 0; i < labels; i++)
		if (loss_counts(&net->loss, b->labels[i]) &&
		    (b->labels[i] < 0 || (size_t)b->labels[i] >= net_outputs(net)))
			return ERR_INVALID;
	return ERR_OK;
}

static struct backend_pass
pass_of(struct net *net, uint32_t context)
{
	const struct net_batch *b = &net->contexts[context];

	return (struct backend_pass){.n = b->n,
	    .draw = b->draw,
	    .weights = net->state,
	    .arithmetic = net->arithmetic,
	    .team = net->part.team,
	    .context = context_at(net, context),
	    .gradients = net->passes,
	    .work = (float *)(void *)(net->passes + net->plan.work_at),
	    .input = b->x};
}

static const struct backend_layer *
passes_of(const struct net *net, const struct layer *l)
{
	return net->backend->layers[l->spec.type];
}

static void
run_layer(const struct net *net, const struct layer *l, const struct backend_pass *pass)
{
	if (!l->done)
		passes_of(net, l)->forward(l, pass);
}

/* The batch was checked. */
static void
run(struct net *net, uint32_t context, const struct net_batch *batch, bool training)
{
	net->contexts[context] = *batch;
	struct backend_pass pass = pass_of(net, context);
	pass.training = training;
	for (size_t i = 0; i < net->graph.count; i++)
		run_layer(net, &net->graph.layers[i], &pass);
}

static enum err
forward(struct net *net, uint32_t context, const struct net_batch *batch, bool training)
{
	enum err e = check_batch(net, batch);

	if (!e)
		run(net, context, batch, training);
	return e;
}

static float *
output_gradient(struct net *net)
{
	return (float *)(void *)(net->passes + net_last(net)->dy_at);
}

static enum err
loss(struct net *net, uint32_t context, float *gradient, struct net_result *result)
{
	const struct net_batch *b = &net->contexts[context];
	const float *y = net_context_output(net, context);
	const float *targets = net->loss.target_input ? b->x : b->targets;
	struct loss_how how = net->loss;

	how.whole = b->whole;
	switch (how.type) {
	case LOSS_CROSS_ENTROPY:
		return loss_cross_entropy(
		    &how, y, b->labels, b->n * net_labels(net), net_outputs(net), gradient, result);
	case LOSS_BCE:
		return loss_bce(y, targets, b->n, net_outputs(net), gradient, result);
	case LOSS_MSE:
		break;
	}
	return loss_mse(y, targets, b->n, net_outputs(net), gradient, result);
}

/* What the way back needs from layer `reader` on, itself included, and was not kept. */
static void
renew(const struct net *net, size_t reader, const struct backend_pass *back)
{
	struct backend_pass pass = *back;

	pass.training = pass.again = true;
	for (size_t i = 0; i <= reader; i++)
		if (net->graph.layers[i].again == reader + 1)
			run_layer(net, &net->graph.layers[i], &pass);
}

/* The gradient of the output is there. The context is free afterwards. */
static void
backward(struct net *net, uint32_t context, const struct sgd *sgd, float *input_gradient)
{
	struct backend_pass pass = pass_of(net, context);
	struct sgd own = *sgd;

	own.team = pass.team;
	pass.sgd = &own;
	pass.statistics = net->state;
	pass.input_gradient = input_gradient;
	for (size_t i = net->graph.count; i-- > 0;) {
		const struct layer *l = &net->graph.layers[i];
		if (l->before)
			renew(net, i, &pass);
		if (l->trains && !l->done)
			passes_of(net, l)->backward(l, &pass);
	}
}

enum err
net_eval(struct net *net, const struct net_batch *batch, struct net_result *result)
{
	struct net_batch still = *batch;

	still.draw = NULL;
	enum err e = net->ends ? forward(net, 0, &still, false) : ERR_STATE;
	return e ? e : loss(net, 0, NULL, result);
}

/* As far as a step may fail. */
static enum err
begin_step(struct net *net, const struct net_batch *b, struct net_result *result)
{
	enum err e = net->part.train && net->ends ? forward(net, 0, b, true) : ERR_STATE;

	return e ? e : loss(net, 0, output_gradient(net), result);
}

static enum err
learn(struct net *net, const struct net_batch *b, const struct sgd *sgd, struct net_result *result)
{
	enum err e = begin_step(net, b, result);

	if (!e)
		backward(net, 0, sgd, NULL);
	return e;
}

enum err
net_predict(struct net *net, const float *x, uint32_t n)
{
	const struct net_batch batch = {.x = x, .n = n};
	enum err e = net->ends ? check_examples(net, &batch) : ERR_STATE;

	if (e)
		return e;
	run(net, 0, &batch, false);
	/* Without answers there is no way back. */
	net->contexts[0].n = 0;
	return ERR_OK;
}

/* What is collected takes `share` of a gradient. */
static struct sgd
collector(const struct net *net, float share)
{
	const struct update *u = &net->update;

	return (struct sgd){
	    .params = net->state, .gradient = u->gradient, .share = share, .add = u->collected};
}

static enum err
collect(struct net *net, const struct net_batch *b, float share, struct net_result *result)
{
	const struct sgd sgd = collector(net, share);
	enum err e = learn(net, b, &sgd, result);

	net->update.collected |= !e;
	return e;
}

static enum err
step_fused(struct net *net, const struct net_batch *batch, const struct net_update *how,
    struct net_result *result)
{
	const struct update_fused fused = {&net->update, how, net->state};
	const struct sgd sgd = {
	    .step = update_tensor, .context = &fused, .scratch = net->update.gradient};
	enum err e = begin_step(net, batch, result);

	if (e)
		return e;
	update_next(&net->update, how);
	backward(net, 0, &sgd, NULL);
	return ERR_OK;
}

enum err
net_step(struct net *net, const struct net_batch *batch, const struct net_update *how,
    struct net_result *result)
{
	bool collects = update_collects(how) || net->ties;

	if (!update_ready(&net->update, how) || (collects && !net->update.gradient))
		return ERR_STATE;
	if (collects && !net->update.whole)
		return step_fused(net, batch, how, result);
	if (collects) {
		enum err e = collect(net, batch, 1, result);
		if (!e)
			net_move(net, how);
		return e;
	}
	const struct sgd sgd = {
	    .params = net->state,
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
	return net->update.whole ? collect(net, batch, share, result) : ERR_STATE;
}

enum err
net_forward(struct net *net, uint32_t context, const struct net_batch *batch)
{
	return context < net->part.contexts ? forward(net, context, batch, true) : ERR_INVALID;
}

static enum err
check_backward(const struct net *net, uint32_t context, const struct net_gradients *g)
{
	if (context >= net->part.contexts || (!net->ends && !g->output) ||
	    (net->part.first == 0 && g->input))
		return ERR_INVALID;
	return net->update.whole && net->contexts[context].n > 0 ? ERR_OK : ERR_STATE;
}

enum err
net_backward(
    struct net *net, uint32_t context, const struct net_gradients *g, struct net_result *result)
{
	const struct sgd sgd = collector(net, g->share);
	enum err e = check_backward(net, context, g);

	if (e)
		return e;
	if (g->output)
		memcpy(output_gradient(net), g->output,
		    net->contexts[context].n * net_last(net)->out.size * sizeof(float));
	else
		e = loss(net, context, output_gradient(net), result);
	if (!e) {
		backward(net, context, &sgd, g->input);
		net->update.collected = true;
	}
	net->contexts[context].n = 0;
	return e;
}

void
net_fold(struct net *net)
{
	update_fold(&net->update, (size_t)net->graph.tensors.elements);
}

void
net_move(struct net *net, const struct net_update *how)
{
	update_move(&net->update, how, net->state, net->moving, net->moving_count);
}

enum err
net_gradient(struct net *net, const struct net_batch *batch, float *grad)
{
	struct sgd sgd = {.params = net->state, .gradient = grad, .share = 1};
	struct net_result result;

	return learn(net, batch, &sgd, &result);
}
