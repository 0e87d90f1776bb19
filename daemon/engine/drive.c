/* The machines of rounds, driven: what happens is told to them here alone, and what they answer is done here. */
#include "clock.h"
#include "engine_inside.h"
#include "health.h"
#include "log.h"
#include "spent.h"

#include <stdio.h>
#include <string.h>

#define RETRY_MS 1000
#define RETRY_FIRST_MS 1000
#define RETRY_LONGEST_MS 60000

/* Lock held. */
static void
start_fold(struct engine *g, struct engine_job *j)
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
	f.limit = engine_terms_limit(g, j);
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
		engine_fold_at(g, j, clock_ms() + RETRY_MS); /* no memory */
	}
}

/* What came of the tasks that brought no report, and whose they were. */
static void
note_reopened(struct engine_job *j)
{
	struct engine_work *w = j->work;
	uint32_t tasks[STUCK_KINDS] = {0};

	w->silent_count = 0;
	w->silent_round = j->row.round;
	for (size_t i = 0; i < j->invite_count; i++) {
		const struct invite *v = &j->invites[i];
		const bool given_back = v->state == INVITE_ABORTED || v->state == INVITE_STOPPED;
		if (given_back)
			tasks[stuck_of_abort(v->gave_up)]++;
		if (v->state != INVITE_OUT)
			continue;
		tasks[STUCK_TOO_SLOW]++;
		if (w->silent_count < ENGINE_DEVICES_SHOWN)
			memcpy(w->silent[w->silent_count++], v->device, 32);
	}
	stuck_reopen(&w->reopened, j->row.round, j->round.accepted, tasks);
}

