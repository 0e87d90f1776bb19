#ifndef NET_H
#define NET_H
#include <stddef.h>
#include <stdint.h>

#include "recipe.h"

/*
 * A network: parameters, forward, backward. Built from a net_spec; layouts follow PyTorch (linear weight
 * [out, in], conv weight [out, in, kh, kw], activations [batch, channels, height, width]; flatten in that order).
 * Parameter tensors are named "<layer>.weight" and "<layer>.bias", in layer order, one contiguous block.
 *
 * One thread owns a net; a team of threads may work on its passes (net_part). Every sum has a fixed order, so a pass gives the same bits
 * on every machine, with every compiler and any number of threads.
 */
struct net;

/* Checks the spec against itself (shapes fit, inputs exist, the loss fits the output) and allocates everything for
 * batches of at most max_batch examples. `train` false leaves out what only the backward pass needs.
 * ERR_INVALID with the layer's name in why, ERR_LIMIT if it needs more than max_bytes (0: no limit). */
ERR_MUST_USE enum err net_new(struct net **out, const struct net_spec *spec, size_t classes,
    uint32_t max_batch, bool train, uint64_t max_bytes, struct why *why);

/*
 * A part of a network: layers [first, last), with their parameters only. Several parts, each with one tensor between it and the next, do
 * together what the whole does, bit for bit, if randomness is drawn by place (draw.h). ERR_UNSUPPORTED if a layer reads more across a cut
 * than the output of the layer before it; otherwise as net_new.
 */
struct team;
struct net_part {
	const struct net_spec *spec; /* the whole; not looked at later */
	size_t classes; /* of the whole */
	size_t first, last;
	uint32_t max_batch;
	uint32_t contexts; /* batches that may be on their way at once, at least 1 */
	bool train;
	/* Above 0: it is planned for so many threads and nothing is allocated. It has no parameters and no passes, only figures. */
	unsigned planned;
	/* Tensors whose role is FROZEN stay as they are in every step: their gradient counts as zero, and is not worked out where nothing
	 * before them moves either. Not looked at later. */
	const struct tensor_rule *rules;
	size_t rule_count;
	/* Outputs inside blocks of layers (blocks.h) are not kept for the way back but worked out again: the same bits, less memory, about
	 * a third more time. */
	bool recompute;
	uint64_t max_bytes; /* 0: no limit */
	struct team *team; /* threads that passes are worked out by, the caller's; NULL: one */
};
ERR_MUST_USE enum err net_new_part(struct net **out, const struct net_part *part, struct why *why);
void net_free(struct net *net);

/* Names, shapes and order of the parameters, a shared one where it is first; all roles TRAIN. Lives as long as the net. */
const struct tensor_table *net_tensors(const struct net *net);
/* The parameters: net_tensors()->elements floats, which net_prepare may move. */
float *net_params(struct net *net);
/* Ends it: gives back all memory but that of the parameters, which may move. Nothing but net_params and net_tensors is for it then. */
void net_shed(struct net *net);
/* Draws initial parameters from the seed: the same bits on every machine. */
void net_init(struct net *net, uint64_t seed);
/* The same ones for who has no memory for them, of a net that may be one of figures only: those of the tensors that begin with elements
 * [first, end), in the order of net_tensors, in pieces of at most NET_DRAW_PIECE. Ends with what take returns, if that is no ERR_OK. */
#define NET_DRAW_PIECE 16384
struct net_drawing {
	uint64_t seed, first, end;
	enum err (*take)(void *context, const float *w, size_t n);
	void *context;
};
ERR_MUST_USE enum err net_draw(const struct net *net, const struct net_drawing *how);
/* Floats per example. */
size_t net_inputs(const struct net *net);
uint32_t net_max_batch(const struct net *net);
/* Width of the output (classes for cross-entropy): of a sequence, of one step. */
size_t net_outputs(const struct net *net);
/* Labels of an example: 1, of a sequence one for each step; 0 without labels. */
size_t net_labels(const struct net *net);
/* Does the loss look at an example or a step of that label? */
bool net_label_counts(const struct net *net, int32_t label);
/* What such a label weighs in the mean loss: 0 if it does not count, 1 if it is out of range. */
double net_label_weight(const struct net *net, int32_t label);
/* Targets of an example; 0 with labels, or where the input is the target. */
size_t net_targets(const struct net *net);
/* The net's input is whole numbers below that; 0: any numbers. */
size_t net_vocabulary(const struct net *net);
/* Do its labels weigh unequally in the mean loss? */
bool net_weighs(const struct net *net);
/* The same as channels, height, width; a flat output of n values is {n, 1, 1}. */
void net_output_shape(const struct net *net, uint32_t out[3]);

/* For budgets: multiply-adds of a forward pass of one example (layer_work), and the bytes that the net takes. */
double net_work(const struct net *net);
uint64_t net_bytes(const struct net *net);

/* Result of a pass over one batch, sums over its examples or, with labels, over these. */
struct net_result {
	double loss; /* sum (mse, bce: of per-example means over outputs) */
	double
	    weight; /* what it is divided by for the mean: labels that count, by their classes' weights; examples */
	uint64_t right; /* labels that are the largest output, */
	uint64_t labels; /* of so many that count; 0 for regression */
};

