#include <string.h>

#include "difference.h"
#include "job_facts.h"
#include "models.h"

/* The differences between a job's newest models, which a task may name. */

void
jobs_difference_add(struct job *j, const uint8_t from[32], const uint8_t to[32], uint64_t bytes)
{
	struct engine_differences *w = job_differences(j);

	/* After a round on an older base the way begins anew. */
	if (w->count > 0 && memcmp(w->items[0].to, from, 32) != 0)
		w->count = 0;
	if (w->count == ENGINE_DIFFERENCES)
		w->count--;
	memmove(w->items + 1, w->items, w->count * sizeof(*w->items));
	memcpy(w->items[0].to, to, 32);
	memcpy(w->items[0].from, from, 32);
	w->items[0].bytes = bytes;
	w->count++;
}

void
jobs_difference_load(struct models *models, struct job *j)
{
	struct difference d;
	struct engine_differences *w = job_differences(j);
	const uint8_t *to = job_facts(j)->model;

	for (; w->count < ENGINE_DIFFERENCES; w->count++) {
		struct engine_difference *next = &w->items[w->count];
		if (models_difference_head(models, to, &d, NULL) ||
		    memcmp(d.job, job_facts(j)->id, sizeof(d.job)) != 0)
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
	jobs_lock(g);
	struct job *j = jobs_find(g, job);
	struct engine_differences *w = j ? job_differences(j) : NULL;
	for (size_t i = 0; w && i < w->count; i++)
		if (memcmp(w->items[i].to, model, 32) == 0)
			w->count = i;
	jobs_unlock(g);
}
