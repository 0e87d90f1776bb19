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
 * A part of a network: layers [first, last), with their parameters only, and perhaps a second range of layers behind a gap. Several parts,
 * with one tensor at each cut, do together what the whole does, bit for bit, if randomness is drawn by place (draw.h). ERR_UNSUPPORTED if a
 * layer reads more across a cut than the output of the layer before it (cuts.h), or if layers of two parts share a weight; otherwise as
 * net_new.
 */
struct team;
struct net_update;
#define NET_RANGES 2
struct net_part {
	const struct net_spec *spec; /* the whole; not looked at later */
	size_t classes; /* of the whole */
	size_t first, last;
	uint32_t max_batch;
	/* Batches that may be between forward and backward at once, at least 1. */
	uint32_t contexts;
	/* The second range, whose contexts are numbered behind those of the first; last 0: there is none. */
	struct {
		size_t first, last;
		uint32_t contexts;
	} tail;
	bool train;
	/* Above 0: the net is planned for so many threads, and nothing is allocated. Such a net has no parameters and no passes, only
	 * figures (net_work, net_bytes, costs.h). */
	unsigned planned;
	/* Tensors whose role is FROZEN stay unchanged in every step: their gradient counts as zero, and is not computed where nothing
	 * before them trains. Not read after net_new_part. */
	const struct tensor_rule *rules;
	size_t rule_count;
	/* Outputs inside blocks of layers (blocks.h) are not kept for the backward pass but computed again: the same bits, less memory,
	 * about a third more time. */
	bool recompute;
	/* Steps for which net_prepare will be called: what they keep is allocated at once, where net_prepare would need room for the weights
	 * twice. NULL: not known. Not read after net_new_part. */
	const struct net_update *update;
	uint64_t max_bytes; /* 0: no limit */
	struct team *team; /* the threads of passes, the caller's; NULL: one */
};
ERR_MUST_USE enum err net_new_part(struct net **out, const struct net_part *part, struct why *why);
void net_free(struct net *net);

/* Names, shapes and order of the parameters; a shared one stands once, at its first layer. All roles TRAIN. Lives as long as the net. */
const struct tensor_table *net_tensors(const struct net *net);
/* Elements of the tensors that belong to layers before `layer`, an index in the whole network. */
uint64_t net_elements_before(const struct net *net, size_t layer);
/* Do steps move tensor t of net_tensors: is it neither frozen nor a running statistic? */
bool net_moves(const struct net *net, size_t t);
/* The parameters: net_tensors()->elements floats, which net_prepare may move. */
float *net_params(struct net *net);
/* Frees all memory of the net but its parameters, which may move. After it only net_params, net_tensors and net_free may be called. */
void net_shed(struct net *net);
/* Draws initial parameters from the seed: the same bits on every machine. */
void net_init(struct net *net, uint64_t seed);
/* The parameters of net_init in pieces, for a caller without memory for all; the net may be a planned one. Calls take(), in pieces of at
 * most NET_DRAW_PIECE floats, for the tensors whose first element is in [first, end), in the order of net_tensors. Ends with take's first
 * error. */
#define NET_DRAW_PIECE 16384
struct net_drawing {
	uint64_t seed, first, end;
	enum err (*take)(void *context, const float *w, size_t n);
	void *context;
};
ERR_MUST_USE enum err net_draw(const struct net *net, const struct net_drawing *how);
/* Floats per example. */
size_t net_inputs(const struct net *net);
/* Floats per example that enter and leave one of the part's ranges, 0 or 1. */
struct net_edges {
	size_t in, out;
};
struct net_edges net_range_edges(const struct net *net, size_t range);
uint32_t net_max_batch(const struct net *net);
/* Width of the output (classes for cross-entropy): of a sequence, of one step. */
size_t net_outputs(const struct net *net);
/* Labels of an example: 1, of a sequence one for each step; 0 without labels. */
size_t net_labels(const struct net *net);
/* Does the loss look at an example or a step of that label? */
bool net_label_counts(const struct net *net, int32_t label);
/* The weight of a label in the mean loss: 0 if it does not count, 1 if it is out of range. */
double net_label_weight(const struct net *net, int32_t label);
/* Targets of an example; 0 with labels, or where the input is the target: a part that has the loss and not the input wants that as the
 * batch's targets. */
