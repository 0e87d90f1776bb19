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
	struct net_part part; /* its spec is not looked at after net_new_part */
	bool ends; /* with the loss */
	struct loss_how loss;
	size_t vocabulary; /* of the smallest embedding; 0: none */
	enum gemm_arithmetic arithmetic; /* of products */
	bool ties; /* layers share a weight, which moves when all have handed over its gradient */
	float *state; /* the two blocks of backend.h */
	char *passes;
	size_t stride, vectors; /* of the state: floats from one vector to the next; how many; */
	size_t scratch; /* floats behind them */
	size_t rooms; /* for gradients of single tensors, floats */
	bool stores; /* one of them is the gradient */
	struct update update;
	struct update_range *moving; /* what steps may move, one range per tensor */
	size_t moving_count;
	struct net_batch *contexts; /* what each holds; n 0: nothing */
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
