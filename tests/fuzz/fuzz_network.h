#ifndef FUZZ_NETWORK_H
#define FUZZ_NETWORK_H
#include <stdlib.h>

#include "fuzz.h"
#include "job.h"
#include "net.h"

/*
 * What a coordinator does with an accepted job's layers, and then a device: the network is built within a limit and, if its work is
 * within one, runs forward, back and a step.
 */
#define NETWORK_BYTES ((uint64_t)8 << 20)
#define NETWORK_WORK \
	1e6 /* multiply-adds of an example; what takes long is a finding of libFuzzer's -timeout */
/* Beside the two planned blocks: layers and tensors, of which there are a few hundred and some thousands. */
#define NETWORK_BESIDE ((uint64_t)2 << 20)
#define NETWORK_BATCH 2

/* Of the address sanitizer; without it nothing is counted. */
int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
    void (*freed)(const volatile void *)) __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *block) __attribute__((weak));

static uint64_t network_held, network_peak; /* bytes since network_count */

static inline void
network_note(const volatile void *block, size_t bytes)
{
	(void)block;
	network_held += bytes;
	network_peak = network_held > network_peak ? network_held : network_peak;
}

static inline void
network_forget(const volatile void *block)
{
	network_held -= block ? __sanitizer_get_allocated_size(block) : 0;
}

/* As often as it is called: one hook. */
static inline void
network_count(void)
{
	static int there;

	if (!there && __sanitizer_install_malloc_and_free_hooks)
		__sanitizer_install_malloc_and_free_hooks(network_note, network_forget);
	there = 1;
	network_held = network_peak = 0;
}

/* Weights of any size would only end in a loss that is no number. */
static inline void
network_fill(struct net *net, float *x, float *targets, int32_t *labels)
{
	size_t words = net_vocabulary(net), outputs = net_outputs(net);

	for (size_t i = 0; i < NETWORK_BATCH * net_inputs(net); i++)
		x[i] = words > 0 ? (float)(i * 7 % words) : (float)(i % 5) / 4 - 0.5f;
	for (size_t i = 0; i < NETWORK_BATCH * net_targets(net); i++)
		targets[i] = (float)(i % 3) / 2;
	for (size_t i = 0; i < NETWORK_BATCH * net_labels(net); i++)
		labels[i] = (int32_t)(i % outputs);
}

static inline void
network_step(struct net *net)
{
	static const struct net_update how = {.rate = 0.01f};
	float *x = calloc(NETWORK_BATCH * net_inputs(net), sizeof(*x));
	float *targets = calloc(NETWORK_BATCH * net_targets(net) + 1, sizeof(*targets));
	int32_t *labels = calloc(NETWORK_BATCH * net_labels(net) + 1, sizeof(*labels));
	struct net_result result;
	const struct net_batch batch = {
	    .x = x, .labels = labels, .targets = targets, .n = NETWORK_BATCH};

	require(x && targets && labels);
	net_init(net, 3);
	network_fill(net, x, targets, labels);
	enum err e = net_prepare(net, &how, NULL);
	require(!e || e == ERR_LIMIT);
	if (!e) {
		e = net_step(net, &batch, &how, &result);
		require(!e || e == ERR_NUMERIC);
		e = net_eval(net, &batch, &result);
		require(!e || e == ERR_NUMERIC);
	}
	free(x);
	free(targets);
	free(labels);
}

static inline void
network_try(const struct recipe *r)
{
	struct net *net = NULL;
	struct why why = {""};

	if (r->net.layer_count == 0)
		return;
	network_count();
	enum err e =
	    net_new(&net, &r->net, r->data.class_count, NETWORK_BATCH, true, NETWORK_BYTES, &why);
	require(network_peak <= NETWORK_BYTES + NETWORK_BESIDE);
	if (e) {
		require(why.text[0] != '\0' && !net);
		return;
	}
	require(net_bytes(net) <= NETWORK_BYTES && net_work(net) >= 0);
	if (net_work(net) <= NETWORK_WORK)
		network_step(net);
	net_free(net);
}

#endif
