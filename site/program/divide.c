#include "divide.h"

#include "cuts.h"
#include "pieces.h"
#include "recipe.h"
#include "site.h"

/* Layers of about equal number; for now. */
enum err
divide_task(const struct site *s, const struct training_in *in, struct leader_task *task,
    const struct pieces *pieces, struct why *why)
{
	const struct net_spec *net = &in->recipe->net;
	struct layout *l = &task->layout;
	unsigned replicas = s->replicas ? s->replicas : 1;

	*l = (struct layout){.pipeline = s->pipeline ? s->pipeline : s->ranks / replicas,
	    .replicas = replicas,
	    .ring = net_spec_ties(net) && s->ranks / replicas > 1,
	    .pieces = pieces->parts,
	    .run = pieces_run(pieces)};
	unsigned stages = layout_last(l) + 1;
	for (unsigned i = 1; i <= stages; i++) {
		struct cuts_crossing c;
		l->cut[i] = (uint32_t)(net->layer_count * i / stages);
		if (l->cut[i] <= l->cut[i - 1])
			l->cut[i] = l->cut[i - 1] + 1;
		while (
		    i < stages && l->cut[i] < net->layer_count && cuts_crossed(net, l->cut[i], &c))
			l->cut[i]++;
	}
	l->cut[stages] = (uint32_t)net->layer_count;
	return l->cut[stages - 1] < l->cut[stages]
	    ? ERR_OK
	    : err_set(why, ERR_UNSUPPORTED, "the network has too few layers");
}