struct draw;

/* One batch; all of it stays the caller's. */
struct net_batch {
	const float *x; /* n x input floats */
	const int32_t *labels; /* n x net_labels */
	const float *targets; /* n x net_targets */
	uint32_t n;
	const struct draw *draw; /* what dropout draws from; NULL: no dropout */
	/* Of labels that weigh unequally (net_weighs), in a step of several batches: what those of all weigh. The gradient is of the sum of
	 * their losses over that, which is taken with share 1. 0: of the batch's own mean. */
	double whole;
};

/* A pass without dropout, whatever the batch says of it. Outputs (logits) stay readable in net_output() until the next pass.
 * ERR_NUMERIC if the loss is not finite, ERR_INVALID for a label or a token out of range, a missing array or more than max_batch examples. */
ERR_MUST_USE enum err net_eval(
    struct net *net, const struct net_batch *batch, struct net_result *result);
const float *net_output(const struct net *net);
/* The same pass without an answer to compare with, so without a loss: n examples at x. ERR_INVALID for none or more than
 * max_batch, ERR_STATE in a part before the last. */
ERR_MUST_USE enum err net_predict(struct net *net, const float *x, uint32_t n);

/*
 * How a step changes the parameters w. g is the gradient of the mean loss over the batch, changed in this order:
 *   prox    g += prox * (w - anchor), anchor being w at net_prepare (FedProx, Li et al. 2020)
 *   clip    all of g is scaled to an L2 norm of at most clip, as torch.nn.utils.clip_grad_norm_
 *   shift   g += shift, which stays the caller's: one float per parameter (SCAFFOLD's control variates)
 * and then as PyTorch 1.13: SGD  g += weight_decay * w; v = momentum * v + g; w -= rate * v (nesterov: rate * (g + momentum * v));
 * Adam with weight_decay added to g, AdamW with w *= 1 - rate * weight_decay, both with bias correction.
 * Weights move while it goes backward, and the gradient of one tensor after the other is stored at most, beside those of weights that
 * layers share; with clip or several parts it is stored whole.
 */
struct net_update {
	enum optimizer_type type;
	float rate, momentum, weight_decay; /* momentum: SGD */
	bool nesterov;
	float prox; /* 0: none */
	double clip; /* 0: none */
	double beta1, beta2, epsilon; /* Adam, AdamW */
	const float *shift; /* NULL: none */
	uint32_t parts; /* above 1: steps are made with net_add and net_move */
	uint32_t
	    groups; /* above 1, of a step of parts: of those it is the sum of sums, see net_fold */
};
/* Makes room for what such steps keep, forgets what earlier ones kept, and takes the parameters as anchor. Without it there are only
 * steps of SGD that keep nothing, and none if layers share a weight. ERR_LIMIT if that is more than max_bytes, ERR_NOMEM, ERR_UNSUPPORTED
 * for clip in a part. */
ERR_MUST_USE enum err net_prepare(struct net *net, const struct net_update *how, struct why *why);
/* Forward, backward and update in one go; net_output() is spent. result holds the loss before the step. Parameters are
 * untouched after a failure: as net_eval, ERR_STATE for a net not built to train or not prepared, ERR_LIMIT, ERR_NOMEM. */
ERR_MUST_USE enum err net_step(struct net *net, const struct net_batch *batch,
    const struct net_update *how, struct net_result *result);
/* A step of several batches: each adds `share` times its gradient (the shares add up to 1, or are each 1 with net_batch.whole), then net_move
 * makes the step. Only after net_prepare with parts above 1. Errors as net_step. */
ERR_MUST_USE enum err net_add(
    struct net *net, const struct net_batch *batch, float share, struct net_result *result);
/* With `groups` above 1: what was added since the last call becomes one term of the sum that net_move takes. At least once before it. */
void net_fold(struct net *net);
void net_move(struct net *net, const struct net_update *how);

/*
 * The two halves of net_add, for parts: forward passes of several batches may lie between a batch's own two, each in a context of its own.
 * What the batch points to must stay until the second. net_forward checks as net_eval does and ends with net_context_output(), n x outputs,
 * to be read until the context's next pass.
 */
ERR_MUST_USE enum err net_forward(struct net *net, uint32_t context, const struct net_batch *batch);
const float *net_context_output(const struct net *net, uint32_t context);
struct net_gradients {
	/* n x outputs: of the mean loss, from the next part; NULL in the last: of the batch's own loss. */
	const float *output;
	/* n x inputs, written for the part before; NULL: not wanted, as in the first. */
	float *input;
	float share; /* of the parameters' gradient, as in net_add */
};
/* result: as net_add in the last part, untouched without a loss. Empties the context, also if it fails. ERR_STATE if it holds no batch
 * or the net is not prepared with parts above 1; ERR_INVALID for a gradient missing or too many. */
ERR_MUST_USE enum err net_backward(struct net *net, uint32_t context,
    const struct net_gradients *gradients, struct net_result *result);
/* For tests: the gradient of the mean loss over the batch, net_tensors()->elements floats. That of frozen tensors is not written. */
ERR_MUST_USE enum err net_gradient(struct net *net, const struct net_batch *batch, float *grad);

#endif
