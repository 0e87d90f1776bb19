#include "plan.h"

#include <math.h>
#include <stdlib.h>

#include "arena.h"
#include "blocks.h"
#include "num.h"

#define LINE ((size_t)64)

/*
 * Time, for what lives for a while: layer i runs forward at i, the loss at `count`, layer i backward at 2 count - i.
 */
struct planning {
	struct layer *layers;
	size_t count;
	const struct plan_want *want;
	/* Of a layer: whose output's bytes, whose gradient's bytes it uses (count: the caller's). */
	size_t root[RECIPE_LAYERS_MAX], gradient_root[RECIPE_LAYERS_MAX];
	/* Of a root: the last layer that reads it; does the way back? */
	size_t last_user[RECIPE_LAYERS_MAX];
	bool needed_back[RECIPE_LAYERS_MAX];
	size_t first_back[RECIPE_LAYERS_MAX]; /* of them, the first on the way back, */
	size_t last_back[RECIPE_LAYERS_MAX]; /* and the last */
	bool renewed[RECIPE_LAYERS_MAX]; /* it is worked out again instead of being kept */
	/* Of a layer: where its block ends that is worked out again, 0 without; of a root: it is among that. */
	size_t block[RECIPE_LAYERS_MAX];
	bool remade[RECIPE_LAYERS_MAX];
	bool signs[RECIPE_LAYERS_MAX]; /* of a layer: it keeps signs instead of its output */
	bool spends; /* the last gradient takes the place of the last output */
	struct arena_item items[3 * RECIPE_LAYERS_MAX];
	size_t item_count;
	size_t *places[3 * RECIPE_LAYERS_MAX]; /* where an item's offset goes */
};

/* Takes n * size bytes off the end. */
static bool
reserve(size_t *end, size_t *at, size_t n, size_t size)
{
	size_t bytes;

	*at = *end;
	return num_mul(n, size, &bytes) && num_round_up(bytes, LINE, &bytes) &&
	    num_add(*end, bytes, end);
}

/* What rectifies in place is left to the layer before it, if that can. */
static void
hand_over(struct layer *layers, struct layer *l)
{
	struct layer *to = l->in_place ? &layers[l->spec.inputs[0]] : NULL;
	enum layer_type type = l->spec.type;

	l->top = 0;
	l->done =
	    to && to->rectifies && to->top == 0 && (type == LAYER_RELU || type == LAYER_RELU6);
	if (l->done)
		to->top = type == LAYER_RELU6 ? 6 : INFINITY;
}

/* A layer may write over its input when nobody else reads those bytes. */
static enum err
share_outputs(struct layer *layers, size_t count, struct why *why)
{
	unsigned users[RECIPE_LAYERS_MAX] = {0};
	/* Of a layer's output: it has bytes of its own; nobody may write over them. */
	bool sole[RECIPE_LAYERS_MAX], fixed[RECIPE_LAYERS_MAX], signs[RECIPE_LAYERS_MAX];

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
		l->in_place = free_input && (t->may_alias || t->same_bytes) &&
		    !(t->turns_sign && signs[from]);
		l->spends = l->in_place || (t->spends && from != LAYER_INPUT && users[from] == 1);
		hand_over(layers, l);
		/* Whose sign somebody before it will read. */
		signs[i] = (t->reads_sign && !l->done) ||
		    ((l->in_place || t->same_bytes) && from != LAYER_INPUT && signs[from]);
		sole[i] = t->same_bytes ? free_input : true;
		fixed[i] = (t->fixes_output && !l->done) ||
		    (t->same_bytes && from != LAYER_INPUT && fixed[from]);
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
has_gradient(const struct planning *p, size_t i)
{
	/* The last layer's gradient is that of the loss, which is worked out even if nothing moves. */
	return p->want->train && (p->layers[i].trains || i + 1 == p->count);
}

static void
find_roots(struct planning *p)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct layer *l = &p->layers[i];
		int from = l->spec.inputs[0];
		bool same = l->in_place || layer_traits(l->spec.type)->same_bytes;
		p->root[i] = !same ? i : from == LAYER_INPUT ? p->count : p->root[from];
		p->gradient_root[i] =
		    l->spends && from != LAYER_INPUT && has_gradient(p, (size_t)from)
		    ? p->gradient_root[from]
		    : i;
	}
}

