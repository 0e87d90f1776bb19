#include "judge.h"

#include <string.h>

#include "late.h"
#include "roster.h"
#include "round.h"

enum problem_type
roster_refusal_problem(enum roster_refusal r)
{
	static const enum problem_type problems[] = {
	    [ROSTER_ACCEPTS] = PROBLEM_NONE,
	    [ROSTER_NO_ROUND] = PROBLEM_STALE_ROUND,
	    [ROSTER_TOO_OLD] = PROBLEM_TOO_STALE,
	    [ROSTER_GIVEN_UP] = PROBLEM_STALE_BASE,
	    [ROSTER_TASK_BASE] = PROBLEM_WRONG_BASE,
	    [ROSTER_ROUND_BASE] = PROBLEM_WRONG_BASE,
	    [ROSTER_OTHER_TASK] = PROBLEM_WRONG_TASK,
	    [ROSTER_USED] = PROBLEM_USED_TASK,
	    [ROSTER_CLOSED] = PROBLEM_ROUND_CLOSED,
	    [ROSTER_AGED] = PROBLEM_ROUND_CLOSED,
	    [ROSTER_DEFERRED] = PROBLEM_UNAVAILABLE,
	    [ROSTER_ENOUGH] = PROBLEM_UNAVAILABLE,
	    [ROSTER_OTHER_KIND] = PROBLEM_WRONG_KIND,
	};

	return problems[r];
}

static uint64_t
taker_of(const struct roster_round *r)
{
	return r->number + round_has_closed(r->machine);
}

static bool
takes_late(const struct roster_round *r)
{
	return r->machine->policy.late && !r->evaluates;
}

/* Is the task of the open round, and that still open? Then nothing is late. */
static bool
is_in_time(const struct roster_round *r, uint64_t round)
{
	return round == r->number && r->lives &&
	    (!round_has_closed(r->machine) || round_refuses(r->machine));
}

/* Of tasks whose round is over. */
static enum roster_refusal
judge_age(const struct roster_round *r, uint64_t round)
{
	const struct late_point *p;

	if (is_in_time(r, round))
		return ROSTER_ACCEPTS;
	if (round > r->number || !takes_late(r) || !r->lives)
		return ROSTER_NO_ROUND;
	p = late_find(r->points, r->point_count, round);
	if (!p || taker_of(r) - round > r->max_staleness)
		return ROSTER_TOO_OLD;
	return p->live ? ROSTER_ACCEPTS : ROSTER_GIVEN_UP;
}

/* Of one that the open round does not take. */
static enum roster_refusal
judge_next(const struct roster_place *p, const struct roster_round *r, uint64_t round)
{
	if (p->next >= r->per_device || r->defers)
		return ROSTER_ENOUGH;
	return r->number + 1 - round > r->max_staleness ? ROSTER_AGED : ROSTER_ACCEPTS;
}

/* What the rounds have of the device already, and whether they take more. */
static enum roster_refusal
judge_place(const struct roster_place *p, const struct roster_round *r, uint64_t round, bool *next)
{
	const bool closed = round_has_closed(r->machine);

	if (p->state == ROSTER_ACCEPTED && p->round == round)
		return ROSTER_USED;
	if (round_refuses(r->machine))
		return ROSTER_CLOSED;
	if (closed && r->defers)
		return ROSTER_DEFERRED;
	*next = takes_late(r) && (closed || p->now >= r->per_device);
	return *next ? judge_next(p, r, round) : ROSTER_ACCEPTS;
}

static struct roster_verdict
verdict(const struct roster_round *r, uint64_t round, enum roster_refusal refusal, bool next)
{
	const uint64_t taker = refusal ? taker_of(r) : r->number + next;

	return (struct roster_verdict){.refusal = refusal,
	    .round = refusal ? 0 : taker,
	    .late = taker > round ? taker - round : 0};
}

struct roster_verdict
roster_judge_round(const struct roster_place *p, const struct roster_round *r, uint64_t round)
{
	enum roster_refusal refusal = judge_age(r, round);
	bool next = false;

	if (!refusal)
		refusal = judge_place(p, r, round, &next);
	return verdict(r, round, refusal, next);
}

static enum roster_refusal
judge_head(const struct roster_round *r, const struct roster_head *h)
{
	const struct late_point *p =
	    is_in_time(r, h->round) ? NULL : late_find(r->points, r->point_count, h->round);

	if (p && memcmp(h->base, p->base, sizeof(p->base)) != 0)
		return ROSTER_TASK_BASE;
	if (!h->is_its_task)
		return ROSTER_OTHER_TASK;
	if (h->round == r->number && memcmp(h->base, h->open_base, sizeof(r->points->base)) != 0)
		return ROSTER_ROUND_BASE;
	return ROSTER_ACCEPTS;
}

struct roster_verdict
roster_judge(
    const struct roster_place *p, const struct roster_round *r, const struct roster_head *h)
{
	enum roster_refusal refusal = judge_age(r, h->round);
	bool next = false;

	if (!refusal)
		refusal = judge_head(r, h);
	if (!refusal)
		refusal = judge_place(p, r, h->round, &next);
	if (!refusal && h->evaluates != r->evaluates)
		refusal = ROSTER_OTHER_KIND;
	return verdict(r, h->round, refusal, next);
}
