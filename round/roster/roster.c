#include "roster.h"

#include "job.h"
#include "judge.h"
#include "round.h"

bool
roster_rests(const struct round *r)
{
	return r->policy.buffered && r->policy.hostile > 0;
}

bool
roster_is_invited(const struct roster_place *p)
{
	return p->state == ROSTER_OUT || p->state == ROSTER_COMMITTING ||
	    p->state == ROSTER_ACCEPTED || p->state == ROSTER_ABORTED;
}

bool
roster_is_unanswered(const struct roster_place *p)
{
	return p->state == ROSTER_OUT || p->state == ROSTER_EXPIRED;
}

struct roster_round
roster_round_of(const struct job_spec *job, double timeout_s)
{
	return (struct roster_round){.timeout_ms = (uint64_t)(timeout_s * 1000),
	    .per_device = job->round.per_device,
	    .max_staleness = job->round.max_staleness,
	    .defers = job->guard.on && job->guard.action == GUARD_DO_ROLLBACK};
}

static bool
is_buffered(const struct roster_round *r)
{
	return r->machine->policy.buffered;
}

/* --- asking */

/* One that took a delta of it rests it as well, even if it bears several of a device. */
static bool
is_to_rest(const struct roster_place *p, const struct roster_round *r)
{
	return roster_rests(r->machine) && p->folded > 0 && r->number <= p->folded + r->rest;
}

/* It has done what it may for this buffer. */
static bool
is_done(const struct roster_place *p, const struct roster_round *r)
{
	return is_buffered(r) && (p->now >= r->per_device || p->state == ROSTER_COMMITTING);
}

bool
roster_wants_unsent(const struct roster_place *p, const struct roster_round *r)
{
	return !is_done(p, r) && p->round != r->number && roster_is_unanswered(p);
}

static unsigned
give(struct roster_place *p, const struct roster_round *r, uint64_t now_ms)
{
	const bool other = p->round != r->number;

	p->state = ROSTER_OUT;
	p->round = r->number;
	if (is_buffered(r))
		p->until_ms = now_ms + r->timeout_ms;
	return ROSTER_DO_HAND | (other ? ROSTER_DO_RENAME : 0);
}

static void
hear(struct roster_place *p, const struct roster_round *r, uint64_t now_ms)
{
	if (roster_rests(r->machine))
		p->asked_ms = now_ms;
}

static unsigned
ask(struct roster_place *p, const struct roster_round *r, bool unsent, uint64_t now_ms)
{
	const bool own = p->round == r->number;

	hear(p, r, now_ms);
	if (is_done(p, r))
		return ROSTER_DO_REPORTED;
	/* Another task would only make it older. */
	if (unsent && roster_wants_unsent(p, r))
		return ROSTER_DO_UNSENT;
	if (own && p->state == ROSTER_ACCEPTED)
		return ROSTER_DO_REPORTED;
	if (own && p->state == ROSTER_ABORTED)
		return ROSTER_DO_ABORTED;
	if (round_has_closed(r->machine))
		return ROSTER_DO_WAIT;
	/* A newer task goes into the place of an older one. */
	if (p->state == ROSTER_OUT)
		return own ? ROSTER_DO_HAND : give(p, r, now_ms);
	return is_to_rest(p, r) ? ROSTER_DO_REPORTED : ROSTER_DO_ENTER;
}

enum wait_reason
roster_wait(unsigned actions)
{
	if (actions & ROSTER_DO_REPORTED)
		return WAIT_REPORTED;
	if (actions & ROSTER_DO_UNSENT)
		return WAIT_UNSENT;
	if (actions & ROSTER_DO_ABORTED)
		return WAIT_ABORTED;
	return actions & ROSTER_DO_WAIT ? WAIT_NOT_SELECTED : WAIT_NONE;
}

/* --- answering */

/* The task is answered by what is on its way, or by what comes without one. */
static unsigned
mark_taken(struct roster_place *p, const struct roster_round *r, uint64_t round, bool fresh)
{
	if (is_buffered(r) && !(fresh && (p->state == ROSTER_OUT || p->state == ROSTER_COMMITTING)))
		p->state = ROSTER_COMMITTING;
	else if (fresh && round == r->number)
		p->state = ROSTER_OUT;
	else
		return 0;
	const bool other = p->round != round;
	p->round = round;
	return other ? ROSTER_DO_RENAME : 0;
}

static unsigned
take(struct roster_place *p, const struct roster_round *r, uint64_t round)
{
	const bool own = p->round == round;
	const bool fresh = !own || p->state != ROSTER_OUT;
	const struct roster_verdict v = roster_judge_round(p, r, round);

	if (own && p->state == ROSTER_COMMITTING)
		return 0;
	if (v.refusal == ROSTER_ENOUGH || v.refusal == ROSTER_DEFERRED)
		return ROSTER_DO_LATER;
	if (v.refusal)
		return 0;
	const bool next = v.round > r->number;
	p->next += next;
	p->now += !next;
	return mark_taken(p, r, round, fresh) | ROSTER_DO_TAKE | (fresh ? ROSTER_DO_FRESH : 0) |
	    (next ? ROSTER_DO_NEXT : 0);
}

