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
	uint64_t process; /* an agent that waits for work */
	uint64_t examples; /* the examples that are in memory */
	/* The task's weights; before and after training the network has a copy, too. */
	uint64_t weights;
	/* The built-in trainer: network, batches, variates, and the weights if the network does not take them over. */
	uint64_t training;
	struct costs costs; /* the part of `training` that is the network */
	uint64_t data; /* the part of `training` that is batches and their order */
	unsigned threads; /* threads of the training */
	/* Of a job with control variates: the vector that is added to gradients. */
	uint64_t variates;
	/* Making the delta after the training, beside process, examples and weights. */
	uint64_t delta;
	bool program; /* a program trains, whose memory is not counted */
	uint64_t peak; /* the most at any time, of all these */
};

/* What a task transfers, in bytes of HTTP bodies: heads of requests are some hundred bytes more. */
struct footprint_bytes {
	uint64_t model; /* the file of a model that the job made */
	uint64_t delta; /* the body of a delta; the most, if the codec has no fixed size */
};
ERR_MUST_USE enum err footprint_bytes(struct footprint_bytes *out, const struct recipe *recipe,
    const struct tensor_table *table, struct why *why);

/* Bytes in memory of the device's data set `all` and of its parts for training and validation. */
uint64_t footprint_examples(const struct dataset *all, const struct recipe *recipe);

struct footprint_want {
	const struct recipe *recipe;
	enum task_kind kind;
	/* The model's tensors, with the job's roles; NULL: those of the recipe's network. */
	const struct tensor_table *table;
	uint64_t model_bytes; /* of the model's file, if table is NULL; 0: as for the network */
	uint64_t threads; /* at most; 0: the machine's */
	bool program; /* a program trains; then table must be set */
	const struct dataset *train; /* count and form of its examples are used */
	uint64_t validation; /* examples */
	uint64_t examples_bytes; /* footprint_examples */
	/* Fewer threads are counted if the peak is above so many bytes otherwise; 0: no limit. */
	uint64_t most;
};
/* Counts a task's memory. ERR_INVALID, ERR_NOMEM, ERR_LIMIT if the sum is too large to be counted. */
ERR_MUST_USE enum err footprint_of(
    struct footprint *out, const struct footprint_want *want, struct why *why);
/* The network that footprint_of counts, planned only, to show where the bytes go layer by layer. The caller frees it with net_free. */
ERR_MUST_USE enum err footprint_network(
    struct net **out, const struct footprint_want *want, unsigned threads, struct why *why);
struct footprint_proposal {
	/* The largest with which the peak is at most want->most; 0: there is none. */
	uint64_t micro_batch;
	uint64_t peak; /* with micro_batch; if there is none, the least possible */
};
/* Proposes a micro_batch for a task of the built-in trainer. */
ERR_MUST_USE enum err footprint_propose(
    struct footprint_proposal *out, const struct footprint_want *want, struct why *why);

#endif