static void
note_back(struct planning *p, size_t root, size_t reader, bool reads)
{
	if (!reads || !p->layers[reader].trains)
		return;
	if (!p->needed_back[root])
		p->last_back[root] = reader;
	p->needed_back[root] = true;
	p->first_back[root] = reader;
}

/* Of norms, and what rectifies them in place, the output is as quickly made again as it is written and read. Their input stays. */
static void
find_renewed(struct planning *p)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct layer *l = &p->layers[i];
		int from = l->spec.inputs[0];
		bool input_stays =
		    from == LAYER_INPUT || p->root[from] == p->count || !p->renewed[p->root[from]];
		if (p->root[i] == i)
			p->renewed[i] = p->want->train && l->trains && p->needed_back[i] &&
			    input_stays && p->block[i] == 0 && layer_traits(l->spec.type)->renews &&
			    p->root[p->count - 1] != i;
		else if (p->root[i] < p->count)
			p->renewed[p->root[i]] &= layer_traits(l->spec.type)->follows;
	}
}

/* Who reads a layer's bytes last, and whether somebody does on the way back. */
static void
find_users(struct planning *p)
{
	for (size_t i = 0; i < p->count; i++)
		p->last_user[i] = i;
	for (size_t i = 0; i < p->count; i++) {
		const struct layer *l = &p->layers[i];
		const struct layer_traits *t = layer_traits(l->spec.type);
		for (size_t k = 0; k < l->spec.input_count; k++) {
			int from = l->spec.inputs[k];
			if (from == LAYER_INPUT || p->root[from] == p->count)
				continue;
			p->last_user[p->root[from]] = i;
			note_back(p, p->root[from], i, t->reads_input);
		}
		if (p->root[i] < p->count)
			note_back(p, p->root[i], i, t->reads_output && !t->reads_sign && !l->done);
	}
	/* Where only its sign is read, that is kept. */
	for (size_t i = 0; i < p->count; i++) {
		const struct layer *l = &p->layers[i];
		bool reads = layer_traits(l->spec.type)->reads_sign && !l->done && l->trains &&
		    p->root[i] < p->count;
		p->signs[i] = reads && !p->needed_back[p->root[i]];
		if (reads && !p->signs[i] && i < p->last_back[p->root[i]])
			p->last_back[p->root[i]] = i;
	}
}

/* What a layer keeps for the way back is dropped and made again. */
static bool
drops(const struct planning *p, size_t i)
{
	const struct layer *l = &p->layers[i];

	return p->want->train && l->trains && p->block[i] > 0 && l->saved + l->saved_once > 0 &&
	    !layer_traits(l->spec.type)->stands;
}

/* An output inside a block, which is dropped. */
static bool
is_inside(const struct planning *p, size_t root)
{
	return root < p->count && p->block[root] > 0 && p->root[p->block[root] - 1] != root;
}

/* What has to run again, from the last layer back: what the way back of a block reads, and what that is made of. */
static void
find_remade(struct planning *p)
{
	for (size_t i = 0; i < p->count; i++)
		p->remade[i] = is_inside(p, i) && p->needed_back[i];
	for (size_t i = 0; i < p->count; i++)
		if (drops(p, i) && p->root[i] < p->count)
			p->remade[p->root[i]] = true;
	for (size_t i = p->count; i-- > 0;) {
		const struct layer *l = &p->layers[i];
		if (p->root[i] == p->count || !p->remade[p->root[i]])
			continue;
		for (size_t k = 0; k < l->spec.input_count; k++) {
			size_t from = l->spec.inputs[k] == LAYER_INPUT ? p->count
								       : p->root[l->spec.inputs[k]];
			if (from == p->count || from == p->root[i])
				continue;
			if (is_inside(p, from))
				p->remade[from] = true;
			else
				p->needed_back[from] = true;
		}
	}
}

