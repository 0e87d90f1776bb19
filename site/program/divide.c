#include "divide.h"

#include "pieces.h"
#include "plan_site.h"
#include "recipe.h"
#include "site.h"

/* How many the plan may take. */
static unsigned
ranks_of(const struct site *s, unsigned ranks, uint32_t groups)
{
	unsigned replicas = s->replicas > 0 ? s->replicas : groups > 1 ? ranks : 1;
	unsigned most = s->pipeline > 0 ? s->pipeline * replicas : ranks;

	return most < ranks ? most : ranks;
}

static enum err
plan(const struct site *s, struct world *world, struct leader_task *task,
    const struct pieces *pieces, struct divided *out, struct why *why)
{
	bool trains = task->whole.train;
	/* With few examples even steps that the job divides are one piece each, for one rank, whatever the owner fixed. */
	bool single = trains && pieces->parts == 1;
	const struct plan_site_want want = {.task = task,
	    .how = trains ? &task->how : NULL,
	    .measured = &out->measured,
	    .pieces = trains ? pieces->parts : LOOKS,
	    /* Batches of an evaluation are in nobody's order. */
	    .groups = trains ? pieces->groups : LOOKS,
	    .pipeline = single ? 0 : s->pipeline,
	    .replicas = single ? 0 : s->replicas};
	const struct measures_want measured = {.recipe = task->recipe,
	    .whole = &task->whole,
	    .threads = task->threads,
	    .processes = s->world != NULL,
	    .ranks = ranks_of(s, courier_ranks(world->courier), want.groups)};
	enum err e = measures_take(&out->measured, world, &measured, why);

	if (!e)
		e = plan_site(&out->best, &want, why);
	for (unsigned r = 0; !e && r < layout_ranks(&out->best.layout); r++)
		e = plan_site_bytes(&out->bytes[r], &want, &out->best.layout, r, why);
	return e;
}

enum err
divide_task(const struct site *s, struct world *world, struct leader_task *task,
    const struct pieces *pieces, struct divided *out, struct why *why)
{
	*out = (struct divided){.ranks = courier_ranks(world->courier)};
	enum err e = plan(s, world, task, pieces, out, why);

	task->layout = out->best.layout;
	return e;
}

void
divide_deinit(struct divided *d)
{
	measures_deinit(&d->measured);
}