/* Forgets everyone who has not reported: an abandoned round invites anew. */
static void
reopen(struct engine *g, struct engine_job *j)
{
	size_t kept = 0;

	note_reopened(j);
	if (spent_log(g->services, j->owner, 0))
		log_event(LOG_LEVEL_WARN, "round.reopened", LOG_S("job", j->hex),
		    LOG_U("round", j->row.round), LOG_U("reports", j->round.accepted),
		    LOG_U("quorum", j->round.policy.quorum),
		    LOG_S("why", "too few reports before the deadline"));
	engine_share_end_all(g, j);
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

unsigned
engine_step(struct engine *g, struct engine_job *j, enum round_event event, uint32_t arg)
{
	unsigned actions = round_step(&j->round, event, arg, clock_ms());

	look_at(g, round_next_ms(&j->round));
	/* While stopping, the folder may be gone: the round is folded after the restart. */
	if ((actions & ROUND_DO_FOLD) && !g->stopping)
		start_fold(g, j);
	if (actions & ROUND_DO_REOPEN)
		reopen(g, j);
	if (actions & ROUND_DO_DRAW)
		engine_draw(g, j);
	return actions;
}

void
engine_fold_end(struct engine *g, const struct engine_fold *f)
{
	lock_take(&g->lock);
	f->job->folds--;
	engine_job_shrink(g, f->job);
	lock_release(&g->lock);
}

unsigned
engine_foresee(struct engine *g, const struct engine_job *j, enum round_event event)
{
	lock_take(&g->lock);
	struct round copy = j->round;
	lock_release(&g->lock);
	return round_step(&copy, event, 0, clock_ms());
}

void
engine_fold_at(struct engine *g, struct engine_job *j, uint64_t ms)
{
	j->fold_retry_ms = ms;
	look_at(g, ms);
}

void
engine_expire_at(struct engine *g, struct engine_job *j, uint64_t ms)
{
	j->expiry_ms = ms;
	look_at(g, ms);
}

/* Lock held. */
static void
look(struct engine *g, uint64_t now)
{
	unsigned seen = 0;

	g->look_ms = UINT64_MAX;
	for (struct engine_job *j = g->jobs; j && !g->stopping; j = engine_next(g, j, &seen)) {
		if (round_next_ms(&j->round) <= now)
			engine_step(g, j, ROUND_TICK, 0);
		if (engine_retry_due(j, now))
			start_fold(g, j);
		if (j->expiry_ms <= now)
			engine_late_expire(g, j, now);
		look_at(g, j->expiry_ms);
		look_at(g, round_next_ms(&j->round));
		if (j->fold_retry_ms > 0)
			look_at(g, j->fold_retry_ms);
	}
}

void
engine_tick(struct engine *g)
{
	uint64_t now = clock_ms();

	lock_take(&g->lock);
	if (g->started && !g->stopping && g->look_ms <= now)
		look(g, now);
	if (g->gone_count > 0)
		engine_drop_gone(g);
	bool runs = g->started && !g->stopping;
	lock_release(&g->lock);
	if (runs)
		engine_view_stuck(g, now);
}

/* --- beginning and end */

void
engine_begin_open(struct engine *g, struct engine_job *j)
{
	if (j->state == JOB_PAUSED)
		engine_step(g, j, ROUND_PAUSE, 0);
	engine_step(g, j, ROUND_BEGIN, j->loaded);
	if (j->early > 0)
		engine_step(g, j, ROUND_EARLY, j->early);
	if (j->out > 0) {
		engine_step(g, j, ROUND_OUT, j->out);
		engine_expire_at(g, j, j->expiry_ms);
	}
	j->early = j->out = 0;
}

void
engine_start(
    struct engine *g, enum err (*fold)(void *folder, const struct engine_fold *f), void *folder)
{
	unsigned seen = 0;

	lock_take(&g->lock);
	g->fold = fold;
	g->folder = folder;
	g->started = true;
	for (struct engine_job *j = g->jobs; j; j = engine_next(g, j, &seen)) {
		engine_share_restart(g, j);
		if (j->round.state == ROUND_IDLE)
			engine_begin_open(g, j);
	}
	lock_release(&g->lock);
}

void
engine_stop(struct engine *g)
{
	lock_take(&g->lock);
	g->stopping = true;
	lock_release(&g->lock);
}

/* --- folds that failed */

/* Lock held. */
static void
fold_later(struct engine *g, struct engine_job *j, const struct why *why)
{
	uint64_t pause = RETRY_FIRST_MS;

	for (unsigned i = 0; i < j->fold_failures && pause < RETRY_LONGEST_MS; i++)
		pause *= 2;
	if (pause > RETRY_LONGEST_MS)
		pause = RETRY_LONGEST_MS;
	j->fold_failures++;
	engine_fold_at(g, j, clock_ms() + pause);
	snprintf(j->reason, sizeof(j->reason), "the round waits to be folded: %s", why->text);
	log_event(LOG_LEVEL_ERROR, "round.delayed", LOG_S("job", j->hex),
	    LOG_U("round", j->row.round), LOG_D("seconds", (double)pause / 1000),
	    LOG_S("why", why->text));
}

/* Back to an open, paused round that has what it had: resuming folds it again. Lock held. */
static void
set_aside(struct engine *g, struct engine_job *j, const struct why *why)
{
	uint32_t accepted = j->round.accepted;

	log_event(LOG_LEVEL_ERROR, "round.failed", LOG_S("job", j->hex),
	    LOG_U("round", j->row.round), LOG_S("why", why->text));
	engine_step(g, j, ROUND_PAUSE, 0);
	engine_step(g, j, ROUND_BEGIN, accepted);
	engine_set_state(g, j, JOB_PAUSED, why->text);
}

void
engine_fold_failed(struct engine *g, const struct engine_fold *f, enum err e, const struct why *why)
{
	struct engine_job *j = f->job;
	bool passes = health_passes(e);

	if (passes)
		health_note(g->services->health, e, j->model_bytes, why->text);
	lock_take(&g->lock);
	if (j->round.state == ROUND_FOLDING && passes)
		fold_later(g, j, why);
	else if (j->round.state == ROUND_FOLDING)
		set_aside(g, j, why);
	lock_release(&g->lock);
}

void
engine_retry(struct engine *g)
{
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j; j = engine_next(g, j, &seen))
		if (j->fold_retry_ms > 0)
			engine_fold_at(g, j, 1);
	lock_release(&g->lock);
}

bool
engine_retry_due(struct engine_job *j, uint64_t now_ms)
{
	if (j->fold_retry_ms == 0 || j->fold_retry_ms > now_ms)
		return false;
	j->fold_retry_ms = 0;
	return j->round.state == ROUND_FOLDING;
}