/* When a block is worked out again. */
static unsigned
block_time(const struct planning *p, size_t i)
{
	return (unsigned)(2 * p->count - (p->block[i] - 1));
}

static void
add_item(struct planning *p, size_t *place, size_t bytes, size_t from, size_t to)
{
	p->places[p->item_count] = place;
	p->items[p->item_count++] = (struct arena_item){
	    .bytes = bytes, .from = {(unsigned)from, 1}, .to = {(unsigned)to, 0}};
}

static void
live_again(struct planning *p, size_t from, size_t to)
{
	p->items[p->item_count - 1].from[1] = (unsigned)from;
	p->items[p->item_count - 1].to[1] = (unsigned)to;
}

static bool
bytes_of(const struct planning *p, size_t i, size_t *bytes)
{
	return num_mul(p->layers[i].out.size, p->want->max_batch, bytes) &&
	    num_mul(*bytes, sizeof(float), bytes);
}

static void
share_output(struct planning *p, size_t i, size_t bytes, size_t to)
{
	p->layers[i].y_shared = true;
	add_item(p, &p->layers[i].y_at, bytes, i, to);
}

/* An output that the way back reads lies in the context; another only as long as the way forward reads it, or what runs again. */
static bool
place_output(struct planning *p, struct plan *plan, size_t i)
{
	struct layer *l = &p->layers[i];
	size_t bytes, end = 2 * p->count;

	if (p->root[i] != i)
		return true;
	if (!bytes_of(p, i, &bytes))
		return false;
	bool last = p->root[p->count - 1] == i;
	if (p->renewed[i]) {
		l->again = (uint32_t)p->first_back[i] + 1;
		p->layers[p->first_back[i]].before = true;
		share_output(p, i, bytes, p->last_user[i]);
		live_again(p, end - p->first_back[i], end - p->last_back[i]);
	} else if (last && p->spends) {
		share_output(p, i, bytes, end - p->gradient_root[p->count - 1]);
	} else if (is_inside(p, i)) {
		share_output(p, i, bytes, p->last_user[i]);
		if (p->remade[i])
			live_again(p, block_time(p, i),
			    p->needed_back[i] ? end - p->last_back[i] : block_time(p, i));
	} else if (last || (p->want->train && p->needed_back[i])) {
		return reserve(&plan->context, &l->y_at, bytes, 1);
	} else {
		share_output(p, i, bytes, p->last_user[i]);
		/* The end of a block that runs again for what it keeps: it is written then, though nobody reads it. */
		if (p->remade[i])
			live_again(p, block_time(p, i), block_time(p, i));
	}
	return true;
}

/* From the first that writes it, the loss or its last user, to the layer's own way back. */
static bool
place_gradient(struct planning *p, size_t i)
{
	size_t bytes, top = i, born = p->count;

	p->layers[i].dy_at = LAYER_NOWHERE;
	if (!has_gradient(p, i) || p->gradient_root[i] != i ||
	    (p->spends && p->gradient_root[p->count - 1] == i))
		return true;
	for (size_t k = i + 1; k < p->count; k++)
		if (p->gradient_root[k] == i)
			top = k;
	for (size_t k = p->count; top + 1 < p->count && k-- > top;)
		for (size_t n = 0; n < p->layers[k].spec.input_count; n++)
			if (p->layers[k].spec.inputs[n] == (int)top && born == p->count)
				born = 2 * p->count - k;
	if (!bytes_of(p, i, &bytes))
		return false;
	add_item(p, &p->layers[i].dy_at, bytes, born, 2 * p->count - i);
	return true;
}

