#ifndef FOOTPRINT_H
#define FOOTPRINT_H
#include "costs.h"
#include "task_kind.h"

struct dataset;

/*
 * What a task takes of a device's memory, in bytes of anonymous memory: what the kernel cannot drop. Models and mapped data sets are files
 * beside it. Pure but for the allocations of a network that is built and freed.
 */
struct footprint {
	uint64_t process; /* an agent that waits */
	uint64_t examples; /* what of the data set lies in memory */
	uint64_t
	    weights; /* of the task in hand; before and after the training a copy in the network, too */
	uint64_t
	    training; /* the built-in trainer, and of the weights what its network does not take over: */
	struct costs costs; /* its network, */
	uint64_t data; /* batches and their order */
	unsigned threads; /* that it works with */
	uint64_t variates; /* of a job with control variates: what is added to gradients */
	uint64_t
	    delta; /* making the delta, once the training is over, beside process, examples and weights */
	bool program; /* a program trains, whose memory is its own */
	uint64_t peak;
};

/* What it moves, in bytes of bodies: heads of requests come to some hundred more. */
struct footprint_bytes {
	uint64_t model; /* a file of one that the job made */
	uint64_t delta; /* at most, where its codec has no fixed size */
};
ERR_MUST_USE enum err footprint_bytes(struct footprint_bytes *out, const struct recipe *recipe,
    const struct tensor_table *table, struct why *why);

/* What the data set takes: the device's share, and its parts for training and validation. */
uint64_t footprint_examples(const struct dataset *all, const struct recipe *recipe);

struct footprint_want {
	const struct recipe *recipe;
	enum task_kind kind;
	const struct tensor_table
	    *table; /* the model's, with the job's roles; NULL: that of the recipe's network */
	uint64_t model_bytes; /* of its file, where there is no table; 0: as the network has */
	uint64_t threads; /* at most; 0: all of the machine's */
	bool program; /* a program trains; a table is due */
	const struct dataset *train; /* its count and what an example is are looked at */
	uint64_t validation; /* examples */
	uint64_t examples_bytes;
	uint64_t
	    most; /* fewer threads are counted where that keeps the peak below it; 0: no limit */
};
/* ERR_INVALID, ERR_NOMEM, ERR_LIMIT if it is too much to be counted. */
ERR_MUST_USE enum err footprint_of(
    struct footprint *out, const struct footprint_want *want, struct why *why);
/* Where its bytes go, layer by layer: the network as it was counted. The caller frees it with net_free. */
ERR_MUST_USE enum err footprint_network(
    struct net **out, const struct footprint_want *want, unsigned threads, struct why *why);
struct footprint_proposal {
	uint64_t micro_batch; /* the largest with which the peak is at most want->most; 0: none */
	uint64_t peak; /* with it; without one, the least that there is */
};
/* Of a task that is trained by what is built in. */
ERR_MUST_USE enum err footprint_propose(
    struct footprint_proposal *out, const struct footprint_want *want, struct why *why);

#endif
