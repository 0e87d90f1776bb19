#include <stdlib.h>
#include <string.h>

#include "job_struct.h"

/* The jobs as a set: found, in order, walked through, added, taken away. */

static void
unchain(struct engine *g, const struct job *j)
{
	struct job **at = &g->buckets[j->id[0]];

	while (*at != j)
		at = &(*at)->chain;
	*at = j->chain;
}

void
jobs_drop_gone(struct engine *g)
{
	struct job **at = &g->jobs;

	g->last = NULL;
	while (*at) {
		struct job *j = *at;
		if (!j->gone || j->users > 0 || j->folds > 0 || jobs_names_state(j)) {
			g->last = j;
			at = &j->next;
			continue;
		}
		*at = j->next;
		unchain(g, j);
		g->job_count--;
		g->gone_count--;
		job_free(j);
	}
}

struct job *
jobs_find(const struct engine *g, const uint8_t id[16])
{
	for (struct job *j = g->buckets[id[0]]; j; j = j->chain)
		if (memcmp(j->id, id, 16) == 0 && !j->gone)
			return j;
	return NULL;
}

struct job *
jobs_next(struct engine *g, struct job *j, unsigned *seen)
{
	if (++*seen % 8 == 0) {
		j->users++;
		lock_give_way(&g->lock);
		j->users--;
	}
	return j->next;
}

void
jobs_link(struct engine *g, struct job *j)
{
	struct job **at = &g->jobs;

	/* Mostly the last: its priority is that of the others. */
	if (g->last && g->last->priority >= j->priority)
		at = &g->last->next;
	while (*at && (*at)->priority >= j->priority)
		at = &(*at)->next;
	j->serial = ++g->serial;
	if (states_job_lives(j->state))
		j->place = standing_open(g->services->registry);
	j->next = *at;
	*at = j;
	if (!j->next)
		g->last = j;
	j->chain = g->buckets[j->id[0]];
	g->buckets[j->id[0]] = j;
	g->job_count++;
	if (states_job_lives(j->state))
		jobs_share_join(g, j);
}

void
jobs_free(struct engine *g)
{
	if (!g)
		return;
	while (g->jobs) {
		struct job *j = g->jobs;
		g->jobs = j->next;
		job_free(j);
	}
	lock_deinit(&g->lock);
	tails_deinit(&g->tails);
	hash_wipe(g->task_key, sizeof(g->task_key));
	free(g);
}
