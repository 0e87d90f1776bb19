#include <stdlib.h>
#include <string.h>

#include "backend_cpu.h"
#include "init.h"
#include "net_inside.h"
#include "num.h"

static enum err
check_loss(const struct net *net, const struct net_spec *spec, struct why *why)
{
	const struct layer *l = net_last(net);

	if (!net->ends)
		return ERR_OK;
	/* A part without the input is given that as targets. */
	if (net_meets_input(net) && l->out.size != net->graph.range[0].input.size)
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": its %zu outputs are to meet an input of %zu values",
		    l->spec.name, l->out.size, net->graph.range[0].input.size);
	if (net->loss.type != LOSS_CROSS_ENTROPY)
		return ERR_OK;
	if (l->out.dims == 3)
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": cross-entropy needs a flat output, or one for each step",
		    l->spec.name);
	size_t width = layer_width(&l->out);
	/* What a text says next has no names. Its embedding may be in another part. */
	bool named = net->part.classes > 0 || !net_spec_has(spec, LAYER_EMBEDDING);
	if (width != net->part.classes && named)
		return err_set(why, ERR_INVALID, "layer \"%s\": it has %zu outputs for %zu classes",
		    l->spec.name, width, net->part.classes);
	if (net->loss.class_weights && net->loss.class_weight_count != width)
		return err_set(why, ERR_INVALID, "model.class_weights: %zu for %zu classes",
		    net->loss.class_weight_count, width);
	return ERR_OK;
}

/* What outlives the description. */
static enum err
take_loss(struct net *net, const struct net_spec *spec, struct why *why)
{
	size_t bytes = spec->class_weight_count * sizeof(*spec->class_weights);

	net->loss = (struct loss_how){.type = spec->loss,
	    .team = net->part.team,
	    .target_input = spec->target_input,
	    .ignores = spec->ignores,
	    .ignored = spec->ignored,
	    .smoothing = spec->smoothing,
	    .class_weight_count = spec->class_weight_count};
	if (!spec->class_weights)
		return ERR_OK;
	net->loss.class_weights = malloc(bytes > 0 ? bytes : 1);
	if (!net->loss.class_weights)
		return err_set(why, ERR_NOMEM, "no memory for the network");
	memcpy(net->loss.class_weights, spec->class_weights, bytes);
	return ERR_OK;
}

/* Of all embeddings, the smallest: what the input may say. */
static void
find_vocabulary(struct net *net)
{
	for (size_t i = 0; i < net->graph.count; i++) {
		const struct layer_spec *s = &net->graph.layers[i].spec;
		if (s->type == LAYER_EMBEDDING &&
		    (net->vocabulary == 0 || s->vocabulary < net->vocabulary))
			net->vocabulary = s->vocabulary;
	}
}

/* Room for so many vectors of state, and floats behind them. The weights move along. */
static enum err
make_state(struct net *net, size_t vectors, size_t scratch, struct why *why)
{
	size_t stride, bytes, behind, all;

	if (!plan_state(net->graph.tensors.elements, 1, &stride) ||
	    !plan_state(net->graph.tensors.elements, vectors, &bytes) ||
	    !plan_state(scratch, 1, &behind) || !num_add(bytes, behind, &bytes) ||
	    !num_add(bytes, net_passes(net), &all) ||
	    (net->part.max_bytes > 0 && all > net->part.max_bytes))
		return err_set(why, ERR_LIMIT,
		    "the network needs more memory than the limit of %llu bytes",
		    (unsigned long long)net->part.max_bytes);
	if (net->part.planned > 0) {
		net->vectors = vectors > net->vectors ? vectors : net->vectors;
		net->scratch = behind / sizeof(float);
		net->stride = stride / sizeof(float);
		return ERR_OK;
	}
	if (net->state && vectors <= net->vectors && scratch <= net->scratch)
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
	net->scratch = behind / sizeof(float);
	net->stride = stride / sizeof(float);
	net->update = (struct update){0};
	return ERR_OK;
}

/* Is the tensor that begins there frozen, or moved by what passes count and not by steps? */
static bool
stands(const struct net *net, uint64_t first)
{
	for (size_t i = 0; i < net->graph.count; i++) {
		const struct layer *l = &net->graph.layers[i];
		for (size_t k = 0; k < l->param_count; k++)
			if ((l->param[k].hold || l->param[k].counts) && l->param[k].at == first)
				return true;
	}
	return false;
}

