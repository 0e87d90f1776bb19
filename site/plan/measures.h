#ifndef MEASURES_H
#define MEASURES_H
#include "leader.h"

/* What a plan is made of, measured. */
struct measures {
	uint32_t count; /* layers */
	/* Seconds of a piece of max_batch examples, at rank 0; of layers between which no cut is possible the first one has all. */
	double *forward_s, *back_s;
	bool *cut; /* the network may be cut in front of the layer */
	unsigned ranks;
	double factor[LINK_RANKS_MAX]; /* how many times as long a rank takes as rank 0 */
	uint64_t memory[LINK_RANKS_MAX]; /* bytes that a rank may take; 0: not known */
	double bytes_per_s,
	    latency_s; /* of the slowest link between rank 0 and another, in one direction; latency: of a message */
};

/* Measures the network on the world's first `ranks` ranks, one after the other, and the links, unless that was done before
 * (measures_file.h); memory always. Blocks for some passes. `whole` as in a
 * leader_task. The caller frees it with measures_deinit, also after a failure. */
struct measures_want {
	const struct recipe *recipe;
	const struct net_part *whole;
	unsigned threads, ranks;
	bool processes; /* of the world: false for threads */
};
ERR_MUST_USE enum err measures_take(
    struct measures *out, struct world *world, const struct measures_want *want, struct why *why);
void measures_deinit(struct measures *m);

#endif
