#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "play_inside.h"

void
simulate_play_end(struct simulate_play *p, enum simulate_end end, const char *format, ...)
{
	va_list args;

	p->ended = true;
	p->out->end = end;
	va_start(args, format);
	vsnprintf(p->out->reason, sizeof(p->out->reason), format, args);
	va_end(args);
}

unsigned
simulate_play_step(struct simulate_play *p, enum round_event event, uint32_t arg)
{
	unsigned actions = round_step(&p->round, event, arg, p->us / 1000);

	p->pending |= actions & (ROUND_DO_DRAW | ROUND_DO_FOLD | ROUND_DO_REOPEN);
	return actions;
}

/* --- a round opens */

/* Of a job that takes late deltas: which bases lead to the model that the round starts from. */
static void
note_point(struct simulate_play *p)
{
	size_t most = (size_t)p->job->round.max_staleness + 1;

	if (!p->points)
		return;
	if (p->point_count > 0)
		memcpy(p->points[0].model, p->out->model, 32);
	late_open(p->points, &p->point_count, most, p->number, p->coordinator.base->base.id);
}

static void
open_round(struct simulate_play *p, uint64_t number)
{
	p->number = number;
	p->progress_us = p->us;
	p->line = (struct simulate_line){.began_us = p->us};
	p->wake = true;
	p->ask_held = true;
	note_point(p);
	simulate_crowd_open(&p->crowd, number, p->point_count, p->evaluating, p->us);
	(void)simulate_play_step(p, ROUND_BEGIN, 0);
}

void
simulate_play_begin(struct simulate_play *p)
{
	const struct round_policy policy = round_policy(p->job);

	round_init(&p->round, &policy, 0);
	p->chain = 1;
	open_round(p, 1);
}

static void
begin_evaluation(struct simulate_play *p)
{
	const struct round_policy policy = round_evaluation(p->job);

	round_init(&p->round, &policy, 0);
	p->evaluating = true;
	open_round(p, p->number + 1);
}

static void
reopen(struct simulate_play *p)
{
	simulate_crowd_reopen(&p->crowd);
	p->wake = p->ask_held = true;
}

static enum err
draw(struct simulate_play *p, struct why *why)
{
	uint32_t places = round_places(&p->round);
	size_t *drawn = calloc((size_t)places + 1, sizeof(*drawn));
	size_t n =
	    drawn ? simulate_crowd_draw(&p->crowd, drawn, places, p->job->seed, p->us) : SIZE_MAX;
	enum err e = n == SIZE_MAX ? ERR_NOMEM : ERR_OK;

	for (size_t i = 0; !e && i < n; i++) {
		(void)simulate_crowd_step(
		    &p->crowd, drawn[i], &(struct roster_event){.kind = ROSTER_GIVE}, p->us);
		e = simulate_play_give(p, drawn[i], why);
	}
	if (!e)
		(void)simulate_play_step(p, ROUND_DRAWN, (uint32_t)n);
	free(drawn);
	p->wake = true;
	return e;
}

/* --- a round ends */

static int
compare_reports(const void *a, const void *b)
{
	const struct fleet_task *const *x = a, *const *y = b;

	if ((*x)->device != (*y)->device)
		return (*x)->device < (*y)->device ? -1 : 1;
	return ((*x)->round > (*y)->round) - ((*x)->round < (*y)->round);
}

void
simulate_play_stale(struct simulate_result *r, struct simulate_line *l, uint64_t behind)
{
	l->stale_sum += behind;
	l->stale_max = behind > l->stale_max ? behind : l->stale_max;
	if (behind >= r->staleness_count) {
		size_t count = (size_t)behind + 1;
		uint64_t *grown = realloc(r->staleness, count * sizeof(*grown));
		if (!grown)
			return;
		memset(
		    grown + r->staleness_count, 0, (count - r->staleness_count) * sizeof(*grown));
		r->staleness = grown;
		r->staleness_count = count;
	}
	r->staleness[behind]++;
}

/* What its deltas came to. */
static void
settle_reports(struct simulate_play *p, bool failed)
{
	for (size_t i = 0; i < p->accepted_count; i++) {
		struct fleet_task *w = p->accepted[i];
		struct simulate_task *t = (struct simulate_task *)(void *)w;
		if (failed) {
			p->line.wasted_us += t->worked_us;
		} else if (!p->evaluating) {
			simulate_play_stale(p->out, &p->line, p->number - w->round);
			p->crowd.people[w->device].folded++;
			fleet_task_committed(&p->setup, w);
		}
		simulate_play_drop(p, t);
	}
	p->accepted_count = 0;
}

static void
note_figures(struct simulate_result *r, const struct simulate_round *n)
{
	if (!n->evaluated)
		return;
	r->last_accuracy = n->accuracy;
	r->last_loss = n->loss;
	if (isfinite(n->accuracy) && !(r->best_accuracy >= n->accuracy))
		r->best_accuracy = n->accuracy;
	if (isfinite(n->loss) && !(r->best_loss <= n->loss))
		r->best_loss = n->loss;
}

static void
add_up(struct simulate_result *r, const struct simulate_line *l)
{
	r->rounds += !l->abandoned && !l->evaluation;
	r->failed += l->round.failed;
	r->reopened += l->reopened;
	r->reports += l->abandoned ? 0 : l->round.reports;
	r->refused += l->refused;
	r->late += l->late;
	r->aborted += l->aborted;
	r->bytes_up += l->bytes_up;
	r->bytes_down += l->bytes_down;
	r->device_us += l->device_us;
	r->wasted_us += l->wasted_us;
	note_figures(r, &l->round);
}

