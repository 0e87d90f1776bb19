#include "round.h"
#include "fault.h"
#include "job.h"

#include <math.h>
#include <stddef.h>

struct round_policy
round_policy(const struct job_spec *job)
{
	const struct round_spec *spec = &job->round;
	const bool buffered = spec->mode == ROUND_MODE_BUFFERED;
	double invites =
	    buffered ? (double)spec->concurrency : ceil((double)spec->goal * spec->over_select);

	return (struct round_policy){.goal = spec->goal,
	    .quorum = spec->quorum,
	    .hostile = job->aggregate.rule.hostile,
	    .invite_max = invites < UINT32_MAX ? (uint32_t)invites : UINT32_MAX,
	    .deadline_ms = (uint64_t)(spec->deadline_s * 1000),
	    .grace_ms = (uint64_t)(spec->grace_s * 1000),
	    .sample_ms = (uint64_t)(spec->sample_s * 1000),
	    .late = spec->max_staleness > 0 || buffered,
	    .buffered = buffered,
	    .sample = spec->sample,
	    .failures = ROUND_FAILURES};
}

struct round_policy
round_evaluation(const struct job_spec *job)
{
	struct round_policy policy = round_policy(job);

	policy.once = true;
	/* Its tasks are its own, and end with it. */
	if (policy.buffered)
		policy.invite_max = policy.goal;
	policy.late = policy.buffered = false;
	if (job->recipe.evaluate_deadline_s > 0)
		policy.deadline_ms = (uint64_t)(job->recipe.evaluate_deadline_s * 1000);
	return policy;
}

void
round_init(struct round *r, const struct round_policy *policy, uint32_t failed)
{
	*r = (struct round){.policy = *policy, .state = ROUND_IDLE};
	r->failed_in_row = policy->failures ? failed % policy->failures : failed;
}

/* A time that was set by one duration, had it been another. */
static uint64_t
shifted(uint64_t at, uint64_t was, uint64_t is)
{
	return at + is > was ? at + is - was : 0;
}

void
round_amend(struct round *r, const struct round_policy *policy)
{
	r->deadline_ms = shifted(r->deadline_ms, r->policy.deadline_ms, policy->deadline_ms);
	r->grace_until_ms = shifted(r->grace_until_ms, r->policy.grace_ms, policy->grace_ms);
	r->policy = *policy;
	if (r->state == ROUND_GRACE && r->accepted < policy->quorum)
		r->state = ROUND_OPEN;
}

static bool
is_open(const struct round *r)
{
	return r->state == ROUND_GATHER || r->state == ROUND_OPEN || r->state == ROUND_GRACE;
}

static void
change_state(struct round *r, enum round_state to, uint64_t now_ms)
{
	r->state = to;
	if (to == ROUND_OPEN)
		FAULT("round.open");
	if (to == ROUND_GRACE) {
		r->grace_until_ms = now_ms + r->policy.grace_ms;
		FAULT("round.grace");
	}
	if (to == ROUND_GATHER) {
		r->gather_until_ms = 0;
		FAULT("round.gather");
	}
	if (to == ROUND_CLOSING)
		FAULT("round.closing");
	if (to == ROUND_FOLDING)
		FAULT("round.folding");
}

/* Leaves CLOSING as soon as the last delta on its way is durable or lost. */
static unsigned
drained(struct round *r, uint64_t now_ms)
{
	if (r->state != ROUND_CLOSING || r->committing > 0)
		return 0;
	change_state(r, ROUND_FOLDING, now_ms);
	return ROUND_DO_FOLD;
}

static unsigned
close_round(struct round *r, uint64_t now_ms)
{
	change_state(r, ROUND_CLOSING, now_ms);
	return drained(r, now_ms);
}

uint32_t
round_out(const struct round *r)
{
	return r->invited - r->accepted - r->committing - r->next_accepted - r->next_committing;
}

static void
open_again(struct round *r, uint64_t now_ms)
{
	if (!r->policy.buffered)
		r->invited = r->accepted + r->committing + r->next_accepted + r->next_committing;
	r->aborted_before = r->aborted;
	r->no_numbers = 0;
	r->deadline_ms = now_ms + r->policy.deadline_ms;
	change_state(r, r->policy.sample ? ROUND_GATHER : ROUND_OPEN, now_ms);
}

/* As many as its model needs find the base to be of no use. While others work on it they may still show that it is of some, unless
 * those are as many as are asked at a time. */
static bool
is_hopeless(const struct round *r)
{
	return r->no_numbers >= r->policy.quorum && r->state != ROUND_GRACE &&
	    (round_out(r) == 0 || r->no_numbers >= r->policy.invite_max);
}

