#include <string.h>

#include "clock.h"
#include "job_needs.h"
#include "log.h"
#include "report.h"
#include "rounds_inside.h"
#include "spent.h"
#include "wake.h"

/* The machines of rounds, driven: what happens is told to them here alone, and what they answer is done here. */

/* Lock held. */
static void
start_fold(struct engine *g, struct job *j)
{
	const struct job_facts *facts = job_facts(j);
	const struct round_close close = round_close(&facts->round);
	struct engine_fold f = {.job = j,
	    .spec = &facts->work->spec,
	    .table = &facts->work->table,
	    .cost = facts->work->cost,
	    .row = facts->row};

	memcpy(f.job_id, facts->id, 16);
	memcpy(f.owner, facts->owner, sizeof(f.owner));
	memcpy(f.job_hex, facts->hex, sizeof(f.job_hex));
	f.row.invited = close.invited;
	f.row.aborted = close.aborted;
	f.row.reopened = close.reopened;
	f.bytes_down = facts->bytes_down;
	f.limit = terms_limit(g, j);
	f.stamp = facts->work->stamp;
	f.overrides = facts->work->overrides;
	f.evaluate_deadline_s = facts->work->terms.evaluate_deadline_s;
	f.row.goal = facts->work->terms.round.goal;
	f.quorum = facts->work->terms.round.quorum;
	f.no_numbers = close.no_numbers;
	f.lacks = close.lacks;
	f.schedule = facts->work->schedule;
	f.best = facts->best;
	f.measured = facts->measured;
	job_pace(j)->folds++;
	if (jobs_pace(g)->fold(jobs_pace(g)->folder, &f)) {
		job_pace(j)->folds--;
		rounds_fold_at(g, j, clock_ms() + ENGINE_RETRY_MS); /* no memory */
	}
}

/* Forgets everyone who has not reported: an abandoned round invites anew. */
static void
reopen(struct engine *g, struct job *j)
{
	const struct job_facts *facts = job_facts(j);

	rounds_note_reopened(j);
	if (spent_log(jobs_uses(g).spent, jobs_uses(g).config, facts->owner, 0))
		log_event(LOG_LEVEL_WARN, "round.reopened", LOG_S("job", facts->hex),
		    LOG_U("round", facts->row.round), LOG_U("reports", facts->round.accepted),
		    LOG_U("quorum", facts->round.policy.quorum),
		    LOG_S("why", "too few reports before the deadline"));
	jobs_share_end_all(g, j);
	invites_happens_all(j, ROSTER_REOPEN);
	jobs_counts(g)->rounds_reopened_total++;
	wake_ring(jobs_uses(g).wake);
}

static void
look_at(struct engine *g, uint64_t ms)
{
	if (ms < jobs_pace(g)->look_ms)
		jobs_pace(g)->look_ms = ms;
}

static unsigned
step(struct engine *g, struct job *j, enum round_event event, uint32_t arg)
{
	unsigned actions = round_step(job_round(j), event, arg, clock_ms());

	look_at(g, round_next_ms(&job_facts(j)->round));
	/* While stopping, the folder may be gone: the round is folded after the restart. */
	if ((actions & ROUND_DO_FOLD) && !jobs_pace(g)->stopping)
		start_fold(g, j);
	if (actions & ROUND_DO_REOPEN)
		reopen(g, j);
	return actions;
}

/* What a draw comes to may close the round, but never asks for another draw. */
unsigned
rounds_step(struct engine *g, struct job *j, enum round_event event, uint32_t arg)
{
	unsigned actions = step(g, j, event, arg);

	if (actions & ROUND_DO_DRAW) {
		(void)step(g, j, ROUND_DRAWN, invites_draw(j));
		wake_ring(jobs_uses(g).wake);
	}
	return actions;
}

void
rounds_fold_end(struct engine *g, const struct engine_fold *f)
{
	jobs_lock(g);
	job_pace(f->job)->folds--;
	jobs_shrink(g, f->job);
	jobs_unlock(g);
}

unsigned
rounds_foresee(struct engine *g, const struct job *j, enum round_event event)
{
	jobs_lock(g);
	struct round copy = job_facts(j)->round;
	jobs_unlock(g);
	return round_step(&copy, event, 0, clock_ms());
}

void
rounds_fold_at(struct engine *g, struct job *j, uint64_t ms)
{
	job_pace(j)->fold_retry_ms = ms;
	look_at(g, ms);
}

static void
expire_at(struct engine *g, struct job *j, uint64_t ms)
{
	job_pace(j)->expiry_ms = ms;
	look_at(g, ms);
}

