#ifndef NET_INSIDE_H
#define NET_INSIDE_H
#include "graph.h"
#include "loss.h"
#include "net.h"
#include "plan.h"
#include "team.h"
#include "update.h"

/* A net: net.c makes it, run.c runs it. */
struct net {
	const struct backend *backend;
	struct graph graph;
	struct net_run {
		struct plan plan;
		size_t
		    at; /* bytes into `passes`: the range's shared part without workspace, then its contexts */
		uint32_t context, contexts; /* its first, and how many */
		bool begins,
		    ends; /* the network's input enters here; the range has the last layer, and so the loss */
		bool collected; /* the collected gradient holds some of the range's */
	} run[NET_RANGES]; /* of each range of the graph */
	size_t work_at; /* bytes into `passes`: the workspace, which all passes share */
	struct net_part part; /* part.spec is not read after net_new_part */
	bool ends; /* one of the ranges does */
	struct loss_how loss;
	size_t vocabulary; /* of the smallest embedding; 0: none */
	enum gemm_arithmetic arithmetic; /* of products */
	/* Layers share a weight, which moves when all of them have handed over a gradient. */
	bool ties;
	float *state; /* the two blocks of backend.h */
	char *passes;
	/* Of the state: floats from one vector to the next; number of vectors. */
	size_t stride, vectors;
	size_t scratch; /* floats of the state behind its vectors */
	size_t rooms; /* floats for the gradients of single tensors */
	size_t apart; /* floats for gradients that are added up apart */
	bool stores; /* one of the vectors is the whole gradient */
	struct update update;
	struct update_range *moving; /* the elements that steps may move, one range per tensor */
	size_t moving_count;
	size_t moving_tail; /* of them: where those of the second range begin */
	struct net_batch *contexts; /* the batch that each context holds; n 0: none */
	bool gathered
	    [RECIPE_LAYERS_MAX]; /* of a layer that lends its weight: all is in the collected gradient */
};

static inline unsigned
net_threads(const struct net *net)
{
	return net->part.planned > 0 ? net->part.planned : team_size(net->part.team);
}

static inline const struct layer *
net_last(const struct net *net)
{
	return &net->graph.layers[net->graph.count - 1];
}

/* Is its own input what the net's outputs are to meet? */
static inline bool
net_meets_input(const struct net *net)
{
	return net->loss.target_input && net->part.first == 0 && net->graph.ranges == 1;
}

/* The range that a context belongs to. */
static inline size_t
net_range_of(const struct net *net, uint32_t context)
{
	return net->graph.ranges > 1 && context >= net->run[1].context ? 1 : 0;
}

static inline uint32_t
net_contexts(const struct net *net)
{
	return net->part.contexts + (net->graph.ranges > 1 ? net->part.tail.contexts : 0);
}

/* Bytes of the workspace: a pass is over before the next begins. */
static inline size_t
net_workspace(const struct net *net)
{
	size_t most = 0;

	for (size_t r = 0; r < net->graph.ranges; r++) {
		const struct plan *p = &net->run[r].plan;
		if (p->shared - p->work_at > most)
			most = p->shared - p->work_at;
	}
	return most;
}

/* Bytes of all passes. */
static inline size_t
net_passes(const struct net *net)
{
	return net->work_at + net_workspace(net);
}

#endif
