#ifndef SHARD_H
#define SHARD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Which examples of a data set are this device's, so that one data set can play many devices. Shards of one seed are a
 * partition: every example belongs to exactly one of them, and every machine works out the same ones.
 */
#define SHARD_COLUMN_MAX 64
#define SHARD_CELLS_MAX (1u << 28) /* shards x classes of a Dirichlet partition */

enum shard_partition {
	/* A random permutation cut into `count` pieces; sizes differ by one at most. */
	SHARD_IID,
	/* As in the FedAvg paper (McMahan et al., 2017): examples sorted by label, cut into 2 x count pieces, two of which, drawn by the
	 * seed, make one shard. Sizes differ by one piece's rounding at most. */
	SHARD_LABEL,
	/* The examples of each class are dealt in shares drawn from Dirichlet(alpha) (Hsu, Qi and Brown, 2019): the smaller alpha, the
	 * fewer classes a shard has. Shards may be empty. */
	SHARD_DIRICHLET,
	/* Examples of one group (a user, a site) stay together; groups, shuffled by the seed, are dealt in turn. With as many shards as
	 * groups each is one group. */
	SHARD_COLUMN,
	/* A random permutation cut into pieces whose sizes go as rank^-alpha: shard 1 is the largest. None is empty. */
	SHARD_POWERLAW,
};

struct shard {
	uint32_t index; /* 1..count */
	uint32_t count; /* 1: everything */
	enum shard_partition partition;
	double alpha; /* dirichlet: > 0; powerlaw: >= 0 */
	uint64_t seed;
	char column[SHARD_COLUMN_MAX]; /* whose values are the groups */
};

/* Ended by NULL, in the order of the enum. */
extern const char *const shard_partition_names[];
/* What shard_pick needs of each example. */
enum shard_needs { SHARD_NEEDS_NOTHING, SHARD_NEEDS_CLASSES, SHARD_NEEDS_GROUPS };
enum shard_needs shard_needs(enum shard_partition partition);

/* The indices of the shard, ascending; the caller frees *keep. `of` has a class or group for each example, as the partition needs
 * it, from 0 on without large gaps. ERR_INVALID if the shard would be empty or `of` is missing. */
ERR_MUST_USE enum err shard_pick(uint32_t **keep, size_t *keep_count, const struct shard *shard,
    const int32_t *of, size_t examples, struct why *why);

/* How many examples are kept for evaluation: `share` of them, but one at least of two or more unless the share is 0. */
size_t shard_held(size_t examples, double share);
/* Which examples are kept for evaluation: (*order)[0..*held) are their indices, the rest of *order the indices to train on, each part
 * ascending; the caller frees *order. ERR_NOMEM; ERR_LIMIT past 32 bits. */
ERR_MUST_USE enum err shard_hold(
    uint32_t **order, size_t *held, size_t examples, double share, uint64_t seed);

/* Draws `most` of so many examples by the seed, or takes all if there are no more: *keep has their indices, ascending; the caller frees
 * *keep. ERR_NOMEM; ERR_LIMIT past 32 bits. */
ERR_MUST_USE enum err shard_share(
    uint32_t **keep, size_t *kept, size_t examples, uint64_t most, uint64_t seed);

#endif
