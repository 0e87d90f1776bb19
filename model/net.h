#ifndef NET_H
#define NET_H
#include <stddef.h>
#include <stdint.h>

#include "recipe.h"
#include "tensor.h"

/*
 * A network: parameters, forward, backward. Built from a net_spec; layouts follow PyTorch (linear weight
 * [out, in], conv weight [out, in, kh, kw], activations [batch, channels, height, width]; flatten in that order).
 * Parameter tensors are named "<layer>.weight" and "<layer>.bias", in layer order, one contiguous block.
 *
 * One thread owns a net, and nothing inside starts another; run several nets in several threads to use several
 * cores. Every sum has a fixed order, so a pass gives the same bits on every machine and with every compiler.
 */
struct net;

/* Checks the spec against itself (shapes fit, inputs exist, the loss fits the output) and allocates everything for
 * batches of at most max_batch examples. `train` false leaves out what only the backward pass needs.
 * ERR_INVALID with the layer's name in why, ERR_LIMIT if it needs more than max_bytes (0: no limit). */
ERR_MUST_USE enum err net_new(struct net **out, const struct net_spec *spec, size_t classes,
    uint32_t max_batch, bool train, uint64_t max_bytes, struct why *why);
void net_free(struct net *net);

/* Names, shapes and order of the parameters; all roles TRAIN. Lives as long as the net. */
const struct tensor_table *net_tensors(const struct net *net);
/* The parameters: net_tensors()->elements floats. */
float *net_params(struct net *net);
/* Draws initial parameters from the seed: the same bits on every machine. */
void net_init(struct net *net, uint64_t seed);
/* Floats per example. */
size_t net_inputs(const struct net *net);
uint32_t net_max_batch(const struct net *net);
/* Width of the output (classes for cross-entropy). */
size_t net_outputs(const struct net *net);

/* Result of a pass over one batch, sums over its examples. */
struct net_result {
	double loss; /* sum of per-example losses (mse: per-example mean over outputs) */
	uint64_t right; /* examples whose largest output is the label; 0 for regression */
};

/* x: n x input floats. labels (cross-entropy) or targets (mse, n x outputs). No dropout. Outputs (logits) stay readable in
 * net_output() until the next pass. ERR_NUMERIC if the loss is not finite, ERR_INVALID for a label out of range, a missing array or
 * more than max_batch examples. */
ERR_MUST_USE enum err net_eval(struct net *net, const float *x, const int32_t *labels,
    const float *targets, uint32_t n, struct net_result *result);
const float *net_output(const struct net *net);

struct prng;

/* How a step changes the parameters: SGD as in PyTorch: g = grad(mean loss) + weight_decay * w;
 * v = momentum * v + g; w -= rate * v. */
struct net_sgd {
	float rate, momentum, weight_decay;
};
/* Forward (with dropout drawn from rng), backward and SGD update in one go: layers may update their weights while
 * going backward, without storing gradients. result holds the loss before the step. Parameters are untouched after a
 * failure: as net_eval, ERR_STATE for a net not built to train, ERR_LIMIT or ERR_NOMEM for the momentum. */
ERR_MUST_USE enum err net_step(struct net *net, const float *x, const int32_t *labels,
    const float *targets, uint32_t n, const struct net_sgd *sgd, struct prng *rng,
    struct net_result *result);
/* Forgets momentum. */
void net_reset_momentum(struct net *net);
/* For tests: the gradient of the mean loss over the batch, net_tensors()->elements floats, without dropout unless rng. */
ERR_MUST_USE enum err net_gradient(struct net *net, const float *x, const int32_t *labels,
    const float *targets, uint32_t n, struct prng *rng, float *grad);

#endif