/* At the deadline fewer will do, but not devices that may be hostile. */
static bool
is_blamed(const struct round *r)
{
	return r->no_numbers > r->policy.hostile && r->accepted + r->no_numbers >= r->policy.quorum;
}

/* What waits for a buffer waits for nobody in particular: at its deadline it is folded, or has another one. */
static unsigned
consider_buffer(struct round *r, uint64_t now_ms)
{
	const bool lacks = r->accepted < r->policy.quorum;

	if (lacks && is_hopeless(r))
		return close_round(r, now_ms);
	if (now_ms < r->deadline_ms || r->committing > 0)
		return 0;
	if (!lacks || is_blamed(r))
		return close_round(r, now_ms);
	r->deadline_ms = now_ms + r->policy.deadline_ms;
	return 0;
}

/* Looks whether the counts or the clock close the round, start its grace or abandon it. */
static unsigned
consider(struct round *r, uint64_t now_ms)
{
	if (!is_open(r) || r->paused)
		return 0;
	if (r->accepted >= r->policy.goal)
		return close_round(r, now_ms);
	if (r->policy.buffered)
		return consider_buffer(r, now_ms);
	if (r->accepted >= r->policy.quorum && r->state != ROUND_GRACE)
		change_state(r, ROUND_GRACE, now_ms);
	if (r->state == ROUND_GRACE && (now_ms >= r->grace_until_ms || now_ms >= r->deadline_ms))
		return close_round(r, now_ms);
	if (is_hopeless(r))
		return close_round(r, now_ms);
	/* No task is out while askers are gathered: the deadline runs from the draw. */
	if (r->state == ROUND_GATHER && r->gather_until_ms > 0)
		return now_ms >= r->gather_until_ms ? ROUND_DO_DRAW : 0;
	if (r->state == ROUND_GRACE || now_ms < r->deadline_ms || r->committing > 0)
		return 0;
	if (is_blamed(r))
		return close_round(r, now_ms);
	if (r->policy.once)
		return close_round(r, now_ms);
	/* No task is out and none was given back: there is nothing to abandon, only a deadline to move. */
	bool lonely = round_out(r) == 0 && r->aborted == r->aborted_before;
	open_again(r, now_ms);
	if (lonely)
		return 0;
	r->reopened++;
	FAULT("round.reopened");
	return ROUND_DO_REOPEN;
}

/* What the last round took for this one, and the tasks that are still out. */
static void
take_over(struct round *r, uint32_t has)
{
	const uint32_t out = r->policy.buffered ? round_out(r) : 0;

	r->accepted = has + r->next_accepted;
	r->committing = r->next_committing;
	r->next_accepted = r->next_committing = 0;
	r->invited = r->accepted + r->committing + out;
}

static unsigned
begin(struct round *r, uint32_t has, uint64_t now_ms)
{
	if (r->state != ROUND_IDLE && r->state != ROUND_FOLDING)
		return 0;
	/* This one again keeps what it had. */
	if (r->state == ROUND_IDLE || has == 0)
		take_over(r, has);
	r->aborted = r->reopened = 0;
	r->opened_ms = now_ms;
	open_again(r, now_ms);
	return consider(r, now_ms);
}

static unsigned
ask(struct round *r, uint64_t now_ms)
{
	if (r->paused || !is_open(r))
		return 0;
	if (r->state == ROUND_GATHER) {
		/* 0 is none, also on a clock that begins there. */
		if (r->gather_until_ms == 0)
			r->gather_until_ms =
			    now_ms + r->policy.sample_ms > 0 ? now_ms + r->policy.sample_ms : 1;
		return 0;
	}
	if (round_places(r) == 0)
		return 0;
	r->invited++;
	return ROUND_DO_INVITE;
}

static unsigned
settle_next(struct round *r, bool durable)
{
	if (r->next_committing > 0) {
		r->next_committing--;
		r->next_accepted += durable;
	}
	return 0;
}

static unsigned
settle(struct round *r, bool durable, uint64_t now_ms)
{
	if (r->committing == 0)
		return 0;
	r->committing--;
	if (durable)
		r->accepted++;
	return r->state == ROUND_CLOSING ? drained(r, now_ms) : consider(r, now_ms);
}

static unsigned
folded(struct round *r, bool finite)
{
	if (r->state != ROUND_FOLDING)
		return 0;
	r->failed_in_row = finite ? 0 : r->failed_in_row + 1;
	if (r->policy.failures == 0 || r->failed_in_row < r->policy.failures)
		return ROUND_DO_BEGIN;
	r->failed_in_row = 0;
	r->paused = true;
	return ROUND_DO_BEGIN | ROUND_DO_PAUSE;
}

