#include "plan_site.h"

#include <stdlib.h>

#include "costs.h"
#include "rank.h"
#include "tensor.h"

struct planning {
	const struct plan_site_want *want;
	struct partition_layer *layers;
	size_t count;
};

/* --- what the network is, layer by layer */

/* Bytes of what steps move, of the tensors that begin in [first, end). */
static uint64_t
moving(const struct net *net, uint64_t first, uint64_t end)
{
	const struct tensor_table *t = net_tensors(net);
	uint64_t sum = 0;

	for (size_t i = 0; i < t->count; i++) {
		uint64_t at = t->items[i].begin / sizeof(float);
		if (at >= first && at < end && net_moves(net, i))
			sum += t->items[i].elements * sizeof(float);
	}
	return sum;
}

static void
describe(struct planning *p, const struct net *net)
{
	const struct measures *m = p->want->measured;
	const struct net_spec *spec = p->want->task->whole.spec;

	for (size_t i = 0; i < p->count; i++) {
		uint64_t first = net_elements_before(net, i), end = net_elements_before(net, i + 1);
		struct costs_layer c;
		costs_layer(net, i, &c);
		p->layers[i] = (struct partition_layer){.forward_s = m->forward_s[i],
		    .back_s = p->want->how ? m->back_s[i] : 0,
		    .out = c.output,
		    .gradient = p->want->how ? moving(net, first, end) : 0,
		    .cut = m->cut[i],
		    .works = end > first || spec->layers[i].tied > 0};
	}
}

/* --- what a rank takes */

static struct rank_parts
parts_of(const struct planning *p, const struct partition_range *r)
{
	struct rank_parts parts = {
	    .part = p->want->task->whole, .count = 1, .replicas = r->replicas, .leads = r->leads};
	/* Not known here: as many as the first stage of all ranks would have. */
	uint32_t most = 1 + 2 * p->want->measured->ranks;
	const struct stage_place place = {.number = r->first > 0,
	    .first = r->first == 0,
	    .last = r->last == p->count,
	    .contexts = r->contexts,
	    .first_contexts = r->first == 0 ? r->contexts
		: most < p->want->pieces    ? most
					    : p->want->pieces,
	    .max_batch = parts.part.max_batch,
	    .train = parts.part.train};

	parts.part.first = r->first;
	parts.part.last = r->last;
	parts.part.contexts = r->contexts;
	parts.places[0] = place;
	if (r->tail_first == 0)
		return parts;
	parts.part.tail.first = r->tail_first;
	parts.part.tail.last = p->count;
	parts.part.tail.contexts = r->tail_contexts;
	parts.places[1] = place;
	parts.places[1].first = false;
	parts.places[1].last = true;
	parts.places[1].contexts = r->tail_contexts;
	parts.places[1].range = 1;
	parts.count = 2;
	return parts;
}

static uint64_t
bytes(void *context, const struct partition_range *range)
{
	const struct planning *p = context;
	const struct rank_parts parts = parts_of(p, range);
	uint64_t out;

	return rank_bytes(&out, &parts, p->want->task->threads, p->want->how, NULL) ? UINT64_MAX
										    : out;
}

enum err
plan_site_bytes(uint64_t *out, const struct plan_site_want *want, const struct layout *layout,
    unsigned rank, struct why *why)
{
	const struct rank_task task = {&want->task->whole, layout, want->task->threads, want->how};
	struct rank_parts parts;

	rank_parts(&parts, &task, rank);
	return rank_bytes(out, &parts, want->task->threads, want->how, why);
}

/* --- the search */

static void
find_ties(const struct net_spec *spec, struct partition_in *in)
{
	for (size_t i = 0; i < spec->layer_count; i++) {
		if (spec->layers[i].tied == 0)
			continue;
		size_t lender = spec->layers[i].tied - 1;
		in->lender = in->lender > lender ? in->lender : lender;
		if (in->first_sharer == 0)
			in->first_sharer = i;
	}
}

/* Why no division is possible, whatever memory there is. */
static enum err
impossible(const struct plan_site_want *w, bool replicable, struct why *why)
{
	if (w->replicas > 1 && !replicable)
		return err_set(why, ERR_UNSUPPORTED,
		    "--data-parallel: the running statistics of a batch norm are a chain over all "
		    "batches, which replicas do not have");
	if (w->replicas > 1 && w->groups <= 1)
		return err_set(why, ERR_UNSUPPORTED,
		    "parallel.groups: replicas (--data-parallel) divide the groups of a step, and "
		    "there is one");
	return err_set(why, ERR_UNSUPPORTED,
	    "--pipeline-parallel: the network cannot be divided so: it has too few layers, or "
	    "too much crosses between them");
}

static enum err
does_not_fit(uint64_t lacking, struct why *why)
{
	return err_set(why, ERR_LIMIT,
	    lacking >= 1000000000 ? "does not fit: %.1f GB short" : "does not fit: %.1f MB short",
	    (double)lacking / (lacking >= 1000000000 ? 1e9 : 1e6));
}

static enum err
search(struct partition *out, struct planning *p, const struct net *net, struct why *why)
{
	const struct plan_site_want *w = p->want;
	const struct net_spec *spec = w->task->whole.spec;
	struct partition_rank ranks[LINK_RANKS_MAX];
	uint64_t each = w->task->whole.max_batch, lacking = 0;
	struct partition_in in = {.layers = p->layers,
	    .count = p->count,
	    .ranks = ranks,
	    .rank_count = w->measured->ranks,
	    .bytes_per_s = w->measured->bytes_per_s > 0 ? w->measured->bytes_per_s : 1e12,
	    .latency_s = w->measured->latency_s,
	    .pieces = w->pieces,
	    .groups = w->groups,
	    .input = each * net_inputs(net) * sizeof(float),
	    .answer = each *
		(net_labels(net) > 0 ? net_labels(net) * sizeof(int32_t)
				     : net_outputs(net) * sizeof(float)),
	    /* Running statistics are a chain over all batches of a training. */
	    .replicable = !w->how || !net_spec_has(spec, LAYER_BATCHNORM),
	    .pipeline = w->pipeline,
	    .replicas = w->replicas,
	    .bytes = bytes,
	    .context = p};

	for (unsigned r = 0; r < in.rank_count; r++)
		ranks[r] = (struct partition_rank){w->measured->factor[r], w->measured->memory[r]};
	find_ties(spec, &in);
	if (partition_choose(&in, out, &lacking))
		return ERR_OK;
	return lacking == UINT64_MAX ? impossible(w, in.replicable, why)
				     : does_not_fit(lacking, why);
}

enum err
plan_site(struct partition *out, const struct plan_site_want *want, struct why *why)
{
	struct planning p = {.want = want, .count = want->task->whole.spec->layer_count};
	struct net_part whole = want->task->whole;
	struct net *net = NULL;

	whole.planned = 1;
	p.layers = calloc(p.count, sizeof(*p.layers));
	enum err e = p.layers ? net_new_part(&net, &whole, why)
			      : err_set(why, ERR_NOMEM, "no memory for a plan");
	if (!e) {
		describe(&p, net);
		e = search(out, &p, net, why);
	}
	net_free(net);
	free(p.layers);
	return e;
}
