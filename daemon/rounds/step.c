#include <string.h>

#include "clock.h"
#include "log.h"
#include "rounds_inside.h"
#include "spent.h"
#include "wake.h"

/* The machines of rounds, driven: what happens is told to them here alone, and what they answer is done here. */

/* Lock held. */
static void
start_fold(struct engine *g, struct job *j)
{
	const struct round_close close = round_close(&j->round);
	struct engine_fold f = {.job = j,
	    .spec = &j->work->spec,
	    .table = &j->work->table,
	    .cost = j->work->cost,
	    .row = j->row};

	memcpy(f.job_id, j->id, 16);
	memcpy(f.owner, j->owner, sizeof(f.owner));
	memcpy(f.job_hex, j->hex, sizeof(f.job_hex));
	f.row.invited = close.invited;
	f.row.aborted = close.aborted;
	f.row.reopened = close.reopened;
	f.bytes_down = j->bytes_down;
	f.limit = terms_limit(g, j);
	f.stamp = j->work->stamp;
	f.overrides = j->work->overrides;
	f.evaluate_deadline_s = j->work->terms.evaluate_deadline_s;
	f.row.goal = j->work->terms.round.goal;
	f.quorum = j->work->terms.round.quorum;
	f.no_numbers = close.no_numbers;
	f.lacks = close.lacks;
	f.schedule = j->work->schedule;
	f.best = j->best;
	f.measured = j->measured;
	j->folds++;
	if (g->fold(g->folder, &f)) {
		j->folds--;
		rounds_fold_at(g, j, clock_ms() + ENGINE_RETRY_MS); /* no memory */
	}
}

/* Forgets everyone who has not reported: an abandoned round invites anew. */
static void
reopen(struct engine *g, struct job *j)
{
	size_t kept = 0;

	rounds_note_reopened(j);
	if (spent_log(g->services, j->owner, 0))
		log_event(LOG_LEVEL_WARN, "round.reopened", LOG_S("job", j->hex),
		    LOG_U("round", j->row.round), LOG_U("reports", j->round.accepted),
		    LOG_U("quorum", j->round.policy.quorum),
		    LOG_S("why", "too few reports before the deadline"));
	jobs_share_end_all(g, j);
	for (size_t i = 0; i < j->invite_count; i++)
		if (j->invites[i].state == INVITE_ACCEPTED)
			j->invites[kept++] = j->invites[i];
	j->invite_count = kept;
	j->candidate_count = 0;
	g->report.rounds_reopened_total++;
	wake_ring(&g->services->wake);
}

static void
look_at(struct engine *g, uint64_t ms)
{
	if (ms < g->look_ms)
		g->look_ms = ms;
}

static unsigned
step(struct engine *g, struct job *j, enum round_event event, uint32_t arg)
{
	unsigned actions = round_step(&j->round, event, arg, clock_ms());

	look_at(g, round_next_ms(&j->round));
	/* While stopping, the folder may be gone: the round is folded after the restart. */
	if ((actions & ROUND_DO_FOLD) && !g->stopping)
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
		(void)step(g, j, ROUND_DRAWN, roster_draw(j));
		wake_ring(&g->services->wake);
	}
	return actions;
}

void
rounds_fold_end(struct engine *g, const struct engine_fold *f)
{
	lock_take(&g->lock);
	f->job->folds--;
	jobs_shrink(g, f->job);
	lock_release(&g->lock);
}

unsigned
rounds_foresee(struct engine *g, const struct job *j, enum round_event event)
{
	lock_take(&g->lock);
	struct round copy = j->round;
	lock_release(&g->lock);
	return round_step(&copy, event, 0, clock_ms());
}

void
rounds_fold_at(struct engine *g, struct job *j, uint64_t ms)
{
	j->fold_retry_ms = ms;
	look_at(g, ms);
}

static void
expire_at(struct engine *g, struct job *j, uint64_t ms)
{
	j->expiry_ms = ms;
	look_at(g, ms);
}

