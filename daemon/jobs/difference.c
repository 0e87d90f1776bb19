#include <string.h>

#include "difference.h"
#include "job_struct.h"
#include "models.h"
#include "services.h"

/* The differences between a job's newest models, which a task may name. */

void
jobs_difference_add(struct job *j, const uint8_t from[32], const uint8_t to[32], uint64_t bytes)
{
	/* After a round on an older base the way begins anew. */
	if (j->work->difference_count > 0 && memcmp(j->work->differences[0].to, from, 32) != 0)
		j->work->difference_count = 0;
	if (j->work->difference_count == ENGINE_DIFFERENCES)
		j->work->difference_count--;
	memmove(j->work->differences + 1, j->work->differences,
	    j->work->difference_count * sizeof(*j->work->differences));
	memcpy(j->work->differences[0].to, to, 32);
	memcpy(j->work->differences[0].from, from, 32);
	j->work->differences[0].bytes = bytes;
	j->work->difference_count++;
}

void
jobs_difference_load(const struct services *s, struct job *j)
{
	struct difference d;
	const uint8_t *to = j->model;

	for (; j->work->difference_count < ENGINE_DIFFERENCES; j->work->difference_count++) {
		struct engine_difference *next = &j->work->differences[j->work->difference_count];
		if (models_difference_head(s->models, to, &d, NULL) ||
		    memcmp(d.job, j->id, sizeof(d.job)) != 0)
			return;
		memcpy(next->to, to, 32);
		memcpy(next->from, d.from, 32);
		next->bytes = DIFFERENCE_HEAD + d.payload_bytes;
		to = next->from;
	}
}

void
jobs_difference_gone(struct engine *g, const uint8_t job[16], const uint8_t model[32])
{
	lock_take(&g->lock);
	struct job *j = jobs_find(g, job);
	for (size_t i = 0; j && j->work && i < j->work->difference_count; i++)
		if (memcmp(j->work->differences[i].to, model, 32) == 0)
			j->work->difference_count = i;
	lock_release(&g->lock);
}
