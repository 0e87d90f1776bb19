#ifndef JUDGE_H
#define JUDGE_H
#include <stdbool.h>
#include <stdint.h>

#include "problem.h"

struct roster_place;
struct roster_round;

/* What becomes of a delta, or an evaluation's report, by its head: judged before its body comes, and again as it is taken. Pure. */

enum roster_refusal {
	ROSTER_ACCEPTS,
	ROSTER_NO_ROUND, /* no round is open for the task, and none takes late deltas */
	ROSTER_TOO_OLD, /* its task is of more rounds before than the job allows */
	ROSTER_GIVEN_UP, /* a guard gave up the model that the task started from */
	ROSTER_TASK_BASE, /* it names another base than its task's round had, */
	ROSTER_ROUND_BASE, /* or than the open one has */
	ROSTER_OTHER_TASK, /* its task is none of the device's in that round */
	ROSTER_USED, /* the task is answered */
	ROSTER_CLOSED, /* the round has closed */
	ROSTER_AGED, /* this round has enough of the device, and for the next one it will be too old */
	ROSTER_DEFERRED, /* not before the round is folded: its guard may go back then; */
	ROSTER_ENOUGH, /* nor before that do both rounds have as many of the device as they may */
	ROSTER_OTHER_KIND, /* a delta of an evaluation, or the other way round */
};
enum problem_type roster_refusal_problem(enum roster_refusal r);

struct roster_head {
	uint64_t round; /* of the task */
	const uint8_t *base, *open_base; /* that it names, and that the open round starts from */
	bool is_its_task; /* it names the task that the device has, or would have, in that round */
	bool evaluates; /* it is the report of an evaluation */
};

struct roster_verdict {
	enum roster_refusal refusal;
	/* The round that takes the delta as things stand, the open one or the next; 0: refused. */
	uint64_t round;
	/* Rounds from the task's to the one that takes the delta, or would; the fold weighs the delta by that (late.h). */
	uint64_t late;
};

struct roster_verdict roster_judge(
    const struct roster_place *p, const struct roster_round *r, const struct roster_head *h);
/* The part of that which may change until the delta is taken: all but base, task and kind. */
struct roster_verdict roster_judge_round(
    const struct roster_place *p, const struct roster_round *r, uint64_t round);

#endif
