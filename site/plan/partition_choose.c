#include <math.h>

#include "partition.h"

static bool
allowed(const struct partition_in *in, unsigned pipeline, unsigned replicas)
{
	if ((in->pipeline && pipeline != in->pipeline) ||
	    (in->replicas && replicas != in->replicas))
		return false;
	return (pipeline == 1 || in->pieces > 1) &&
	    (replicas == 1 || (in->replicable && in->groups > 1));
}

bool
partition_choose(const struct partition_in *in, struct partition *out, uint64_t *lacking)
{
	const double enough = 0.9;
	double quickest = INFINITY;
	struct partition p;
	uint64_t lacks;

	*lacking = UINT64_MAX;
	for (unsigned ranks = 1; ranks <= in->rank_count; ranks++) {
		double limit = isinf(quickest) ? INFINITY : quickest * enough;
		for (unsigned pipeline = 1; pipeline <= ranks; pipeline++) {
			if (ranks % pipeline != 0 || !allowed(in, pipeline, ranks / pipeline))
				continue;
			bool found = partition_best(in, pipeline, ranks / pipeline, &p, &lacks);
			*lacking = lacks < *lacking ? lacks : *lacking;
			if (!found || p.step_s > limit)
				continue;
			if (p.step_s < quickest) {
				quickest = p.step_s;
				*out = p;
			}
		}
	}
	return !isinf(quickest);
}