static unsigned
settled(struct roster_place *p, const struct roster_round *r, const struct roster_event *e)
{
	const bool next = e->folded > r->number;
	unsigned actions = ROSTER_DO_SETTLE | (next ? ROSTER_DO_NEXT : 0);

	if (roster_rests(r->machine))
		p->folded = e->folded;
	if (p->round != e->round)
		return actions;
	p->state = ROSTER_ACCEPTED;
	return actions | ROSTER_DO_END;
}

static unsigned
lost(struct roster_place *p, const struct roster_round *r, const struct roster_event *e)
{
	const bool next = e->folded > r->number;

	if (p->round == e->round && p->state == ROSTER_COMMITTING)
		p->state = e->fresh ? ROSTER_EXPIRED : ROSTER_OUT;
	p->next -= next && p->next > 0;
	p->now -= !next && p->now > 0;
	return ROSTER_DO_SETTLE | (next ? ROSTER_DO_NEXT : 0) | (e->fresh ? ROSTER_DO_FREE : 0);
}

static unsigned
give_up(struct roster_place *p, bool passes)
{
	const bool out = p->state == ROSTER_OUT;

	if (!roster_is_unanswered(p))
		return 0;
	p->state = passes ? ROSTER_STOPPED : ROSTER_ABORTED;
	return ROSTER_DO_END | (out ? ROSTER_DO_GAVE_UP : 0);
}

/* --- time */

static unsigned
expire(struct roster_place *p, const struct roster_round *r, uint64_t now_ms)
{
	if (!is_buffered(r) || p->state != ROSTER_OUT || p->until_ms > now_ms)
		return 0;
	p->state = ROSTER_EXPIRED;
	return ROSTER_DO_END | ROSTER_DO_FREE;
}

/* What devices rest by outlives their tasks. */
static unsigned
forget(struct roster_place *p)
{
	*p = (struct roster_place){.asked_ms = p->asked_ms, .folded = p->folded};
	return ROSTER_DO_FORGET;
}

static unsigned
turn_buffer(struct roster_place *p, const struct roster_round *r, uint64_t now_ms)
{
	const bool asks =
	    roster_rests(r->machine) && p->asked_ms > 0 && now_ms - p->asked_ms < ROSTER_HEARD_MS;
	unsigned actions = 0;

	p->now = p->next;
	p->next = 0;
	if (!asks)
		p->asked_ms = p->folded = 0;
	if (p->state != ROSTER_OUT && p->state != ROSTER_COMMITTING && p->now == 0)
		actions = forget(p);
	return asks ? ROSTER_DO_HEARD : actions;
}

static void
find(struct roster_place *p, const struct roster_round *r, const struct roster_event *e)
{
	const bool next = e->folded > r->number;

	p->next += next && !r->evaluates;
	p->now += !next && !r->evaluates;
	if (r->evaluates || e->round == r->number) {
		p->state = ROSTER_ACCEPTED;
		p->round = r->number;
	}
}

static void
find_folded(struct roster_place *p, const struct roster_round *r, uint64_t folded, uint64_t now_ms)
{
	if (!roster_rests(r->machine))
		return;
	p->folded = folded;
	p->asked_ms = now_ms;
}

unsigned
roster_step(struct roster_place *p, const struct roster_round *r, const struct roster_event *e,
    uint64_t now_ms)
{
	switch (e->kind) {
	case ROSTER_ASK:
		return ask(p, r, e->unsent, now_ms);
	case ROSTER_HEAR:
		hear(p, r, now_ms);
		return 0;
	case ROSTER_GIVE:
		return give(p, r, now_ms);
	case ROSTER_TAKE:
		return take(p, r, e->round);
	case ROSTER_SETTLED:
		return settled(p, r, e);
	case ROSTER_LOST:
		return lost(p, r, e);
	case ROSTER_GIVE_UP:
		return give_up(p, e->passes);
	case ROSTER_EXPIRE:
		return expire(p, r, now_ms);
	case ROSTER_REOPEN:
		return p->state == ROSTER_ACCEPTED ? 0 : forget(p);
	case ROSTER_TURN:
		return is_buffered(r) ? turn_buffer(p, r, now_ms) : forget(p);
	case ROSTER_FOUND:
		find(p, r, e);
		return 0;
	case ROSTER_FOUND_OUT:
		p->state = ROSTER_OUT;
		p->round = e->round;
		p->until_ms = e->until_ms;
		return 0;
	case ROSTER_FOUND_FOLDED:
		find_folded(p, r, e->folded, now_ms);
		return 0;
	}
	return 0;
}
