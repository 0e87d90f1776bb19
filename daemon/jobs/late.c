#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "bytes.h"
#include "clock.h"
#include "jobs_inside.h"
#include "manifest.h"
#include "store.h"

/* Deltas whose task's round is not the one that takes them, and tasks that outlive their round. */

enum err
jobs_late_init(struct job *j)
{
	const uint32_t oldest = j->work->spec.round.max_staleness;

	if (!j->facts.round.policy.late)
		return ERR_OK;
	j->points = calloc(oldest + 1, sizeof(*j->points));
	return j->points ? ERR_OK : ERR_NOMEM;
}

void
jobs_late_open(struct job *j, const uint8_t *ended)
{
	struct job_work *w = j->work;
	const size_t most = w->spec.round.max_staleness + 1;

	if (!j->points)
		return;
	if (ended)
		memcpy(j->points[0].model, ended, 32);
	late_open(j->points, &j->point_count, most, j->facts.row.round, j->facts.row.base);
}

static enum err
load_point(void *ctx, const struct store_round *r)
{
	struct job *j = ctx;
	const size_t most = j->work->spec.round.max_staleness + (size_t)1;

	late_open(j->points, &j->point_count, most, r->round, r->base);
	memcpy(j->points[0].model, r->model, 32);
	return ERR_OK;
}

enum err
jobs_late_load(struct store_db *db, struct job *j)
{
	const uint64_t oldest = j->work->spec.round.max_staleness;
	const uint64_t from = j->facts.row.round > oldest ? j->facts.row.round - oldest : 1;

	if (!j->points)
		return ERR_OK;
	enum err e = store_round_each(db, j->facts.id, from, oldest + 1, load_point, j);
	late_trace(j->points, j->point_count);
	return e;
}

bool
jobs_late_reads(const struct job *j, const uint8_t model[32])
{
	for (size_t i = 0; j->work && i < j->point_count; i++)
		if (memcmp(j->points[i].base, model, 32) == 0)
			return true;
	return false;
}

/* By devices: whichever of its bases comes to be measured may be the best. */
static bool
measures(const struct job *j)
{
	const struct job_spec *spec = &j->work->spec;

	return j->facts.round.policy.buffered &&
	    job_measures_base(spec, spec->monitor.metric == MONITOR_OWN);
}

bool
jobs_late_holds(const struct job *j, const uint8_t model[32])
{
	const struct late_point *p;

	if (!jobs_late_reads(j, model) || !states_job_lives(j->facts.state))
		return false;
	if (measures(j))
		return true;
	for (size_t i = 0; i < j->invite_count; i++)
		if (j->invites[i].place.state == ROSTER_OUT &&
		    (p = late_find(j->points, j->point_count, j->invites[i].place.round)) &&
		    memcmp(p->base, model, 32) == 0)
			return true;
	return false;
}

/* --- tasks that outlive their round */

/* Tasks that are out, and the time; NaN: the clock is doubted, and none of them is over. */
struct out_load {
	struct job *job;
	double now;
};

static enum err
load_out(void *ctx, const struct store_out *row)
{
	const struct out_load *l = ctx;
	struct job *j = l->job;
	struct invite *v = invites_hold(j, row->device);
	/* The clock may have been set back meanwhile. */
	const double most = j->work->terms.round.task_timeout_s;
	const double left = fmin(row->at + most - l->now, most);

	if (!v)
		return ERR_NOMEM;
	const struct roster_event found = {.kind = ROSTER_FOUND_OUT,
	    .round = row->round,
	    .until_ms = clock_ms() + (left > 0 ? (uint64_t)(left * 1000) : 0)};
	(void)invites_happens(j, v, &found);
	v->stored = true;
	j->pace.expiry_ms = found.until_ms < j->pace.expiry_ms ? found.until_ms : j->pace.expiry_ms;
	j->pace.out++;
	return ERR_OK;
}

enum err
jobs_late_load_out(const struct engine *g, struct store_db *db, struct job *j)
{
	struct out_load l = {j, age_stamp(jobs_uses(g).age)};
	struct store_out after = {
	    .at = isnan(l.now) ? 0 : l.now - j->work->terms.round.task_timeout_s};

	if (j->work->spec.round.mode != ROUND_MODE_BUFFERED || job_evaluates(j))
		return ERR_OK;
	memcpy(after.job, j->facts.id, sizeof(after.job));
	return store_out_unanswered(db, &after, load_out, &l);
}

/* --- whose turn is over */

struct rest_load {
	struct job *job;
	uint64_t devices;
};

static enum err
load_folded(void *ctx, const uint8_t device[32], uint64_t round)
{
	struct rest_load *l = ctx;
	struct invite *v = invites_hold(l->job, device);

	if (!v)
		return ERR_NOMEM;
	(void)invites_happens(
	    l->job, v, &(struct roster_event){.kind = ROSTER_FOUND_FOLDED, .folded = round});
	l->devices++;
	return ERR_OK;
}

enum err
jobs_rest_load(struct store_db *db, struct job *j)
{
	struct rest_load l = {.job = j};

	if (!roster_rests(&j->facts.round))
		return ERR_OK;
	enum err e = store_accept_last(db, j->facts.id, load_folded, &l);
	j->rest = late_rest(l.devices, j->facts.round.policy.goal);
	return e;
}
