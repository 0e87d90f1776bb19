#include <inttypes.h>
#include <stdio.h>

#include "divide.h"
#include "recipe.h"

#define MIB 1048576.0

static void
print_stage(FILE *to, const struct divided *d, unsigned stage)
{
	const struct layout *l = &d->best.layout;
	const struct partition_stage *s = &d->best.stages[stage];
	char ranks[64] = "", layers[32];
	size_t at = 0;

	for (unsigned q = 0; q < l->replicas && at < sizeof(ranks) - 8; q++)
		at += (size_t)snprintf(ranks + at, sizeof(ranks) - at, "%s%u", q > 0 ? "," : "",
		    layout_rank(l, q, stage));
	snprintf(layers, sizeof(layers), "%u-%u", l->cut[stage], l->cut[stage + 1] - 1);
	fprintf(to, "%5u  %-8s %-10s", stage, ranks, layers);
	/* A ring's last stage is in the figure of its rank's first one. */
	if (l->ring && stage == layout_last(l))
		fprintf(to, " %9s", "");
	else
		fprintf(to, " %9.1f", (double)d->bytes[layout_rank(l, 0, stage)] / MIB);
	fprintf(
	    to, " %9" PRIu32 " %10.2f %9.2f\n", s->contexts, s->compute_s * 1e3, s->link_s * 1e3);
}

static const char *
bits_of(const struct recipe *r)
{
	switch (r->net.arithmetic) {
	case ARITHMETIC_EXACT:
		return "those of one device, on every CPU";
	case ARITHMETIC_FAST:
		return "those of one device with CPUs of one kind, as these are";
	case ARITHMETIC_DEFAULT:
		break;
	}
	return net_spec_modern(&r->net)
	    ? "those of one device, on every CPU"
	    : "those of one device; of large products with CPUs of one kind, as these are";
}

void
divide_print(FILE *to, const struct divided *d, const struct leader_task *task)
{
	const struct partition *p = &d->best;
	const struct layout *l = &p->layout;
	double examples = (double)l->pieces * task->whole.max_batch;

	fprintf(to, "%u of %u ranks: %u stages%s x %u replicas, %u threads each\n", layout_ranks(l),
	    d->ranks, layout_last(l) + 1, l->ring ? " in a ring" : "", l->replicas, task->threads);
	fprintf(to, "stage  %-8s %-10s %9s %9s %10s %9s\n", "rank", "layers", "MiB", "in flight",
	    "computing", "link ms");
	for (unsigned s = 0; s <= layout_last(l); s++)
		print_stage(to, d, s);
	fprintf(to,
	    "a step of %u pieces of %u examples: %.1f ms, %.1f samples/s, bubble %.0f %%%s\n",
	    l->pieces, task->whole.max_batch, p->step_s * 1e3, examples / p->step_s,
	    p->bubble * 100, p->link_bound ? ", link bound" : "");
	fprintf(to, "bits: %s\n", bits_of(task->recipe));
}
