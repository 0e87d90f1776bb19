#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuts.h"
#include "num.h"

/* Inputs exist, come earlier, and are as many as the type takes. */
static enum err
check_inputs(const struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;

	if (s->input_count == 0 || s->input_count > RECIPE_INPUTS_MAX)
		return err_set(why, ERR_INVALID, "layer \"%s\": it needs 1 to %d inputs", s->name,
		    RECIPE_INPUTS_MAX);
	if (s->input_count > 1 && !layer_traits(s->type)->many_inputs)
		return err_set(why, ERR_INVALID, "layer \"%s\": it takes one input", s->name);
	for (size_t i = 0; i < s->input_count; i++)
		if (s->inputs[i] < LAYER_INPUT || s->inputs[i] >= (int)l->index)
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": its input is no earlier layer", s->name);
	if (s->tied > l->index || (s->tied > 0 && s->type != LAYER_LINEAR))
		return err_set(
		    why, ERR_INVALID, "layer \"%s\": its weight is no earlier layer's", s->name);
	return ERR_OK;
}

static bool
is_inside(const struct net_part *p, size_t layer)
{
	return (layer >= p->first && layer < p->last) ||
	    (layer >= p->tail.first && layer < p->tail.last);
}

/* Who shares a weight is in one part. */
static enum err
check_ties(const struct net_part *p, struct why *why)
{
	const struct net_spec *spec = p->spec;

	for (size_t i = 0; i < spec->layer_count; i++) {
		uint32_t tied = spec->layers[i].tied;
		if (tied > 0 && tied <= i && is_inside(p, i) != is_inside(p, tied - 1))
			return err_set(why, ERR_UNSUPPORTED,
			    "layer \"%s\" uses the weight of \"%s\", which is in another part",
			    spec->layers[i].name, spec->layers[tied - 1].name);
	}
	return ERR_OK;
}

static enum err
check_cut(const struct net_spec *spec, size_t cut, struct why *why)
{
	struct cuts_crossing c;

	if (!cuts_crossed(spec, cut, &c))
		return ERR_OK;
	return err_set(why, ERR_UNSUPPORTED,
	    "layer \"%s\" reads \"%s\" across the cut before \"%s\"", spec->layers[c.reader].name,
	    c.from == LAYER_INPUT ? "input" : spec->layers[c.from].name, spec->layers[cut].name);
}

/* Its weight becomes the earlier layer's. Gradients are handed over from the last layer to the first. */
static enum err
tie(struct graph *g, struct layer *l, struct why *why)
{
	size_t from = l->spec.tied - 1;
	struct layer_param *own = &l->param[PARAM_WEIGHT];
	const struct layer *lender = &g->layers[from];
	const struct layer_param *lent = &lender->param[PARAM_WEIGHT];

	if ((lender->spec.type != LAYER_EMBEDDING && lender->spec.type != LAYER_LINEAR) ||
	    lender->spec.tied > 0)
		return err_set(why, ERR_INVALID, "layer \"%s\": \"%s\" has no weight for it",
		    l->spec.name, lender->spec.name);
	if (lent->shape[0] != own->shape[0] || lent->shape[1] != own->shape[1])
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": the weight of \"%s\" is [%llu, %llu], and [%llu, %llu] is "
		    "wanted",
		    l->spec.name, lender->spec.name, (unsigned long long)lent->shape[0],
		    (unsigned long long)lent->shape[1], (unsigned long long)own->shape[0],
		    (unsigned long long)own->shape[1]);
	own->lent = true;
	own->at = lent->at;
	own->hold = lent->hold;
	l->trains |= !own->hold;
	for (size_t i = from; i < l->index; i++)
		if (i == from || g->layers[i].spec.tied == l->spec.tied)
			g->layers[i].param[PARAM_WEIGHT].adds = true;
	return ERR_OK;
}

/* A layer trains if a tensor of its own moves, by steps or by what it counts. */
static enum err
add_tensors(struct graph *g, struct layer *l, const struct net_part *part, struct why *why)
{
	char name[TENSOR_NAME_MAX];
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < l->param_count; i++) {
		struct layer_param *p = &l->param[i];
		if (p->lent)
			continue;
		p->at = g->tensors.elements;
		snprintf(name, sizeof(name), "%s.%s", l->spec.name, p->suffix);
		e = tensor_table_add(&g->tensors, name, p->shape, p->dims, why);
		if (e)
			break;
		p->hold = tensor_role_of(&g->tensors.items[g->tensors.count - 1], part->rules,
			      part->rule_count) == TENSOR_FROZEN;
		p->counts &= !p->hold;
		l->trains |= !p->hold;
	}
	return e;
}