size_t net_targets(const struct net *net);
/* Inputs must be whole numbers below the returned one; 0: any numbers. */
size_t net_vocabulary(const struct net *net);
/* Do labels weigh unequally in the net's mean loss? */
bool net_weighs(const struct net *net);
/* The shape of the output: channels, height, width; a flat output of n values is {n, 1, 1}. */
void net_output_shape(const struct net *net, uint32_t out[3]);

/* For budgets: multiply-adds of a forward pass of one example (layer_work), and the bytes that the net takes. */
double net_work(const struct net *net);
uint64_t net_bytes(const struct net *net);

/* Result of a pass over one batch: sums over its examples or, with labels, over its labels. */
struct net_result {
	double loss; /* sum (mse, bce: of per-example means over outputs) */
	/* The divisor of the mean loss: labels that count, by their classes' weights; without labels examples. */
	double weight;
	uint64_t right; /* labels that count and are the largest output */
	uint64_t labels; /* labels that count; 0 for regression */
};

struct draw;

/* One batch; all of it stays the caller's. */
struct net_batch {
	const float *x; /* n x input floats */
	const int32_t *labels; /* n x net_labels */
	const float *targets; /* n x net_targets */
	uint32_t n;
	const struct draw *draw; /* what dropout draws from; NULL: no dropout */
	/* With labels that weigh unequally (net_weighs), in a step of several batches: the weight of the labels of all batches together.
	 * The batch's gradient is then that of its sum of losses, divided by `whole`, and net_add takes share 1. 0: of the batch's own
	 * mean. */
	double whole;
};

/* A forward pass without dropout, even if batch->draw is set. Outputs (logits) stay readable in net_output() until the next pass.
 * ERR_NUMERIC if the loss is not finite, ERR_INVALID for a label or a token out of range, a missing array or more than max_batch
 * examples. */
ERR_MUST_USE enum err net_eval(
    struct net *net, const struct net_batch *batch, struct net_result *result);
const float *net_output(const struct net *net);
/* net_eval without labels or targets, so without a loss: n examples at x. ERR_INVALID for no examples or more than
 * max_batch, ERR_STATE in a part before the last. */
ERR_MUST_USE enum err net_predict(struct net *net, const float *x, uint32_t n);

/*
 * How a step changes the parameters w. g is the gradient of the mean loss over the batch, changed in this order:
 *   prox    g += prox * (w - anchor), anchor being w at net_prepare (FedProx, Li et al. 2020)
 *   clip    all of g is scaled to an L2 norm of at most clip, as torch.nn.utils.clip_grad_norm_
 *   shift   g += shift, which stays the caller's: one float per parameter (SCAFFOLD's control variates)
 * and then as PyTorch 1.13: SGD  g += weight_decay * w; v = momentum * v + g; w -= rate * v (nesterov: rate * (g + momentum * v));
 * Adam with weight_decay added to g, AdamW with w *= 1 - rate * weight_decay, both with bias correction.
 * Weights move during the backward pass, so that at most one tensor's gradient is stored at a time, beside the gradients of weights that
 * layers share; with clip or several parts the whole gradient is stored.
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
	/* Above 1, with parts above 1: the gradient is the sum of so many groups' sums, see net_fold. */
	uint32_t groups;
};
/* Makes room for what such steps keep, forgets what earlier steps kept, and takes the parameters as anchor. Without net_prepare a net can
 * only do plain SGD steps, which keep nothing, and none if layers share a weight. ERR_LIMIT above max_bytes, ERR_NOMEM. */
