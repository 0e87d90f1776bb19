#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "hex.h"
#include "metrics_inside.h"
#include "services.h"

static void
copy_open(struct metrics_job *out, const struct job_view *j)
{
	const struct open_view *o = &j->open;

	out->reports = out->goal = out->quorum = out->invited = out->reopened = NAN;
	out->opened_at = out->deadline_at = NAN;
	if (!j->is_open)
		return;
	out->reports = o->reports;
	out->goal = o->goal;
	out->quorum = o->quorum;
	out->invited = o->invited;
	out->reopened = o->reopened;
	out->opened_at = o->opened_at_seconds;
	out->deadline_at = clock_wall() + o->deadline_seconds;
}

static void
copy_job(struct metrics_job *out, const struct job_view *j)
{
	*out = (struct metrics_job){.rank = states_job_over(j->state) ? JOB_DONE : j->state,
	    .state = j->state,
	    .ended_at = j->ended_at_seconds,
	    .round = j->round,
	    .rounds_committed = j->rounds_committed,
	    .loss = j->metric.known ? j->metric.loss : NAN,
	    .accuracy = j->metric.known ? j->metric.accuracy : NAN,
	    .metric_round = j->metric.known ? (double)j->metric_round : NAN,
	    .stuck = j->stuck.kind != STUCK_NONE && j->stuck.kind != STUCK_PAUSED,
	    .stuck_since = NAN};
	if (out->stuck)
		out->stuck_since = j->stuck_since;
	hex_encode(out->id, j->id, sizeof(j->id));
	memcpy(out->name, j->name, sizeof(j->name));
	copy_open(out, j);
}

/* Does a stand before b? */
static bool
before(const struct metrics_job *a, const struct metrics_job *b)
{
	return a->rank != b->rank ? a->rank < b->rank
				  : a->rank == JOB_DONE && a->ended_at > b->ended_at;
}

/* Into its place among the first METRICS_JOBS. */
static void
insert(struct metrics_view *v, const struct metrics_job *j)
{
	size_t i = v->job_count;

	while (i > 0 && before(j, &v->jobs[i - 1]))
		i--;
	v->jobs_omitted += v->job_count == METRICS_JOBS;
	if (i == METRICS_JOBS)
		return;
	v->job_count += v->job_count < METRICS_JOBS;
	memmove(&v->jobs[i + 1], &v->jobs[i], (v->job_count - 1 - i) * sizeof(*j));
	v->jobs[i] = *j;
}

void
metrics_view_job(struct metrics_view *v, const struct job_view *job)
{
	struct metrics_job j;

	copy_job(&j, job);
	insert(v, &j);
}

enum err
metrics_view_jobs(struct metrics_view *v, const struct services *s)
{
	struct engine_slice *slice = calloc(1, sizeof(*slice));

	if (!slice)
		return ERR_NOMEM;
	slice->ended_after = clock_wall() - METRICS_ENDED_S;
	while (engine_jobs(s->engine, slice))
		for (size_t i = 0; i < slice->count; i++)
			metrics_view_job(v, &slice->jobs[i]);
	free(slice);
	return ERR_OK;
}