/* Also what does not train may be a norm that is made again. */
static bool
reads_kept_again(const struct planning *p, size_t i)
{
	size_t root = p->root[i];

	return root < p->count && p->remade[root] && layer_traits(p->layers[i].spec.type)->stands;
}

static bool
place_kept(struct planning *p, struct plan *plan, size_t i)
{
	struct layer *l = &p->layers[i];
	size_t bytes;

	l->kept_at = LAYER_NOWHERE;
	if (!p->want->train || (!l->trains && !reads_kept_again(p, i)) ||
	    (layer_traits(l->spec.type)->reads_sign && !p->signs[i]))
		return true;
	if (!num_mul(l->saved, p->want->max_batch, &bytes) ||
	    !num_add(bytes, l->saved_once, &bytes))
		return false;
	if (!drops(p, i))
		return reserve(&plan->context, &l->kept_at, bytes, 1);
	l->kept_shared = true;
	add_item(p, &l->kept_at, bytes, i, i);
	live_again(p, block_time(p, i), 2 * p->count - i);
	return true;
}

bool
plan_work(const struct layer *l, const struct plan_want *want, size_t *floats)
{
	size_t lanes;

	return num_mul(l->work_each, want->max_batch, floats) &&
	    num_add(*floats, l->work, floats) && num_add(l->work_lane, layer_apart(l), &lanes) &&
	    num_mul(lanes, want->threads - 1, &lanes) && num_add(*floats, lanes, floats) &&
	    num_add(*floats, l->work_lane, floats);
}

static bool
place_layer(struct planning *p, struct plan *plan, size_t i, size_t *work)
{
	struct layer *l = &p->layers[i];
	size_t floats;

	if (!plan_work(l, p->want, &floats))
		return false;
	*work = floats > *work ? floats : *work;
	return place_output(p, plan, i) && place_gradient(p, i) && place_kept(p, plan, i);
}

/* What is another's, once all places are known. */
static void
link_layer(struct planning *p, size_t i)
{
	struct layer *l = &p->layers[i];

	if (p->root[i] == p->count) {
		l->y_at = LAYER_OUTSIDE;
	} else if (p->root[i] != i) {
		l->y_at = p->layers[p->root[i]].y_at;
		l->y_shared = p->layers[p->root[i]].y_shared;
		l->again = p->layers[p->root[i]].again;
	}
	if (p->root[i] < p->count && p->remade[p->root[i]]) {
		l->again = (uint32_t)p->block[i];
		p->layers[p->block[i] - 1].before = true;
	}
	if (p->spends && p->gradient_root[p->count - 1] == i)
		l->dy_at = p->layers[p->root[p->count - 1]].y_at;
	else if (has_gradient(p, i) && p->gradient_root[i] != i)
		l->dy_at = p->layers[p->gradient_root[i]].dy_at;
	for (size_t k = 0; k < l->spec.input_count; k++) {
		int from = l->spec.inputs[k];
		bool outside = from == LAYER_INPUT;
		l->x_at[k] = outside ? LAYER_OUTSIDE : p->layers[from].y_at;
		l->x_shared[k] = !outside && p->layers[from].y_shared;
		l->dx_at[k] = LAYER_NOWHERE;
		if (p->want->train && outside && p->want->input_gradient)
			l->dx_at[k] = LAYER_OUTSIDE;
		else if (p->want->train && !outside && p->layers[from].trains)
			l->dx_at[k] = p->layers[from].dy_at;
	}
}

static bool
add_up(struct planning *p, struct plan *plan, size_t work)
{
	size_t all;

	if (!arena_place(p->items, p->item_count, &plan->shared))
		return false;
	for (size_t i = 0; i < p->item_count; i++)
		*p->places[i] = p->items[i].at;
	for (size_t i = 0; i < p->count; i++)
		link_layer(p, i);
	return reserve(&plan->shared, &plan->work_at, work, sizeof(float)) &&
	    num_mul(plan->context, p->want->contexts, &all) &&
	    num_add(plan->shared, all, &plan->passes);
}

