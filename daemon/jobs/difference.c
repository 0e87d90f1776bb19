#include <string.h>

#include "difference.h"
#include "job_struct.h"
#include "models.h"
#include "services.h"

/* The differences between a job's newest models, which a task may name. */

void
engine_steps_add(struct engine_job *j, const uint8_t from[32], const uint8_t to[32], uint64_t bytes)
{
	/* After a round on an older base the way begins anew. */
	if (j->work->step_count > 0 && memcmp(j->work->steps[0].to, from, 32) != 0)
		j->work->step_count = 0;
	if (j->work->step_count == ENGINE_STEPS)
		j->work->step_count--;
	memmove(j->work->steps + 1, j->work->steps, j->work->step_count * sizeof(*j->work->steps));
	memcpy(j->work->steps[0].to, to, 32);
	memcpy(j->work->steps[0].from, from, 32);
	j->work->steps[0].bytes = bytes;
	j->work->step_count++;
}

void
engine_steps_load(const struct services *s, struct engine_job *j)
{
	struct difference d;
	const uint8_t *to = j->model;

	for (; j->work->step_count < ENGINE_STEPS; j->work->step_count++) {
		struct engine_step *step = &j->work->steps[j->work->step_count];
		if (models_difference_head(s->models, to, &d, NULL) ||
		    memcmp(d.job, j->id, sizeof(d.job)) != 0)
			return;
		memcpy(step->to, to, 32);
		memcpy(step->from, d.from, 32);
		step->bytes = DIFFERENCE_HEAD + d.payload_bytes;
		to = step->from;
	}
}

void
engine_steps_gone(struct engine *g, const uint8_t job[16], const uint8_t model[32])
{
	lock_take(&g->lock);
	struct engine_job *j = engine_find(g, job);
	for (size_t i = 0; j && j->work && i < j->work->step_count; i++)
		if (memcmp(j->work->steps[i].to, model, 32) == 0)
			j->work->step_count = i;
	lock_release(&g->lock);
}
