#include "take.h"

#include <stdio.h>
#include <string.h>

#include "modelfile.h"
#include "net_inside.h"

static struct tensor *
find(const struct tensor_table *t, const char *layer, const char *suffix)
{
	char name[TENSOR_NAME_MAX];

	snprintf(name, sizeof(name), "%s.%s", layer, suffix);
	const struct tensor *found = tensor_table_find(t, name);
	return found ? &t->items[found - t->items] : NULL;
}

static void
drop(struct tensor_table *t, const struct tensor *which)
{
	size_t at = (size_t)(which - t->items);

	memmove(t->items + at, t->items + at + 1, (--t->count - at) * sizeof(*t->items));
}

static bool
equal(const struct tensor *a, const struct tensor *b, const char *data)
{
	return a->dtype == b->dtype && a->end - a->begin == b->end - b->begin &&
	    memcmp(data + a->begin, data + b->begin, (size_t)(a->end - a->begin)) == 0;
}

/* What stands under the layer's own name is called as the tensor that it shares, or is that once more. */
static enum err
rename_shared(const struct layer *l, const char *lender, struct tensor_table *have,
    const char *data, struct why *why)
{
	struct tensor *own = find(have, l->spec.name, "weight");
	const struct tensor *shared = find(have, lender, "weight");

	if (!own)
		return ERR_OK;
	if (!shared) {
		snprintf(own->name, sizeof(own->name), "%s.weight", lender);
		return ERR_OK;
	}
	if (!equal(own, shared, data))
		return err_set(why, ERR_INVALID,
		    "tensor \"%.80s\" is not equal to \"%.80s\", which its layer uses", own->name,
		    shared->name);
	drop(have, own);
	return ERR_OK;
}

static enum err
rename_all(const struct net *net, struct tensor_table *have, const char *data, struct why *why)
{
	const struct layer *layers = net->graph.layers;
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < net->graph.count; i++)
		if (layers[i].spec.tied > 0)
			e = rename_shared(&layers[i],
			    graph_lender(&net->graph, &layers[i])->spec.name, have, data, why);
	return e;
}

/* Nobody has trained them yet. */
static void
drop_lora(const struct net *net, struct tensor_table *want, const struct tensor_table *have)
{
	for (size_t i = 0; i < net->graph.count; i++) {
		const struct layer_spec *s = &net->graph.layers[i].spec;
		if (s->rank == 0 || find(have, s->name, "lora_A.weight") ||
		    find(have, s->name, "lora_B.weight"))
			continue;
		drop(want, find(want, s->name, "lora_A.weight"));
		drop(want, find(want, s->name, "lora_B.weight"));
	}
}

/* Both tables, made to be compared; the caller frees them in either case. */
static enum err
prepare(const struct net *net, struct tensor_table *want, struct tensor_table *have,
    const char *data, struct why *why)
{
	enum err e = tensor_table_copy(want, &net->graph.tensors);

	if (!e) {
		drop_lora(net, want, have);
		e = rename_all(net, have, data, why);
	}
	return e ? e : tensor_table_fits(want, have, why);
}

/* What becomes of the tensors once both tables fit: copied to where all have their places, or handed over. */
struct taking {
	float *to;
	const struct net_drawing *drawing;
};

static enum err
hand_over(const struct net_drawing *how, const char *from, uint64_t elements)
{
	float piece[NET_DRAW_PIECE];
	enum err e = ERR_OK;

	/* A foreign file may not align its numbers. */
	for (uint64_t at = 0; at < elements && !e; at += NET_DRAW_PIECE) {
		size_t n =
		    elements - at < NET_DRAW_PIECE ? (size_t)(elements - at) : NET_DRAW_PIECE;
		memcpy(piece, from + at * sizeof(float), n * sizeof(float));
		e = how->take(how->context, piece, n);
	}
	return e;
}

static enum err
hand_over_all(const struct net *net, const struct tensor_table *have, const char *data,
    const struct net_drawing *drawing)
{
	const struct tensor_table *want = &net->graph.tensors;
	enum err e = ERR_OK;

	for (size_t i = 0; i < want->count && !e; i++) {
		const struct tensor *own = &want->items[i];
		const struct tensor *there = tensor_table_find(have, own->name);
		struct net_drawing one = *drawing;
		one.first = own->begin / sizeof(float);
		one.end = own->end / sizeof(float);
		e = there ? hand_over(drawing, data + there->begin, own->elements)
			  : net_draw(net, &one);
	}
	return e;
}

static enum err
work_out(const struct net *net, const struct tensor_table *file, const void *data,
    const struct taking *taking, struct why *why)
{
	struct tensor_table have = {0}, want = {0};
	enum err e = tensor_table_copy(&have, file);

	if (!e)
		e = prepare(net, &want, &have, data, why);
	if (!e && taking->to)
		modelfile_arrange(taking->to, &net->graph.tensors, data, &have);
	if (!e && taking->drawing)
		e = hand_over_all(net, &have, data, taking->drawing);
	if (e == ERR_NOMEM)
		err_set(why, e, "no memory for the tensor table");
	tensor_table_deinit(&want);
	tensor_table_deinit(&have);
	return e;
}

enum err
take_fits(const struct net *net, const struct tensor_table *have, const void *data, struct why *why)
{
	return work_out(net, have, data, &(struct taking){NULL, NULL}, why);
}

enum err
take_file(struct net *net, const struct tensor_table *have, const void *data, struct why *why)
{
	return work_out(net, have, data, &(struct taking){net->state, NULL}, why);
}

enum err
take_pieces(const struct net *net, const struct tensor_table *have, const void *data,
    const struct net_drawing *how, struct why *why)
{
	return work_out(net, have, data, &(struct taking){NULL, how}, why);
}