ERR_MUST_USE enum err net_prepare(struct net *net, const struct net_update *how, struct why *why);
/* Forward, backward and update in one call; net_output() is then undefined. result holds the loss before the step. Parameters are
 * untouched after a failure: as net_eval, ERR_STATE for a net not built to train or not prepared, ERR_LIMIT, ERR_NOMEM. */
ERR_MUST_USE enum err net_step(struct net *net, const struct net_batch *batch,
    const struct net_update *how, struct net_result *result);
/* A step of several batches: each adds `share` times its gradient (the shares add up to 1, or are each 1 with net_batch.whole), then
 * net_move makes the step. Only after net_prepare with parts above 1. Errors as net_step. */
ERR_MUST_USE enum err net_add(
    struct net *net, const struct net_batch *batch, float share, struct net_result *result);
/* With `groups` above 1: the gradients added since the last net_fold, a run, become one term of the sum that net_move takes. Called at
 * least once before net_move. */
void net_fold(struct net *net);
/* With `groups` above 1, in place of net_fold: the caller adds the terms up. Returns the gradient of the run, net_tensors()->elements
 * floats, which stays until the next call; net_move takes what these floats are then. */
float *net_hand(struct net *net);
void net_move(struct net *net, const struct net_update *how);

/*
 * net_move of a net in parts, which know the norm of the whole gradient together: the parts' ranges call net_norm in the order of the
 * network's layers, with the same lanes, zeros at first; then every part makes its step with net_norm_factor of the lanes. Without clip no
 * net_norm is called, and the factor is 1.
 */
#define NET_NORM_LANES 8
void net_norm(
    struct net *net, const struct net_update *how, size_t range, double lanes[NET_NORM_LANES]);
float net_norm_factor(const struct net_update *how, const double lanes[NET_NORM_LANES]);
void net_move_scaled(struct net *net, const struct net_update *how, float factor);

/*
 * The two halves of net_add, for parts: between a batch's net_forward and net_backward may lie those of other batches, each in a context of
 * its own. What the batch points to must stay until its net_backward. net_forward has the errors of net_eval; its output, n x what leaves
 * the context's range, is net_context_output() until the context's next pass.
 */
ERR_MUST_USE enum err net_forward(struct net *net, uint32_t context, const struct net_batch *batch);
const float *net_context_output(const struct net *net, uint32_t context);
struct net_gradients {
	/* In: the gradient of the outputs, n x outputs, from the next part; NULL in the last part, which has the loss. */
	const float *output;
	/* Out: the gradient of the inputs, n x inputs, for the part before; NULL: not wanted, as in the first part. */
	float *input;
	float share; /* the factor of the parameters' gradient, as in net_add */
	/* For a run's last batch: called with each tensor's first element and the run's gradient of the tensor, once that is complete: from
	 * the last layer to the first, a tensor that layers share with the first of these layers. The gradient stays until the
	 * net_fold, net_hand or net_move. NULL: not wanted. */
	void (*complete)(void *context, size_t first, const float *gradient, size_t count);
	void *context;
};
/* result: as net_add in the last part, untouched in parts without the loss. Empties the context, also after an error. ERR_STATE if the
 * context holds no batch or the net is not prepared with parts above 1; ERR_INVALID for a gradient missing or too many. */
ERR_MUST_USE enum err net_backward(struct net *net, uint32_t context,
    const struct net_gradients *gradients, struct net_result *result);
/* The net_eval of a part: a pass without dropout, for which there is no net_backward. result: untouched in ranges without the loss. */
ERR_MUST_USE enum err net_look(
    struct net *net, uint32_t context, const struct net_batch *batch, struct net_result *result);
/* For tests: the gradient of the mean loss over the batch, net_tensors()->elements floats. Gradients of frozen tensors are not written. */
ERR_MUST_USE enum err net_gradient(struct net *net, const struct net_batch *batch, float *grad);

#endif