static enum err
ask(const struct backend *backend, struct layer *l, struct why *why)
{
	const struct backend_layer *passes = backend->layers[l->spec.type];

	if (!passes)
		return err_set(why, ERR_UNSUPPORTED, "layer \"%s\": not on the back end %s",
		    l->spec.name, backend->name);
	enum err e = passes->need ? passes->need(l, why) : ERR_OK;
	if (e)
		return e;
	if (!num_round_up(l->work, LAYER_LINE, &l->work) ||
	    !num_round_up(l->work_each, LAYER_LINE, &l->work_each) ||
	    !num_round_up(l->work_lane, LAYER_LINE, &l->work_lane))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", l->spec.name);
	return ERR_OK;
}

/* In a part the gradient of the range's input is wanted. */
static enum err
add_layer(struct graph *g, struct layer *l, const struct net_part *p, struct why *why)
{
	enum err e = layer_check_type(l, why);

	if (!e)
		e = check_inputs(l, why);
	if (e)
		return e;
	for (size_t i = 0; i < l->spec.input_count; i++) {
		int from = l->spec.inputs[i];
		l->in[i] = from == LAYER_INPUT ? g->range[0].input : g->layers[from].out;
		l->trains |= from != LAYER_INPUT && g->layers[from].trains;
		l->trains |= from >= 0 && !is_inside(p, (size_t)from);
	}
	return layer_check(l, why);
}

/* Keeps the layers of the ranges alone. */
static void
trim(struct graph *g, const struct net_part *p)
{
	const size_t first[NET_RANGES] = {p->first, p->tail.first},
		     last[NET_RANGES] = {p->last, p->tail.last};
	size_t at = 0;

	g->ranges = p->tail.last > 0 ? 2 : 1;
	for (size_t r = 0; r < g->ranges; r++) {
		struct graph_range *range = &g->range[r];
		range->begin = at;
		range->count = last[r] - first[r];
		if (first[r] > 0)
			range->input = g->layers[first[r] - 1].out;
		memmove(g->layers + at, g->layers + first[r], range->count * sizeof(*g->layers));
		for (size_t i = at; i < at + range->count; i++)
			for (size_t k = 0; k < g->layers[i].spec.input_count; k++)
				g->layers[i].spec.inputs[k] -= (int)first[r];
		at += range->count;
	}
	g->count = at;
}

static enum err
build(struct graph *g, const struct net_part *part, const struct backend *backend, struct why *why)
{
	const struct net_spec *spec = part->spec;
	const uint32_t *in = spec->input;
	struct cuts_crossing crossing;
	enum err e = spec->input_dims == 2
	    ? layer_shape_rows(&g->range[0].input, in[0], in[2], "input", why)
	    : layer_shape_set(&g->range[0].input, in[0], in[1], in[2], "input", why);

	for (size_t i = 0; !e && i < g->count; i++) {
		struct layer *l = &g->layers[i];
		*l = (struct layer){.spec = spec->layers[i],
		    .index = (uint32_t)i,
		    .uncut = cuts_crossed(spec, i, &crossing)};
		e = add_layer(g, l, part, why);
		if (!e && l->spec.tied > 0)
			e = tie(g, l, why);
		if (!e && is_inside(part, i))
			e = ask(backend, l, why);
		if (!e && is_inside(part, i))
			e = add_tensors(g, l, part, why);
	}
	if (!e)
		trim(g, part);
	return e;
}

static enum err
check_range(const struct net_spec *spec, size_t first, size_t last, struct why *why)
{
	if (first >= last || last > spec->layer_count)
		return err_set(
		    why, ERR_INVALID, "the network has no layers [%zu, %zu)", first, last);
	enum err e = check_cut(spec, first, why);
	return e ? e : check_cut(spec, last, why);
}

static enum err
check_part(const struct net_part *p, struct why *why)
{
	const struct net_spec *spec = p->spec;

	if (spec->layer_count == 0)
		return err_set(why, ERR_INVALID, "the network has no layers");
	if (spec->layer_count > RECIPE_LAYERS_MAX)
		return err_set(why, ERR_LIMIT, "more than %d layers", RECIPE_LAYERS_MAX);
	enum err e = check_range(spec, p->first, p->last, why);
	if (!e && p->tail.last > 0)
		e = p->tail.first > p->last
		    ? check_range(spec, p->tail.first, p->tail.last, why)
		    : err_set(why, ERR_INVALID, "the second range does not lie behind a gap");
	return e ? e : check_ties(p, why);
}

enum err
graph_build(
    struct graph *g, const struct net_part *part, const struct backend *backend, struct why *why)
{
	enum err e = check_part(part, why);

	*g = (struct graph){.count = part->tail.last > 0 ? part->tail.last : part->last};
	if (e)
		return e;
	g->layers = calloc(g->count, sizeof(*g->layers));
	if (!g->layers)
		return err_set(why, ERR_NOMEM, "no memory for %zu layers", g->count);
	e = build(g, part, backend, why);
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

const struct layer *
graph_lender(const struct graph *g, const struct layer *l)
{
	const struct layer *at = g->layers;

	while (at->index != l->spec.tied - 1)
		at++;
	return at;
}