/* Where the parameters of the first range end. */
static uint64_t
behind_first(const struct net *net)
{
	uint64_t end = 0;

	for (size_t i = 0; i < net->graph.range[0].count; i++) {
		const struct layer *l = &net->graph.layers[i];
		for (size_t k = 0; k < l->param_count; k++)
			if (l->param[k].at + l->param[k].count > end)
				end = l->param[k].at + l->param[k].count;
	}
	return end;
}

static void
list_moving(struct net *net)
{
	const struct tensor_table *t = &net->graph.tensors;

	net->moving_count = net->moving_tail = 0;
	for (size_t i = 0; i < t->count; i++) {
		uint64_t first = t->items[i].begin / sizeof(float);
		if (stands(net, first))
			continue;
		net->moving[net->moving_count++] =
		    (struct update_range){(size_t)first, (size_t)t->items[i].elements};
		if (first < behind_first(net))
			net->moving_tail = net->moving_count;
	}
}

/* Of a layer whose weight others use, or that uses another's: that weight's layer, counted from 1 in the whole network; else 0. */
static uint32_t
lender_of(const struct net *net, size_t i)
{
	const struct layer *l = &net->graph.layers[i];

	if (l->spec.tied > 0)
		return l->spec.tied;
	return l->param_count > PARAM_WEIGHT && l->param[PARAM_WEIGHT].adds ? l->index + 1 : 0;
}

static bool
is_last_sharer(const struct net *net, size_t i)
{
	for (size_t k = i + 1; k < net->graph.count; k++)
		if (net->graph.layers[k].spec.tied == lender_of(net, i))
			return false;
	return true;
}

/* Of the layers that share a weight all but the last add up their gradients apart. */
static void
place_apart(struct net *net)
{
	const size_t line = 64 / sizeof(float);

	for (size_t i = 0; i < net->graph.count; i++) {
		struct layer_param *p = &net->graph.layers[i].param[PARAM_WEIGHT];
		p->apart = !p->hold && lender_of(net, i) > 0 && !is_last_sharer(net, i);
		p->apart_at = net->apart;
		if (p->apart)
			net->apart += (p->count + line - 1) / line * line;
	}
}

/* One room for all tensors that are moved when their layer has handed them over, and one for each that gathers what several layers do. */
static void
place_gradients(struct net *net)
{
	const size_t line = 64 / sizeof(float);
	struct layer *layers = net->graph.layers;
	size_t most = 0;

	for (size_t i = 0; i < net->graph.count; i++)
		for (size_t k = 0; k < layers[i].param_count; k++) {
			const struct layer_param *p = &layers[i].param[k];
			net->ties |= p->lent;
			if (!p->hold && !p->lent && !p->adds && p->count > most)
				most = p->count;
		}
	net->rooms = (most + line - 1) / line * line;
	for (size_t i = 0; i < net->graph.count; i++) {
		struct layer_param *p = &layers[i].param[PARAM_WEIGHT];
		if (layers[i].spec.tied > 0) {
			p->room = graph_lender(&net->graph, &layers[i])->param[PARAM_WEIGHT].room;
		} else if (p->adds && !p->hold) {
			p->room = net->rooms;
			net->rooms += (p->count + line - 1) / line * line;
		}
	}
}

static size_t
vectors_of(const struct net_update *how)
{
	return how ? 1 + update_vectors(how) : 1;
}

/* Are weights moved tensor by tensor, from gradients of single tensors? */
static bool
takes_singly(const struct net *net, const struct net_update *how)
{
	return !update_stores(how) && (net->ties || update_collects(how));
}

/* Floats behind the vectors: gradients of single tensors, or those that are added up apart. */
static size_t
behind_of(const struct net *net, const struct net_update *how)
{
	return takes_singly(net, how) ? net->rooms : how->parts > 1 ? net->apart : 0;
}

