#include <string.h>

#include "loss.h"
#include "net_inside.h"
#include "sgd.h"

/* The shared part of the context's range. */
static char *
shared_at(const struct net *net, uint32_t context)
{
	return net->passes + net->run[net_range_of(net, context)].at;
}

static char *
context_at(const struct net *net, uint32_t context)
{
	const struct net_run *run = &net->run[net_range_of(net, context)];

	return net->passes + run->at + run->plan.work_at +
	    (context - run->context) * run->plan.context;
}

static const struct layer *
last_of(const struct net *net, uint32_t context)
{
	const struct graph_range *g = &net->graph.range[net_range_of(net, context)];

	return &net->graph.layers[g->begin + g->count - 1];
}

const float *
net_context_output(const struct net *net, uint32_t context)
{
	const struct layer *l = last_of(net, context);

	if (l->y_at == LAYER_OUTSIDE)
		return net->contexts[context].x;
	const char *block = l->y_shared ? shared_at(net, context) : context_at(net, context);
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
check_examples(const struct net *net, uint32_t context, const struct net_batch *b)
{
	if (net->part.planned > 0)
		return ERR_STATE;
	if (b->n == 0 || b->n > net->part.max_batch || !b->x)
		return ERR_INVALID;
	return net->vocabulary > 0 && net->run[net_range_of(net, context)].begins
	    ? check_tokens(b->x, b->n * net->graph.range[0].input.size, net->vocabulary)
	    : ERR_OK;
}

static enum err
check_batch(const struct net *net, uint32_t context, const struct net_batch *b)
{
	enum err e = check_examples(net, context, b);

	if (e)
		return e;
	if (!net->run[net_range_of(net, context)].ends)
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
	    .gradients = shared_at(net, context),
	    .work = (float *)(void *)(net->passes + net->work_at),
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
	const struct graph_range *g = &net->graph.range[net_range_of(net, context)];
	for (size_t i = g->begin; i < g->begin + g->count; i++)
		run_layer(net, &net->graph.layers[i], &pass);
}

static enum err
forward(struct net *net, uint32_t context, const struct net_batch *batch, bool training)
{
	enum err e = check_batch(net, context, batch);

	if (!e)
		run(net, context, batch, training);
	return e;
}

static float *
output_gradient(struct net *net, uint32_t context)
{
	return (float *)(void *)(shared_at(net, context) + last_of(net, context)->dy_at);
}

static enum err
loss(struct net *net, uint32_t context, float *gradient, struct net_result *result)
{
	const struct net_batch *b = &net->contexts[context];
	const float *y = net_context_output(net, context);
	const float *targets = net_meets_input(net) ? b->x : b->targets;
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

/* What the way back needs from the range's layer `reader` on, itself included, and was not kept. */
static void
renew(const struct net *net, const struct layer *layers, size_t reader,
    const struct backend_pass *back)
{
	struct backend_pass pass = *back;

	pass.training = pass.again = true;
	for (size_t i = 0; i <= reader; i++)
		if (layers[i].again == reader + 1)
			run_layer(net, &layers[i], &pass);
}

/* The gradient of the output is there. The context is free afterwards. */
static void
backward(struct net *net, uint32_t context, const struct sgd *sgd, float *input_gradient)
{
	struct backend_pass pass = pass_of(net, context);
	const struct graph_range *g = &net->graph.range[net_range_of(net, context)];
	const struct layer *layers = net->graph.layers + g->begin;
	struct sgd own = *sgd;

	own.team = pass.team;
	pass.sgd = &own;
	pass.statistics = net->state;
	pass.input_gradient = input_gradient;
	for (size_t i = g->count; i-- > 0;) {
		const struct layer *l = &layers[i];
		if (l->before)
			renew(net, layers, i, &pass);
		if (l->trains && !l->done)
			passes_of(net, l)->backward(l, &pass);
	}
}

/* Has the net the input and the loss in one range? */
static bool
is_whole(const struct net *net)
{
	return net->run[0].begins && net->run[0].ends;
}

enum err
net_eval(struct net *net, const struct net_batch *batch, struct net_result *result)
{
	struct net_batch still = *batch;

	still.draw = NULL;
	enum err e = is_whole(net) ? forward(net, 0, &still, false) : ERR_STATE;
	return e ? e : loss(net, 0, NULL, result);
}

enum err
net_look(
    struct net *net, uint32_t context, const struct net_batch *batch, struct net_result *result)
{
	struct net_batch still = *batch;

	still.draw = NULL;
	enum err e =
	    context < net_contexts(net) ? forward(net, context, &still, false) : ERR_INVALID;
	if (!e && net->run[net_range_of(net, context)].ends)
		e = loss(net, context, NULL, result);
	/* There is no way back. */
	if (context < net_contexts(net))
		net->contexts[context].n = 0;
	return e;
}

/* As far as a step may fail. */
static enum err
begin_step(struct net *net, const struct net_batch *b, struct net_result *result)
{
	enum err e = net->part.train && net->run[0].ends ? forward(net, 0, b, true) : ERR_STATE;

	return e ? e : loss(net, 0, output_gradient(net, 0), result);
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
	enum err e = net->run[0].ends ? check_examples(net, 0, &batch) : ERR_STATE;

	if (e)
		return e;
	run(net, 0, &batch, false);
	/* Without answers there is no way back. */
	net->contexts[0].n = 0;
	return ERR_OK;
}

/* What is collected takes `share` of a gradient. */
static struct sgd
collector(const struct net *net, size_t range, float share)
{
	const struct update *u = &net->update;

	return (struct sgd){.params = net->state,
	    .gradient = u->gradient,
	    .apart = u->apart,
	    .share = share,
	    .add = net->run[range].collected};
}

/* A new run begins. */
static void
begin_run(struct net *net)
{
	for (size_t r = 0; r < net->graph.ranges; r++)
		net->run[r].collected = false;
	memset(net->gathered, 0, sizeof(net->gathered));
}

static enum err
collect(struct net *net, const struct net_batch *b, float share, struct net_result *result)
{
	const struct sgd sgd = collector(net, 0, share);
	enum err e = learn(net, b, &sgd, result);

	net->run[0].collected |= !e;
	return e;
}

/* Of a weight that layer `lender` lends: what its layers collected apart becomes part of the weight's gradient, the last layer's. */
static void
gather(struct net *net, size_t lender)
{
	const struct layer *own = &net->graph.layers[lender];
	const struct layer_param *to = &own->param[PARAM_WEIGHT];

	if (net->gathered[lender])
		return;
	net->gathered[lender] = true;
	for (size_t i = net->graph.count; i-- > lender;) {
		const struct layer *l = &net->graph.layers[i];
		if (l->param[PARAM_WEIGHT].apart && (i == lender || l->spec.tied == own->index + 1))
			update_add(&net->update, net->update.gradient + to->at,
			    net->update.apart + l->param[PARAM_WEIGHT].apart_at, to->count);
	}
}

static bool
lends_apart(const struct net *net, const struct layer *l)
{
	return net->update.apart && l->spec.tied == 0 && l->param_count > PARAM_WEIGHT &&
	    l->param[PARAM_WEIGHT].apart;
}

static void
gather_all(struct net *net)
{
	for (size_t i = 0; i < net->graph.count; i++)
		if (lends_apart(net, &net->graph.layers[i]))
			gather(net, i);
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
	return context < net_contexts(net) ? forward(net, context, batch, true) : ERR_INVALID;
}

static enum err
check_backward(const struct net *net, uint32_t context, const struct net_gradients *g)
{
	if (context >= net_contexts(net))
		return ERR_INVALID;
	const struct net_run *run = &net->run[net_range_of(net, context)];
	if ((!run->ends && !g->output) || (run->begins && g->input))
		return ERR_INVALID;
	return net->update.whole && net->contexts[context].n > 0 ? ERR_OK : ERR_STATE;
}

/* Who hears of complete gradients. */
struct hearing {
	struct net *net;
	const struct net_gradients *g;
};

static void
complete(const void *context, size_t first, size_t count)
{
	const struct hearing *h = context;
	struct net *net = h->net;

	for (size_t i = 0; i < net->graph.count; i++)
		if (lends_apart(net, &net->graph.layers[i]) &&
		    net->graph.layers[i].param[PARAM_WEIGHT].at == first)
			gather(net, i);
	h->g->complete(h->g->context, first, net->update.gradient + first, count);
}

enum err
net_backward(
    struct net *net, uint32_t context, const struct net_gradients *g, struct net_result *result)
{
	const struct hearing hearing = {net, g};
	enum err e = check_backward(net, context, g);

	if (e)
		return e;
	size_t range = net_range_of(net, context);
	struct sgd sgd = collector(net, range, g->share);
	if (g->complete) {
		sgd.complete = complete;
		sgd.context = &hearing;
	}
	if (g->output)
		memcpy(output_gradient(net, context), g->output,
		    net->contexts[context].n * last_of(net, context)->out.size * sizeof(float));
	else
		e = loss(net, context, output_gradient(net, context), result);
	if (!e) {
		backward(net, context, &sgd, g->input);
		net->run[range].collected = true;
	}
	net->contexts[context].n = 0;
	return e;
}

void
net_fold(struct net *net)
{
	gather_all(net);
	update_fold(&net->update, (size_t)net->graph.tensors.elements);
	begin_run(net);
}

float *
net_hand(struct net *net)
{
	struct update *u = &net->update;
	float *run = u->gradient;

	gather_all(net);
	u->gradient = u->total;
	u->total = run;
	begin_run(net);
	return run;
}

void
net_norm(struct net *net, const struct net_update *how, size_t range, double lanes[NET_NORM_LANES])
{
	size_t first = range > 0 ? net->moving_tail : 0;
	size_t end = range + 1 < net->graph.ranges ? net->moving_tail : net->moving_count;

	if (!net->update.total)
		gather_all(net);
	update_norm(&net->update, how, net->state,
	    &(struct update_ranges){net->moving + first, end - first}, lanes);
}

float
net_norm_factor(const struct net_update *how, const double lanes[NET_NORM_LANES])
{
	return update_factor(how, lanes);
}

void
net_move_scaled(struct net *net, const struct net_update *how, float factor)
{
	if (!net->update.total)
		gather_all(net);
	update_move(&net->update, how, net->state,
	    &(struct update_ranges){net->moving, net->moving_count}, factor);
	begin_run(net);
}

void
net_move(struct net *net, const struct net_update *how)
{
	double lanes[NET_NORM_LANES] = {0};

	for (size_t r = 0; how->clip > 0 && r < net->graph.ranges; r++)
		net_norm(net, how, r, lanes);
	net_move_scaled(net, how, how->clip > 0 ? net_norm_factor(how, lanes) : 1);
}

enum err
net_gradient(struct net *net, const struct net_batch *batch, float *grad)
{
	struct sgd sgd = {.params = net->state, .gradient = grad, .share = 1};
	struct net_result result;

	return learn(net, batch, &sgd, &result);
}
