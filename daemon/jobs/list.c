#include <stdlib.h>
#include <string.h>

#include "jobs_inside.h"
#include "services.h"

/* The jobs as a set: found, in order, walked through, added, taken away. */

static void
unchain(struct engine *g, const struct job *j)
{
	struct job **at = &g->buckets[j->facts.id[0]];

	while (*at != j)
		at = &(*at)->chain;
	*at = j->chain;
}

void
jobs_drop_gone(struct engine *g)
{
	struct job **at = &g->jobs;

	if (g->gone_count == 0)
		return;
	jobs_change_settle(g);
	g->last = NULL;
	while (*at) {
		struct job *j = *at;
		if (!j->facts.gone || j->users > 0 || j->pace.folds > 0 || jobs_names_state(j)) {
			g->last = j;
			at = &j->next;
			continue;
		}
		*at = j->next;
		unchain(g, j);
		g->job_count--;
		g->gone_count--;
		j->set = NULL;
		job_free(j);
	}
}

struct job *
jobs_find(const struct engine *g, const uint8_t id[16])
{
	for (struct job *j = g->buckets[id[0]]; j; j = j->chain)
		if (memcmp(j->facts.id, id, 16) == 0 && !j->facts.gone)
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

	j->set = g;
	/* Mostly the last: its priority is that of the others. */
	if (g->last && g->last->facts.priority >= j->facts.priority)
		at = &g->last->next;
	while (*at && (*at)->facts.priority >= j->facts.priority)
		at = &(*at)->next;
	change_facts(j)->serial = ++g->serial;
	if (states_job_lives(j->facts.state))
		change_facts(j)->place = device_status_open(jobs_uses(g).registry);
	j->next = *at;
	*at = j;
	if (!j->next)
		g->last = j;
	j->chain = g->buckets[j->facts.id[0]];
	g->buckets[j->facts.id[0]] = j;
	g->job_count++;
	if (states_job_lives(j->facts.state))
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
		j->set = NULL;
		job_free(j);
	}
	lock_deinit(&g->lock);
	tails_deinit(&g->tails);
	hash_wipe(g->task_key, sizeof(g->task_key));
	free(g);
}

/* --- the lock, and what is kept for all jobs */

void
jobs_lock(struct engine *g)
{
	lock_take(&g->lock);
}

void
jobs_unlock(struct engine *g)
{
	jobs_change_settle(g);
	lock_release(&g->lock);
}

struct job *
jobs_first(const struct engine *g)
{
	return g->jobs;
}

struct job *
jobs_after(const struct job *j)
{
	return j->next;
}

size_t
jobs_count(const struct engine *g)
{
	return g->job_count;
}

struct engine_uses
jobs_uses(const struct engine *g)
{
	const struct services *s = g->services;

	return (struct engine_uses){.config = s->config,
	    .fixed = s->fixed,
	    .store = s->store,
	    .registry = s->registry,
	    .models = s->models,
	    .spool = s->spool,
	    .archive = s->archive,
	    .age = s->age,
	    .spent = s->spent,
	    .health = s->health,
	    .budget = s->budget,
	    .sets = s->sets,
	    .stop = s->stop,
	    .wake = &s->wake};
}

struct registry *
jobs_registry(const struct engine *g)
{
	return g->services->registry;
}

struct worker_pool *
jobs_pool(const struct engine *g)
{
	return g->services->pool;
}

const struct services *
jobs_services(const struct engine *g)
{
	return g->services;
}

struct engine_report *
jobs_counts(struct engine *g)
{
	return &g->report;
}

struct tails *
jobs_tails(struct engine *g)
{
	return &g->tails;
}

struct engine_reservation **
jobs_reserved(struct engine *g)
{
	return &g->reserved;
}

struct engine_pace *
jobs_pace(struct engine *g)
{
	return &g->pace;
}

/* --- who has a job */

void
jobs_leave(struct job *j)
{
	j->users--;
}

void
jobs_set_deleting(struct job *j, bool deleting)
{
	j->deleting = deleting;
}

bool
jobs_is_deleting(const struct job *j)
{
	return j->deleting;
}

void
jobs_forget(struct engine *g, struct job *j)
{
	g->report.jobs[j->facts.state]--;
	change_facts(j)->gone = true;
	g->gone_count++;
	memset(change_facts(j)->row.base, 0, sizeof(j->facts.row.base));
	memset(change_facts(j)->model, 0, sizeof(j->facts.model));
}

void
jobs_report(struct engine *g, struct engine_report *out)
{
	lock_take(&g->lock);
	*out = g->report;
	out->readers = g->changes.reader_count;
	out->readers_refused_total = g->changes.refused_total;
	lock_report(&g->lock, &out->lock);
	lock_release(&g->lock);
}