static void
tell(struct simulate_play *p, const struct round_close *close)
{
	struct simulate_line *l = &p->line;

	l->ended_us = p->us;
	l->invited = close->invited;
	l->aborted = close->aborted;
	l->reopened = close->reopened;
	l->evaluation = p->evaluating;
	add_up(p->out, l);
	p->out->us = p->us;
	p->o->line(p->o->context, l);
}

void
simulate_play_abandon(struct simulate_play *p)
{
	const struct round_close close = round_close(&p->round);

	p->line.abandoned = true;
	p->line.round = (struct simulate_round){.number = p->number,
	    .reports = p->accepted_count,
	    .norm = NAN,
	    .train_loss = NAN,
	    .train_accuracy = NAN,
	    .loss = NAN,
	    .accuracy = NAN,
	    .own = NAN,
	    .backdoor = NAN};
	settle_reports(p, true);
	tell(p, &close);
}

/* Enough of those that may have tasks are there to measure the last model. */
static bool
has_evaluators(const struct simulate_play *p)
{
	return p->o->setup.train &&
	    p->crowd.waiting_count + p->task_count >= p->round.policy.quorum;
}

/* That the job has reached with what the open round has. */
static enum after_limit
limit(const struct simulate_play *p)
{
	const struct after_progress progress = {.round = p->number,
	    .reports = p->reports + p->line.round.reports,
	    .seconds = (double)p->us / 1e6};

	return after_reached(&p->job->stop, &progress);
}

static void
decide(struct simulate_play *p, unsigned actions)
{
	struct simulate_round *r = &p->line.round;
	const struct after_round round = {.limit = limit(p),
	    .actions = actions,
	    .committed = !r->failed,
	    .has_evaluators = has_evaluators(p),
	    .evaluated = r->evaluated,
	    .loss = r->loss,
	    .accuracy = r->accuracy,
	    .own = r->own,
	    .turn = &r->turn};

	after_decide(&p->after, p->job, &round);
	p->reports += r->failed ? 0 : r->reports;
	if (r->turn.back)
		p->chain = p->number + 1;
}

static void
note_target(struct simulate_play *p)
{
	if (strncmp(p->after.job_reason, "target", strlen("target")) != 0)
		return;
	p->out->reached = true;
	p->out->reached_us = p->us;
	p->out->reached_round = p->number;
}

static void
go_on(struct simulate_play *p)
{
	const struct after *a = &p->after;

	if (a->begin_evaluation)
		begin_evaluation(p);
	else if (a->job_state == JOB_DONE)
		simulate_play_end(p, SIMULATE_DONE, "%s", a->job_reason);
	else if (a->job_state == JOB_STOPPED)
		simulate_play_end(p, SIMULATE_STOPPED, "%s", a->job_reason);
	else if (a->job_state == JOB_PAUSED)
		simulate_play_end(p, SIMULATE_PAUSED, "%s", a->job_reason);
	else if (p->o->rounds > 0 && p->number >= p->o->rounds)
		simulate_play_end(p, SIMULATE_LIMIT, "%llu rounds were asked for",
		    (unsigned long long)p->o->rounds);
	else
		open_round(p, p->number + 1);
}

static enum err
end_evaluation(struct simulate_play *p, const struct round_close *close, struct why *why)
{
	struct simulate_round *r = &p->line.round;
	const struct simulate_reports in = {p->accepted, close->lacks ? 0 : p->accepted_count, 0};
	char word[128];

	r->number = p->number;
	enum err e = simulate_coordinator_measure(&p->coordinator, r, &in, why);
	if (e)
		return e;
	r->reports = p->accepted_count;
	const struct after_evaluation v = {.reason = p->after.job_reason,
	    .reports = (uint32_t)r->reports,
	    .quorum = p->round.policy.quorum,
	    .known = r->evaluated};
	char reason[sizeof(p->after.job_reason)];
	memcpy(reason, p->after.job_reason, sizeof(reason));
	struct after_evaluation copy = v;
	copy.reason = reason;
	after_evaluated(&p->after, &copy, word);
	settle_reports(p, false);
	tell(p, close);
	go_on(p);
	return ERR_OK;
}

static enum err
close_round(struct simulate_play *p, struct why *why)
{
	const struct round_close close = round_close(&p->round);
	struct simulate_round *r = &p->line.round;
	const struct simulate_reports in = {p->accepted, p->accepted_count, close.no_numbers};

	qsort(p->accepted, p->accepted_count, sizeof(struct fleet_task *), compare_reports);
	if (p->evaluating)
		return end_evaluation(p, &close, why);
	r->number = p->number;
	r->reports = p->accepted_count;
	r->last = limit(p) != AFTER_NO_LIMIT;
	enum err e = simulate_coordinator_fold(&p->coordinator, r, &in, why);
	if (e)
		return e;
	memcpy(p->out->model, r->model, 32);
	settle_reports(p, r->failed);
	/* After its end, whatever becomes of the job. */
	unsigned actions = simulate_play_step(p, r->failed ? ROUND_NOT_FINITE : ROUND_FOLDED, 0);
	decide(p, actions);
	note_target(p);
	tell(p, &close);
	go_on(p);
	return ERR_OK;
}

enum err
simulate_play_settle(struct simulate_play *p, struct why *why)
{
	enum err e = ERR_OK;

	while (!e && p->pending && !p->ended) {
		unsigned pending = p->pending;
		p->pending = 0;
		if (pending & ROUND_DO_REOPEN)
			reopen(p);
		if (pending & ROUND_DO_DRAW)
			e = draw(p, why);
		if (!e && (pending & ROUND_DO_FOLD))
			e = close_round(p, why);
	}
	return e;
}
