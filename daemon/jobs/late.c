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
	memmove(j->points + 1, j->points, (most - 1) * sizeof(*j->points));
	j->point_count += j->point_count < most;
	j->points[0] = (struct late_point){.round = j->facts.row.round};
	memcpy(j->points[0].base, j->facts.row.base, 32);
	late_trace(j->points, j->point_count);
}

static enum err
load_point(void *ctx, const struct store_round *r)
{
	struct job *j = ctx;
	struct job_work *w = j->work;

	memmove(j->points + 1, j->points, w->spec.round.max_staleness * sizeof(*j->points));
	j->points[0] = (struct late_point){.round = r->round};
	memcpy(j->points[0].base, r->base, 32);
	memcpy(j->points[0].model, r->model, 32);
	j->point_count += j->point_count <= w->spec.round.max_staleness;
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

static const struct late_point *
find_point(const struct job *j, uint64_t round)
{
	for (size_t i = 0; i < j->point_count; i++)
		if (j->points[i].round == round)
			return &j->points[i];
	return NULL;
}

/* The round that would take a delta now. */
static uint64_t
taker(const struct job *j)
{
	return j->facts.row.round + round_has_closed(&j->facts.round);
}

bool
jobs_late_takes(const struct job *j, uint64_t round)
{
	const struct late_point *p = j->points ? find_point(j, round) : NULL;

	return !job_evaluates(j) && p && p->live &&
	    taker(j) - round <= j->work->spec.round.max_staleness;
}

bool
jobs_late_defers(const struct job *j)
{
	const struct guard_spec *guard = &j->work->spec.guard;

	return guard->on && guard->action == GUARD_DO_ROLLBACK;
}

enum problem_type
jobs_late_judge(const struct job *j, const struct manifest *m, struct why *why)
{
	const struct late_point *p;

	if (m->round > j->facts.row.round || !j->facts.round.policy.late || job_evaluates(j) ||
	    !states_job_lives(j->facts.state)) {
		err_set(why, ERR_STATE, "round %llu; the open round is %llu, the job is %s",
		    (unsigned long long)m->round, (unsigned long long)j->facts.row.round,
		    states_job_name(j->facts.state));
		return PROBLEM_STALE_ROUND;
	}
	p = find_point(j, m->round);
	if (!p || taker(j) - m->round > j->work->spec.round.max_staleness) {
		err_set(why, ERR_STATE, "the task is %llu rounds old, and %u are allowed",
		    (unsigned long long)(taker(j) - m->round), j->work->spec.round.max_staleness);
		return PROBLEM_TOO_STALE;
	}
	if (!p->live) {
		err_set(why, ERR_STATE, "a guard gave up the model that the task started from");
		return PROBLEM_STALE_BASE;
	}
	if (memcmp(m->base, p->base, 32) == 0)
		return PROBLEM_NONE;
	err_set(why, ERR_STATE, "the task's round started from another model");
	return PROBLEM_WRONG_BASE;
}

static bool
is_out(const struct invite *v)
{
	return v->state == INVITE_OUT || v->state == INVITE_COMMITTING;
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
		if (j->invites[i].state == INVITE_OUT && (p = find_point(j, j->invites[i].round)) &&
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
	struct invite *v = roster_hold(j, row->device);
	/* The clock may have been set back meanwhile. */
	const double most = j->work->terms.round.task_timeout_s;
	const double left = fmin(row->at + most - l->now, most);

	if (!v)
		return ERR_NOMEM;
	v->state = INVITE_OUT;
	v->round = row->round;
	v->stored = true;
	v->until_ms = clock_ms() + (left > 0 ? (uint64_t)(left * 1000) : 0);
	j->pace.expiry_ms = v->until_ms < j->pace.expiry_ms ? v->until_ms : j->pace.expiry_ms;
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

/* Buffered jobs whose rule bears hostile devices: who asks, and whose turn is over for now. */

#define HEARD_MS 3600000

static bool
rests(const struct job *j)
{
	return j->facts.round.policy.buffered && j->facts.round.policy.hostile > 0;
}

static void
rest_turn(struct job *j)
{
	const uint64_t now = clock_ms();
	size_t kept = 0;

	if (!rests(j))
		return;
	for (size_t i = 0; i < j->regular_count; i++)
		if (now - j->regulars[i].asked_ms < HEARD_MS)
			j->regulars[kept++] = j->regulars[i];
	j->regular_count = kept;
	j->rest = late_rest(kept, j->facts.round.policy.goal);
}

void
jobs_late_turn(struct job *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->invite_count; i++) {
		struct invite v = j->invites[i];
		v.now = v.next;
		v.next = 0;
		if (is_out(&v) || v.now > 0)
			j->invites[kept++] = v;
	}
	j->invite_count = kept;
	rest_turn(j);
}

/* NULL: no memory; it is then as if the device had never been in a round. */
static struct engine_regular *
hold(struct job *j, const uint8_t device[32])
{
	size_t at = bytes_place(j->regulars, j->regular_count, sizeof(*j->regulars), device, 32);

	if (at < j->regular_count && memcmp(j->regulars[at].device, device, 32) == 0)
		return &j->regulars[at];
	struct engine_regular *items =
	    bytes_grow(j->regulars, j->regular_count, &j->regular_room, sizeof(*items));
	if (!items)
		return NULL;
	j->regulars = items;
	memmove(items + at + 1, items + at, (j->regular_count++ - at) * sizeof(*items));
	items[at] = (struct engine_regular){.folded = 0};
	memcpy(items[at].device, device, 32);
	return &items[at];
}

static enum err
load_regular(void *ctx, const uint8_t device[32], uint64_t round)
{
	struct job *j = ctx;
	struct engine_regular *r = hold(j, device);

	if (!r)
		return ERR_NOMEM;
	r->folded = round;
	r->asked_ms = clock_ms();
	return ERR_OK;
}

enum err
jobs_rest_load(struct store_db *db, struct job *j)
{
	if (!rests(j))
		return ERR_OK;
	enum err e = store_accept_last(db, j->facts.id, load_regular, j);
	rest_turn(j);
	return e;
}

bool
jobs_rest_asks(struct job *j, const uint8_t device[32])
{
	struct engine_regular *r = rests(j) ? hold(j, device) : NULL;

	if (!r)
		return false;
	r->asked_ms = clock_ms();
	return r->folded > 0 && j->facts.row.round <= r->folded + j->rest;
}

void
jobs_rest_taken(struct job *j, const uint8_t device[32], uint64_t folded)
{
	struct engine_regular *r = rests(j) ? hold(j, device) : NULL;

	if (r)
		r->folded = folded;
}