static bool
retry_due(struct job *j, uint64_t now_ms)
{
	if (j->fold_retry_ms == 0 || j->fold_retry_ms > now_ms)
		return false;
	j->fold_retry_ms = 0;
	return j->round.state == ROUND_FOLDING;
}

static void
expire(struct engine *g, struct job *j, uint64_t now_ms)
{
	uint64_t next = UINT64_MAX;
	uint64_t freed = 0;

	for (size_t i = 0; i < j->invite_count; i++) {
		struct invite *v = &j->invites[i];
		if (v->state != INVITE_OUT)
			continue;
		if (v->until_ms > now_ms) {
			next = v->until_ms < next ? v->until_ms : next;
			continue;
		}
		v->state = INVITE_EXPIRED;
		jobs_share_end(g, j, v);
		rounds_step(g, j, ROUND_EXPIRED, 0);
		freed++;
	}
	expire_at(g, j, next);
	if (freed == 0)
		return;
	log_event(LOG_LEVEL_INFO, "tasks.expired", LOG_S("job", j->hex), LOG_U("tasks", freed));
	wake_ring(&g->services->wake);
}

/* Lock held. */
static void
look(struct engine *g, uint64_t now)
{
	unsigned seen = 0;

	g->look_ms = UINT64_MAX;
	for (struct job *j = g->jobs; j && !g->stopping; j = jobs_next(g, j, &seen)) {
		if (round_next_ms(&j->round) <= now)
			rounds_step(g, j, ROUND_TICK, 0);
		if (retry_due(j, now))
			start_fold(g, j);
		if (j->expiry_ms <= now)
			expire(g, j, now);
		look_at(g, j->expiry_ms);
		look_at(g, round_next_ms(&j->round));
		if (j->fold_retry_ms > 0)
			look_at(g, j->fold_retry_ms);
	}
}

void
rounds_tick(struct engine *g)
{
	uint64_t now = clock_ms();

	lock_take(&g->lock);
	if (g->started && !g->stopping && g->look_ms <= now)
		look(g, now);
	if (g->gone_count > 0)
		jobs_drop_gone(g);
	bool runs = g->started && !g->stopping;
	lock_release(&g->lock);
	if (runs)
		rounds_look_stuck(g, now);
}

/* --- beginning and end */

void
rounds_begin_open(struct engine *g, struct job *j)
{
	if (j->state == JOB_PAUSED)
		rounds_step(g, j, ROUND_PAUSE, 0);
	rounds_step(g, j, ROUND_BEGIN, j->loaded);
	if (j->early > 0)
		rounds_step(g, j, ROUND_EARLY, j->early);
	if (j->out > 0) {
		rounds_step(g, j, ROUND_OUT, j->out);
		expire_at(g, j, j->expiry_ms);
	}
	j->early = j->out = 0;
}

void
rounds_start(
    struct engine *g, enum err (*fold)(void *folder, const struct engine_fold *f), void *folder)
{
	unsigned seen = 0;

	lock_take(&g->lock);
	g->fold = fold;
	g->folder = folder;
	g->started = true;
	for (struct job *j = g->jobs; j; j = jobs_next(g, j, &seen)) {
		jobs_share_restart(g, j);
		if (j->round.state == ROUND_IDLE)
			rounds_begin_open(g, j);
	}
	lock_release(&g->lock);
}

void
rounds_stop(struct engine *g)
{
	lock_take(&g->lock);
	g->stopping = true;
	lock_release(&g->lock);
}

void
rounds_retry(struct engine *g)
{
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct job *j = g->jobs; j; j = jobs_next(g, j, &seen))
		if (j->fold_retry_ms > 0)
			rounds_fold_at(g, j, 1);
	lock_release(&g->lock);
}

void
rounds_watch_task(struct engine *g, struct job *j, struct invite *v)
{
	const double seconds = j->work->terms.round.task_timeout_s;

	if (!j->round.policy.buffered)
		return;
	v->until_ms = clock_ms() + (uint64_t)(seconds * 1000);
	if (v->until_ms < j->expiry_ms)
		expire_at(g, j, v->until_ms);
}
