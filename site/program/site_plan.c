#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "divide.h"
#include "job.h"
#include "local_world.h"
#include "pieces.h"
#include "preset.h"
#include "site.h"
#include "training.h"

#define MIB 1048576.0
/* How many whole steps' examples a device is thought to have. */
#define STEPS 64

/* --- what is printed */

static void
print_stage(const struct divided *d, unsigned stage)
{
	const struct layout *l = &d->best.layout;
	const struct partition_stage *s = &d->best.stages[stage];
	char ranks[64] = "", layers[32];
	size_t at = 0;

	for (unsigned q = 0; q < l->replicas && at < sizeof(ranks) - 8; q++)
		at += (size_t)snprintf(ranks + at, sizeof(ranks) - at, "%s%u", q > 0 ? "," : "",
		    layout_rank(l, q, stage));
	snprintf(layers, sizeof(layers), "%u-%u", l->cut[stage], l->cut[stage + 1] - 1);
	printf("%5u  %-8s %-10s", stage, ranks, layers);
	/* A ring's last stage is in the figure of its rank's first one. */
	if (l->ring && stage == layout_last(l))
		printf(" %9s", "");
	else
		printf(" %9.1f", (double)d->bytes[layout_rank(l, 0, stage)] / MIB);
	printf(" %9" PRIu32 " %10.2f %9.2f\n", s->contexts, s->compute_s * 1e3, s->link_s * 1e3);
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

static void
print_plan(const struct divided *d, const struct leader_task *task)
{
	const struct partition *p = &d->best;
	const struct layout *l = &p->layout;
	double examples = (double)l->pieces * task->whole.max_batch;

	printf("%u of %u ranks: %u stages%s x %u replicas, %u threads each\n", layout_ranks(l),
	    d->measured.ranks, layout_last(l) + 1, l->ring ? " in a ring" : "", l->replicas,
	    task->threads);
	printf("stage  %-8s %-10s %9s %9s %10s %9s\n", "rank", "layers", "MiB", "in flight",
	    "computing", "link ms");
	for (unsigned s = 0; s <= layout_last(l); s++)
		print_stage(d, s);
	printf("a step of %u pieces of %u examples: %.1f ms, %.1f samples/s, bubble %.0f %%%s\n",
	    l->pieces, task->whole.max_batch, p->step_s * 1e3, examples / p->step_s,
	    p->bubble * 100, p->link_bound ? ", link bound" : "");
	printf("bits: %s\n", bits_of(task->recipe));
}

/* --- what is planned */

static enum err
plan_in(const struct site *s, struct world *world, const struct training_in *in, struct why *why)
{
	struct pieces pieces = {.parts = 1, .groups = 1};
	struct leader_task task = site_task(s, in, &pieces);
	struct divided divided = {.best = {.step_s = 0}};
	enum err e = divide_task(s, world, &task, &pieces, &divided, why);

	if (!e)
		print_plan(&divided, &task);
	divide_deinit(&divided);
	return e;
}

/* A device with so many examples that every step is whole. */
static enum err
plan_job(const struct site *s, const struct job_spec *job, struct why *why)
{
	static const uint8_t device[32];
	const struct local_spec *local = &job->recipe.local;
	uint64_t step = training_step(local, UINT32_MAX);
	const struct dataset none = {.count = 0};
	const struct dataset train = {.count = local->batch > 0 ? (size_t)step * STEPS : 1024,
	    .classes = job->recipe.data.class_count};
	const struct training_in in = {.recipe = &job->recipe,
	    .kind = TASK_TRAIN,
	    .seed = job->seed,
	    .round = 1,
	    .device = device,
	    .train = &train,
	    .validation = &none};
	struct local_world *local_world = NULL;
	enum err e = site_suits(&in, why);

	if (!e && !s->world)
		e = local_world_new(&local_world, s->ranks, why);
	if (!e)
		e = plan_in(s, s->world ? s->world : local_world_leader(local_world), &in, why);
	local_world_free(local_world);
	return e;
}

enum err
site_show_plan(const struct site *site, const char *path, struct why *why)
{
	struct job_spec job;
	char *text = NULL;
	size_t len = 0;
	enum err e = preset_read(path, NULL, &text, &len, why);

	if (!e)
		e = job_parse(&job, text, len, why);
	free(text);
	if (e)
		return e;
	e = plan_job(site, &job, why);
	job_deinit(&job);
	return e;
}
