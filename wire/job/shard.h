#ifndef SHARD_H
#define SHARD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Which examples of a data set are this device's, so that one data set can play many devices. Shards of one seed are a
 * partition: every example belongs to exactly one of them.
 *
 * iid: a random permutation cut into `count` pieces. By label, as in the FedAvg paper (McMahan et al., 2017): examples
 * sorted by label, cut into 2 x count pieces, two of which, drawn by the seed, make one shard. Sizes differ by one
 * piece's rounding at most.
 */
struct shard {
	uint32_t index; /* 1..count */
	uint32_t count; /* 1: everything */
	bool by_label;
	uint64_t seed;
};

/* The indices of the shard, ascending; the caller frees *keep. `labels` (one per example) is needed by_label only.
 * ERR_INVALID if a shard would be empty or labels are missing. */
ERR_MUST_USE enum err shard_pick(uint32_t **keep, size_t *keep_count, const struct shard *shard,
    const int32_t *labels, size_t examples, struct why *why);

/* How many examples are kept for evaluation: `share` of them, but one at least of two or more unless the share is 0. */
size_t shard_held(size_t examples, double share);
/* Which they are: (*order)[0..*held) are
 * their indices, what follows those to train on, both ascending; the caller frees *order. ERR_NOMEM; ERR_LIMIT past 32 bits. */
ERR_MUST_USE enum err shard_hold(
    uint32_t **order, size_t *held, size_t examples, double share, uint64_t seed);

#endif
