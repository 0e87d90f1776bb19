#include "stepper.h"

#include <string.h>

#include "scoring.h"

static enum err
begin(void *self, const struct net_update *how, struct why *why)
{
	return net_prepare(self, how, why);
}

void
stepper_add(struct net_result *sums, const struct net_result *one)
{
	sums->loss += one->loss;
	sums->weight += one->weight;
	sums->right += one->right;
	sums->labels += one->labels;
}

static enum err
batch(void *self, const struct net_update *how, const struct stepper_piece *piece,
    struct net_result *sums)
{
	struct net_result got;
	enum err e = how->parts > 1 ? net_add(self, &piece->batch, piece->share, &got)
				    : net_step(self, &piece->batch, how, &got);

	if (!e)
		stepper_add(sums, &got);
	return e;
}

static enum err
fold(void *self)
{
	net_fold(self);
	return ERR_OK;
}

/* A step of one piece was made with it. */
static enum err
step(void *self, const struct net_update *how)
{
	if (how->parts > 1)
		net_move(self, how);
	return ERR_OK;
}

static enum err
evaluate(void *self, const struct net_batch *batch, uint64_t batches, struct net_result *sums,
    struct counts *counts)
{
	struct net_result got;

	(void)batches;
	if (!batch)
		return ERR_OK;
	enum err e = net_eval(self, batch, &got);
	if (e)
		return e;
	if (counts)
		scoring_batch(counts, self, net_output(self), batch);
	stepper_add(sums, &got);
	return ERR_OK;
}

static enum err
parameters(void *self, uint64_t first, size_t n, float *values, bool set)
{
	float *own = net_params(self) + first;

	if (set)
		memcpy(own, values, n * sizeof(*own));
	else
		memcpy(values, own, n * sizeof(*own));
	return ERR_OK;
}

struct stepper
stepper_net(struct net *net)
{
	static const struct stepper_calls calls = {
	    .begin = begin,
	    .batch = batch,
	    .fold = fold,
	    .step = step,
	    .evaluate = evaluate,
	    .parameters = parameters,
	};

	return (struct stepper){&calls, net, net, 1};
}