static bool
retry_due(struct job *j, uint64_t now_ms)
{
	if (job_pace(j)->fold_retry_ms == 0 || job_pace(j)->fold_retry_ms > now_ms)
		return false;
	job_pace(j)->fold_retry_ms = 0;
	return job_facts(j)->round.state == ROUND_FOLDING;
}

static void
expire(struct engine *g, struct job *j)
{
	const struct roster_event over = {.kind = ROSTER_EXPIRE};
	uint64_t next = UINT64_MAX;
	uint64_t freed = 0;
	size_t count;
	struct invite *items = invites_items(j, &count);

	for (size_t i = 0; i < count; i++) {
		struct invite *v = &items[i];
		/* The lock is held, and most of them may wait. */
		if (v->place.state != ROSTER_OUT)
			continue;
		if (invites_happens(j, v, &over) & ROSTER_DO_FREE) {
			jobs_share_end(g, j, v);
			rounds_step(g, j, ROUND_EXPIRED, 0);
			freed++;
		} else if (job_facts(j)->round.policy.buffered && v->place.until_ms < next) {
			next = v->place.until_ms;
		}
	}
	expire_at(g, j, next);
	if (freed == 0)
		return;
	log_event(LOG_LEVEL_INFO, "tasks.expired", LOG_S("job", job_facts(j)->hex),
	    LOG_U("tasks", freed));
	wake_ring(jobs_uses(g).wake);
}

/* Lock held. */
static void
look(struct engine *g, uint64_t now)
{
	unsigned seen = 0;

	jobs_pace(g)->look_ms = UINT64_MAX;
	for (struct job *j = jobs_first(g); j && !jobs_pace(g)->stopping;
	     j = jobs_next(g, j, &seen)) {
		if (round_next_ms(&job_facts(j)->round) <= now)
			rounds_step(g, j, ROUND_TICK, 0);
		if (retry_due(j, now))
			start_fold(g, j);
		if (job_pace(j)->expiry_ms <= now)
			expire(g, j);
		look_at(g, job_pace(j)->expiry_ms);
		look_at(g, round_next_ms(&job_facts(j)->round));
		if (job_pace(j)->fold_retry_ms > 0)
			look_at(g, job_pace(j)->fold_retry_ms);
	}
}

void
rounds_tick(struct engine *g)
{
	uint64_t now = clock_ms();

	jobs_lock(g);
	if (jobs_pace(g)->started && !jobs_pace(g)->stopping && jobs_pace(g)->look_ms <= now)
		look(g, now);
	jobs_drop_gone(g);
	bool runs = jobs_pace(g)->started && !jobs_pace(g)->stopping;
	jobs_unlock(g);
	if (runs)
		rounds_look_stuck(g, now);
}

/* --- beginning and end */

void
rounds_begin_open(struct engine *g, struct job *j)
{
	if (job_facts(j)->state == JOB_PAUSED)
		rounds_step(g, j, ROUND_PAUSE, 0);
	rounds_step(g, j, ROUND_BEGIN, job_pace(j)->loaded);
	if (job_pace(j)->early > 0)
		rounds_step(g, j, ROUND_EARLY, job_pace(j)->early);
	if (job_pace(j)->out > 0) {
		rounds_step(g, j, ROUND_OUT, job_pace(j)->out);
		expire_at(g, j, job_pace(j)->expiry_ms);
	}
	job_pace(j)->early = job_pace(j)->out = 0;
}

void
rounds_start(
    struct engine *g, enum err (*fold)(void *folder, const struct engine_fold *f), void *folder)
{
	unsigned seen = 0;

	jobs_lock(g);
	jobs_pace(g)->fold = fold;
	jobs_pace(g)->folder = folder;
	jobs_pace(g)->started = true;
	for (struct job *j = jobs_first(g); j; j = jobs_next(g, j, &seen)) {
		jobs_share_restart(g, j);
		if (job_facts(j)->round.state == ROUND_IDLE)
			rounds_begin_open(g, j);
	}
	jobs_unlock(g);
}

void
rounds_stop(struct engine *g)
{
	jobs_lock(g);
	jobs_pace(g)->stopping = true;
	jobs_unlock(g);
}

void
rounds_retry(struct engine *g)
{
	unsigned seen = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j; j = jobs_next(g, j, &seen))
		if (job_pace(j)->fold_retry_ms > 0)
			rounds_fold_at(g, j, 1);
	jobs_unlock(g);
}

void
rounds_watch_task(struct engine *g, struct job *j, const struct invite *v)
{
	if (job_facts(j)->round.policy.buffered && v->place.until_ms < job_pace(j)->expiry_ms)
		expire_at(g, j, v->place.until_ms);
}