/* The ranges lie one behind the other, for between the two passes of one may be passes of the other; then the workspace. */
static enum err
plan_ranges(struct net *net, struct why *why)
{
	const struct net_part *p = &net->part;
	size_t at = 0;
	enum err e = ERR_OK;

	for (size_t r = 0; !e && r < net->graph.ranges; r++) {
		const struct graph_range *g = &net->graph.range[r];
		struct net_run *run = &net->run[r];
		run->at = at;
		run->context = r > 0 ? p->contexts : 0;
		run->contexts = r > 0 ? p->tail.contexts : p->contexts;
		run->begins = r == 0 && p->first == 0;
		run->ends = net->ends && r + 1 == net->graph.ranges;
		const struct plan_want want = {.max_batch = p->max_batch,
		    .contexts = run->contexts,
		    .threads = net_threads(net),
		    .train = p->train,
		    .input_gradient = !run->begins,
		    .ends = run->ends,
		    .recompute = p->recompute};
		e = plan_passes(&run->plan, net->graph.layers + g->begin, g->count, &want, why);
		if (!e && !num_add(at, run->plan.passes, &at))
			e = err_set(why, ERR_LIMIT, "the network is too large");
		at -= e ? 0 : run->plan.shared - run->plan.work_at;
	}
	net->work_at = at;
	return e;
}

static enum err
set_up(struct net *net, const struct net_spec *spec, struct why *why)
{
	const struct net_part *p = &net->part;
	enum err e = graph_build(&net->graph, p, net->backend, why);

	if (!e)
		e = plan_ranges(net, why);
	if (!e)
		e = take_loss(net, spec, why);
	if (!e) {
		find_vocabulary(net);
		place_gradients(net);
		place_apart(net);
		e = check_loss(net, spec, why);
	}
	if (!e)
		e = make_state(
		    net, vectors_of(p->update), p->update ? behind_of(net, p->update) : 0, why);
	if (e)
		return e;
	if (p->planned == 0)
		net->passes = net->backend->allocate(net_passes(net));
	net->moving = calloc(net->graph.tensors.count + 1, sizeof(*net->moving));
	net->contexts = calloc(net_contexts(net), sizeof(*net->contexts));
	if ((p->planned == 0 && !net->passes) || !net->moving || !net->contexts)
		return err_set(why, ERR_NOMEM, "no memory for the network");
	list_moving(net);
	return ERR_OK;
}

/* Without a word in the job: as the first version did, which knew no layer that must be exact. */
static enum gemm_arithmetic
arithmetic_of(const struct net_spec *spec)
{
	switch (spec->arithmetic) {
	case ARITHMETIC_EXACT:
		return GEMM_EXACT;
	case ARITHMETIC_FAST:
		return GEMM_FAST;
	case ARITHMETIC_DEFAULT:
		break;
	}
	return net_spec_modern(spec) ? GEMM_EXACT : GEMM_MIXED;
}

enum err
net_new_part(struct net **out, const struct net_part *part, struct why *why)
{
	bool context = part->contexts > 0 && (part->tail.last == 0 || part->tail.contexts > 0);

	if (part->max_batch == 0 || !context)
		return err_set(
		    why, ERR_INVALID, context ? "the batch is empty" : "a net needs a context");
	struct net *net = calloc(1, sizeof(*net));
	if (!net)
		return err_set(why, ERR_NOMEM, "no memory for the network");
	net->backend = &backend_cpu;
	net->arithmetic = arithmetic_of(part->spec);
	net->part = *part;
	net->ends = part->spec->layer_count == (part->tail.last > 0 ? part->tail.last : part->last);
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
	free(net->loss.class_weights);
	free(net);
}

void
net_shed(struct net *net)
{
	net->backend->release(net->passes);
	net->passes = NULL;
	net->state = net->backend->cut(
	    net->state, (size_t)net->graph.tensors.elements * sizeof(*net->state));
}

const struct tensor_table *
net_tensors(const struct net *net)
{
	return &net->graph.tensors;
}

uint64_t
net_elements_before(const struct net *net, size_t layer)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < net->graph.count && net->graph.layers[i].index < layer; i++) {
		const struct layer *l = &net->graph.layers[i];
		for (size_t k = 0; k < l->param_count; k++)
			sum += l->param[k].lent ? 0 : l->param[k].count;
	}
	return sum;
}

