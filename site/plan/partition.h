#ifndef PARTITION_H
#define PARTITION_H
#include "layout.h"

/*
 * Divides a network among ranks so that a step takes least time: of all divisions that a memory limit allows, none is quicker by
 * partition_time. Pure but for the caller's counting of bytes.
 *
 * The model of time. A rank takes factor x (forward + back) of the layers of its stage to compute a piece; of the replicas' ranks with one
 * stage the slowest counts. Links carry both directions at once. A transfer takes bytes / bytes_per_s and latency_s for each message of at
 * most LINK_BODY_MAX. Per piece a rank sends and receives each output that crosses its cuts, and as much gradient. Rank 0 sends also the
 * input and the answer of a piece of every other replica, and of its own pipeline the answer if a straight one ends on another rank, which
 * receives it. What transfers and computing take runs side by side: a rank's period is the longer of the two. A ring's first rank has the
 * first and the last stage: its figures are sums.
 *
 * P is the longest period of all ranks; S, one piece through an empty pipeline, the sum over stages of computing and over cuts of two
 * transfers. n pieces from flush to flush take (n - 1) P + S. A straight pipeline flushes at the end of a step, a ring after each run too.
 *
 * A wave is a run of every replica; as replica 0 has most pieces, its count. The first takes (n - 1) P + S; a later one that too in a
 * ring, else n P. With several replicas a rank sends (replicas - 1) / replicas of its gradient after a wave; E is the longest such transfer.
 * It goes beside the next wave, so that each wave but the first takes E if that is longer. After the last wave come E and, for the sums to
 * all, E once more.
 */
struct partition_layer {
	double forward_s, back_s; /* of a piece, on a rank of factor 1; >= 0 */
	uint64_t out; /* bytes of a piece's output */
	uint64_t gradient; /* bytes of what steps move */
	bool cut; /* the network may be cut in front of the layer */
	bool works; /* it has parameters: a stage without such a layer is none */
};

struct partition_rank {
	double factor; /* a pass takes so many times as long */
	uint64_t memory; /* bytes; 0: no limit */
};

/* What a rank has in memory. */
struct partition_range {
	size_t first, last; /* layers [first, last) */
	size_t tail_first; /* and [tail_first, count) in a ring's first rank; 0: no tail */
	uint32_t contexts, tail_contexts;
	unsigned replicas;
	bool leads; /* it is rank 0 */
};

struct partition_in {
	const struct partition_layer *layers;
	size_t count; /* 1 .. RECIPE_LAYERS_MAX */
	const struct partition_rank
	    *ranks; /* rank 0 leads; a division takes the first ones, in this order */
	unsigned rank_count; /* 1 .. LINK_RANKS_MAX */
	/* Of the link between any two ranks, in each direction at once; > 0, >= 0. Latency: of a message. */
	double bytes_per_s, latency_s;
	uint32_t pieces,
	    groups; /* of a whole step, >= 1; groups 1: there are no runs, and so no replicas */
	uint64_t input,
	    answer; /* bytes of a piece that the first and the last stage are fed with by rank 0 */
	/* Layers that share a weight: the first of them, and the first of the others; first_sharer 0: none do. If some do, pipelines of
	 * several ranks are rings: the lender is in the first stage, all others are in the last: cut[1] > lender, cut[last] <= first_sharer. */
	size_t lender, first_sharer;
	bool replicable; /* false: several replicas would compute something else */
	unsigned pipeline, replicas; /* what the owner fixed; 0: free */
	/* Bytes that a rank with this range takes; UINT64_MAX: impossible. Called only for what the search comes across, and once or
	 * twice for the same. */
	uint64_t (*bytes)(void *context, const struct partition_range *range);
	void *context;
};

/* A division, and what it costs. */
struct partition {
	struct layout layout; /* pieces and run included */
	double step_s; /* a whole step */
	/* Of each stage, seconds of a piece: computing and on the link (the busier direction). */
	struct partition_stage {
		double compute_s, link_s;
		uint64_t bytes; /* of the rank, of replicas the most; of a ring's last stage 0 */
		uint32_t contexts;
	} stages[LINK_RANKS_MAX + 1];
	double bubble; /* share of the step in which the busiest rank does not compute */
	/* A rank's link takes longer than its computing, or E longer than a later wave. */
	bool link_bound;
};

/* The time of a whole step of the layout, and the members of *out beside it. */
void partition_time(
    const struct partition_in *in, const struct layout *layout, struct partition *out);
/*
 * The quickest division into `pipeline` stages and `replicas`, at most rank_count ranks; of equals the one with fewer bytes over its cuts,
 * then the one with the earliest cuts. Exact in every case, but for the rounding of sums. False: none fits; *lacking: by how many bytes the
 * nearest one does not (of the rank that lacks most). UINT64_MAX: there is none with any memory, or no memory for the search itself.
 */
bool partition_best(const struct partition_in *in, unsigned pipeline, unsigned replicas,
    struct partition *out, uint64_t *lacking);
/*
 * Of all numbers of pipelines and replicas that in allows: from one rank up, the quickest of so many ranks is taken if it takes at most nine
 * tenths of the time of the one taken before. False: as partition_best, the nearest of all.
 */
bool partition_choose(const struct partition_in *in, struct partition *out, uint64_t *lacking);

#endif
