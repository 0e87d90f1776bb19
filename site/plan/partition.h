#ifndef PARTITION_H
#define PARTITION_H
#include "layout.h"

/*
 * Divides a network among ranks so that a step takes least time. Exact: of all divisions that a memory limit allows, none is quicker by
 * partition_time. Pure but for the caller's counting of bytes.
 */
struct partition_layer {
	double forward_s, back_s; /* of a piece, on a rank of factor 1 */
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
	size_t count;
	const struct partition_rank
	    *ranks; /* rank 0 leads; a division takes the first ones, in this order */
	unsigned rank_count;
	/* Of the link between any two ranks, in each direction at once. */
	double bytes_per_s, latency_s; /* latency: of a message */
	uint32_t pieces,
	    groups; /* of a whole step; groups 1: there are no runs, and so no replicas */
	uint64_t input,
	    answer; /* bytes of a piece that the first and the last stage are fed with by rank 0 */
	/* Layers that share a weight: the first and the last. sharer 0: none do. Pipelines of several ranks are then rings, whose first
	 * stage has the lender and whose last stage has all of the others... */
	size_t lender, first_sharer;
	bool replicable; /* false: several replicas would compute something else */
	unsigned pipeline, replicas; /* what the owner fixed; 0: free */
	/* Bytes that a rank with this range takes; UINT64_MAX: impossible. Called often for the same. */
	uint64_t (*bytes)(void *context, const struct partition_range *range);
	void *context;
};

/* A division, and what it costs. */
struct partition {
	struct layout layout; /* pieces and run included */
	double step_s; /* a whole step, as partition_time */
	/* Of each stage: seconds of a piece, computing and on the link (the busier direction). */
	struct partition_stage {
		double compute_s, link_s;
		uint64_t bytes; /* of the rank; of a ring's last stage 0 */
		uint32_t contexts;
	} stages[LINK_RANKS_MAX + 1];
	double
	    bubble; /* share of the step in which the busiest rank neither computes nor waits for its link */
	bool link_bound; /* some rank's link takes longer than its passes */
};

/* The time of a whole step of the layout, and the members of *out beside it. */
void partition_time(
    const struct partition_in *in, const struct layout *layout, struct partition *out);
/* The quickest division into `pipeline` stages and `replicas`. False: none fits; *lacking: by how many bytes the nearest one does not (of
 * the rank that lacks most). */
bool partition_best(const struct partition_in *in, unsigned pipeline, unsigned replicas,
    struct partition *out, uint64_t *lacking);
/* Of all numbers of pipelines and replicas that in allows: the quickest, but none that gains less than a tenth over one with fewer ranks. */
bool partition_choose(const struct partition_in *in, struct partition *out, uint64_t *lacking);

#endif