bool
net_moves(const struct net *net, size_t t)
{
	return !stands(net, net->graph.tensors.items[t].begin / sizeof(float));
}

float *
net_params(struct net *net)
{
	return net->state;
}

size_t
net_inputs(const struct net *net)
{
	return net->graph.range[0].input.size;
}

struct net_edges
net_range_edges(const struct net *net, size_t range)
{
	const struct graph_range *g = &net->graph.range[range];

	return (struct net_edges){
	    g->input.size, net->graph.layers[g->begin + g->count - 1].out.size};
}

size_t
net_outputs(const struct net *net)
{
	const struct layer_shape *out = &net_last(net)->out;

	return net->ends && net->loss.type == LOSS_CROSS_ENTROPY ? layer_width(out) : out->size;
}

size_t
net_labels(const struct net *net)
{
	return net->ends && net->loss.type == LOSS_CROSS_ENTROPY ? layer_rows(&net_last(net)->out)
								 : 0;
}

bool
net_label_counts(const struct net *net, int32_t label)
{
	return loss_counts(&net->loss, label);
}

double
net_label_weight(const struct net *net, int32_t label)
{
	bool has = label >= 0 && (size_t)label < net_outputs(net);

	return has || !loss_counts(&net->loss, label) ? loss_weight(&net->loss, label) : 1;
}

size_t
net_targets(const struct net *net)
{
	bool wants = net->ends && net->loss.type != LOSS_CROSS_ENTROPY;

	return wants && !net_meets_input(net) ? net_last(net)->out.size : 0;
}

size_t
net_vocabulary(const struct net *net)
{
	return net->vocabulary;
}

bool
net_weighs(const struct net *net)
{
	return net->ends && (net->loss.ignores || net->loss.class_weights);
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
	return ((uint64_t)net->vectors * net->stride + net->scratch) * sizeof(float) +
	    net_passes(net);
}

/* --- the first parameters */

/* Each parameter has a stream of its own: the first ones of all layers, then the second ones. */
static void
begin_param(struct init *d, const struct layer *l, size_t k, uint64_t seed)
{
	init_begin(d, &l->spec, &l->param[k], seed, k * RECIPE_LAYERS_MAX + l->index);
}

void
net_init(struct net *net, uint64_t seed)
{
	struct init d;

	for (size_t i = 0; i < net->graph.count; i++) {
		const struct layer *l = &net->graph.layers[i];
		for (size_t k = 0; k < l->param_count; k++) {
			if (l->param[k].lent)
				continue;
			begin_param(&d, l, k, seed);
			init_next(&d, net->state + l->param[k].at, l->param[k].count);
		}
	}
}

enum err
net_draw(const struct net *net, const struct net_drawing *how)
{
	float piece[NET_DRAW_PIECE];
	struct init d;
	enum err e = ERR_OK;

	for (size_t i = 0; i < net->graph.count; i++) {
		const struct layer *l = &net->graph.layers[i];
		for (size_t k = 0; k < l->param_count; k++) {
			const struct layer_param *p = &l->param[k];
			if (p->lent || p->at < how->first || p->at >= how->end)
				continue;
			begin_param(&d, l, k, how->seed);
			for (size_t left = p->count, n; left > 0 && !e; left -= n) {
				n = left < NET_DRAW_PIECE ? left : NET_DRAW_PIECE;
				init_next(&d, piece, n);
				e = how->take(how->context, piece, n);
			}
		}
	}
	return e;
}

enum err
net_prepare(struct net *net, const struct net_update *how, struct why *why)
{
	if (!net->part.train)
		return ERR_STATE;
	net->stores = update_stores(how);
	size_t behind = behind_of(net, how);
	enum err e = make_state(net, vectors_of(how), behind, why);
	if (e || net->part.planned > 0)
		return e;
	float *rooms = update_begin(
	    &net->update, how, net->state, net->stride, (size_t)net->graph.tensors.elements);
	if (takes_singly(net, how))
		net->update.gradient = rooms;
	else if (behind > 0)
		net->update.apart = rooms;
	net->update.team = net->part.team;
	for (size_t r = 0; r < net->graph.ranges; r++)
		net->run[r].collected = false;
	memset(net->gathered, 0, sizeof(net->gathered));
	return ERR_OK;
}