/* May the loss write its gradient over the outputs? */
static bool
may_spend(const struct planning *p)
{
	size_t root = p->root[p->count - 1];

	return p->want->train && p->want->ends && p->want->contexts == 1 && root < p->count &&
	    !p->needed_back[root];
}

static void
begin(struct planning *p)
{
	p->item_count = 0;
	for (size_t i = 0; i < p->count; i++) {
		struct layer *l = &p->layers[i];
		l->y_shared = l->kept_shared = l->before = false;
		l->again = 0;
		p->needed_back[i] = false;
	}
	order_gradients(p->layers, p->count);
	find_roots(p);
	find_users(p);
}

/* With the blocks that are set. */
static enum err
place_all(struct planning *p, struct plan *plan, struct why *why)
{
	size_t work = 0;

	*plan = (struct plan){0};
	begin(p);
	p->spends = may_spend(p);
	find_remade(p);
	find_renewed(p);
	for (size_t i = 0; i < p->count; i++)
		if (!place_layer(p, plan, i, &work))
			return err_set(
			    why, ERR_LIMIT, "layer \"%s\": too large", p->layers[i].spec.name);
	return add_up(p, plan, work) ? ERR_OK : err_set(why, ERR_LIMIT, "the network is too large");
}

/* Blocks of a half of all bytes, a quarter, an eighth and so on, and with each piece its own: those that need least, the largest of
 * equals. The network fits without. */
static enum err
place_blocks(struct planning *p, struct plan *plan, struct why *why)
{
	size_t bytes[RECIPE_LAYERS_MAX], all = 0, best = SIZE_MAX, least = plan->passes;
	bool cut[RECIPE_LAYERS_MAX] = {false};
	const struct blocks_in in = {p->layers, p->count, p->root, bytes};
	enum err e = ERR_OK;

	begin(p);
	for (size_t i = 0; i < p->count; i++) {
		size_t kept = p->layers[i].saved * p->want->max_batch;
		if (!bytes_of(p, i, &bytes[i]))
			return err_set(why, ERR_LIMIT, "the network is too large");
		bytes[i] = (p->root[i] == i && p->needed_back[i] ? bytes[i] : 0) +
		    (p->layers[i].trains ? kept : 0);
		all += bytes[i];
	}
	blocks_cuts(&in, cut);
	for (size_t limit = all / 2; !e; limit = limit > all / 4096 ? limit / 2 : 0) {
		blocks_find(&in, cut, limit, p->block);
		e = place_all(p, plan, why);
		if (!e && plan->passes < least) {
			least = plan->passes;
			best = limit;
		}
		if (limit == 0)
			break;
	}
	blocks_find(&in, cut, best, p->block);
	return e ? e : place_all(p, plan, why);
}

enum err
plan_passes(struct plan *p, struct layer *layers, size_t count, const struct plan_want *want,
    struct why *why)
{
	struct planning *planning = calloc(1, sizeof(*planning));

	if (!planning)
		return err_set(why, ERR_NOMEM, "no memory to plan the network");
	planning->layers = layers;
	planning->count = count;
	planning->want = want;
	enum err e = share_outputs(layers, count, why);
	if (!e)
		e = place_all(planning, p, why);
	if (!e && want->train && want->recompute)
		e = place_blocks(planning, p, why);
	free(planning);
	return e;
}

bool
plan_state(uint64_t elements, size_t vectors, size_t *bytes)
{
	size_t vector;

	return elements <= SIZE_MAX && num_mul((size_t)elements, sizeof(float), &vector) &&
	    num_round_up(vector, LINE, &vector) && num_mul(vector, vectors, bytes);
}
