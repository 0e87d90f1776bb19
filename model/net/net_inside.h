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
	struct plan plan;
	struct net_part part; /* part.spec is not read after net_new_part */
	bool ends; /* the net has the last layer, and so the loss */
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
	bool stores; /* one of the vectors is the whole gradient */
	struct update update;
	struct update_range *moving; /* the elements that steps may move, one range per tensor */
	size_t moving_count;
	struct net_batch *contexts; /* the batch that each context holds; n 0: none */
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

#endif