static unsigned
resume(struct round *r, uint64_t now_ms)
{
	if (!r->paused)
		return 0;
	r->paused = false;
	if (is_open(r)) {
		r->deadline_ms = now_ms + r->policy.deadline_ms;
		if (r->state == ROUND_GRACE)
			change_state(r, ROUND_GRACE, now_ms);
	}
	return consider(r, now_ms);
}

static unsigned
gave_up(struct round *r, bool no_numbers, uint64_t now_ms)
{
	if ((!is_open(r) && !r->policy.buffered) || round_out(r) == 0)
		return 0;
	r->invited--;
	r->aborted++;
	r->no_numbers += no_numbers;
	return r->no_numbers > 0 ? consider(r, now_ms) : 0;
}

static unsigned
take(struct round *r, unsigned how)
{
	if (round_refuses(r))
		return 0;
	r->invited += (how & ROUND_TAKE_FRESH) != 0;
	if (is_open(r) && !(how & ROUND_TAKE_NEXT)) {
		r->committing++;
		return ROUND_DO_TAKE;
	}
	r->next_committing++;
	return ROUND_DO_TAKE | ROUND_DO_TAKE_NEXT;
}

static unsigned
drawn(struct round *r, uint32_t count, uint64_t now_ms)
{
	if (r->state != ROUND_GATHER)
		return 0;
	r->invited += count;
	r->deadline_ms = now_ms + r->policy.deadline_ms;
	change_state(r, ROUND_OPEN, now_ms);
	return consider(r, now_ms);
}

unsigned
round_step(struct round *r, enum round_event event, uint32_t arg, uint64_t now_ms)
{
	if (r->state == ROUND_ENDED)
		return 0;
	switch (event) {
	case ROUND_BEGIN:
		return begin(r, arg, now_ms);
	case ROUND_ASK:
		return ask(r, now_ms);
	case ROUND_DRAWN:
		return drawn(r, arg, now_ms);
	case ROUND_TAKE:
		return take(r, arg);
	case ROUND_ACCEPTED:
		return arg ? settle_next(r, true) : settle(r, true, now_ms);
	case ROUND_LOST:
		return arg ? settle_next(r, false) : settle(r, false, now_ms);
	case ROUND_EXPIRED:
		r->invited -= r->policy.buffered && round_out(r) > 0;
		return 0;
	case ROUND_EARLY:
		r->next_accepted += r->policy.late ? arg : 0;
		r->invited += r->policy.late ? arg : 0;
		return 0;
	case ROUND_OUT:
		r->invited += r->policy.buffered ? arg : 0;
		return 0;
	case ROUND_GAVE_UP:
		return gave_up(r, arg != 0, now_ms);
	case ROUND_TICK:
		return consider(r, now_ms);
	case ROUND_FOLDED:
		return folded(r, true);
	case ROUND_NOT_FINITE:
		return folded(r, false);
	case ROUND_PAUSE:
		r->paused = true;
		return 0;
	case ROUND_RESUME:
		return resume(r, now_ms);
	case ROUND_STOP:
		r->state = ROUND_ENDED;
		FAULT("round.ended");
		return 0;
	}
	return 0;
}

uint64_t
round_next_ms(const struct round *r)
{
	if (r->paused || !is_open(r))
		return UINT64_MAX;
	if (r->state == ROUND_GATHER && r->gather_until_ms > 0)
		return r->gather_until_ms;
	if (r->state == ROUND_GRACE && r->grace_until_ms < r->deadline_ms)
		return r->grace_until_ms;
	return r->deadline_ms;
}

struct round_close
round_close(const struct round *r)
{
	return (struct round_close){.invited = r->invited,
	    .aborted = r->aborted,
	    .reopened = r->reopened,
	    .no_numbers = r->accepted < r->policy.quorum ? r->no_numbers : 0,
	    .lacks = r->accepted < r->policy.quorum};
}

bool
round_has_closed(const struct round *r)
{
	return r->state == ROUND_CLOSING || r->state == ROUND_FOLDING;
}

bool
round_refuses(const struct round *r)
{
	return !is_open(r) && !(round_has_closed(r) && r->policy.late);
}

bool
round_wants(const struct round *r)
{
	return is_open(r) && r->accepted + r->committing < r->policy.goal;
}

uint32_t
round_places(const struct round *r)
{
	const uint32_t out = r->policy.buffered ? round_out(r) : r->invited;

	return r->policy.invite_max > out ? r->policy.invite_max - out : 0;
}

const char *
round_state_name(const struct round *r)
{
	static const char *const names[] = {
	    "idle", "gather", "open", "grace", "closing", "folding", "ended"};

	return r->paused && is_open(r) ? "paused" : names[r->state];
}
