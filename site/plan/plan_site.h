#ifndef PLAN_SITE_H
#define PLAN_SITE_H
#include "leader.h"
#include "measures.h"
#include "partition.h"

/* How a task is divided among a world's ranks. */
struct plan_site_want {
	const struct leader_task *task; /* but for its layout */
	const struct net_update *how; /* NULL: an evaluation */
	const struct measures *measured;
	uint32_t pieces, groups; /* of a whole step */
	unsigned pipeline, replicas; /* what the owner fixed; 0: free */
};
/* The quickest division that fits. ERR_LIMIT: none does, `why` says by how much; ERR_UNSUPPORTED: the network cannot be divided so. */
ERR_MUST_USE enum err plan_site(
    struct partition *out, const struct plan_site_want *want, struct why *why);
/* Bytes that a rank takes by that division, exactly as it will allocate them. */
ERR_MUST_USE enum err plan_site_bytes(uint64_t *out, const struct plan_site_want *want,
    const struct layout *layout, unsigned rank, struct why *why);

#endif
