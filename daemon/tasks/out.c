#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "hex.h"
#include "store.h"
#include "tasks_inside.h"

/* Tasks of buffered jobs that are out: their rows. */

bool
tasks_out_missing(
    struct engine *g, const uint8_t device[32], const struct task *task, struct store_out *out)
{
	*out = (struct store_out){.round = task->round, .at = age_latest(jobs_uses(g).age)};
	if (task->wait || !hex_decode(out->job, sizeof(out->job), task->job, strlen(task->job)))
		return false;
	memcpy(out->device, device, sizeof(out->device));
	jobs_lock(g);
	const struct job *j = jobs_find(g, out->job);
	const struct invite *v = j && job_facts(j)->work && job_facts(j)->round.policy.buffered
	    ? invites_find(j, device)
	    : NULL;
	bool missing =
	    v && v->place.state == ROSTER_OUT && v->place.round == task->round && !v->stored;
	jobs_unlock(g);
	return missing;
}

void
tasks_out_stored(struct engine *g, const struct store_out *row)
{
	jobs_lock(g);
	const struct job *j = jobs_find(g, row->job);
	struct invite *v = j ? invites_find(j, row->device) : NULL;
	if (v && v->place.round == row->round) {
		v->stored = true;
		/* Given back while the row was on its way. */
		if (v->place.state == ROSTER_ABORTED || v->place.state == ROSTER_STOPPED)
			tasks_returned(g, j, v);
	}
	jobs_unlock(g);
}

static enum err
drop_out(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_out_drop(db, arg);
}

/* If that is lost, its place is free when its time is over. */
static void
out_dropped(void *arg, enum err e, const struct why *why)
{
	(void)e;
	(void)why;
	free(arg);
}

void
tasks_returned(struct engine *g, const struct job *j, struct invite *v)
{
	struct store_out *row = v->stored ? calloc(1, sizeof(*row)) : NULL;

	v->stored = false;
	if (!row)
		return;
	row->round = v->place.round;
	memcpy(row->job, job_facts(j)->id, sizeof(row->job));
	memcpy(row->device, v->device, sizeof(row->device));
	if (store_submit(jobs_uses(g).store, drop_out, out_dropped, row))
		free(row);
}
