#include "after.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "round.h"

static bool
reached_own(const struct job_spec *spec, double own)
{
	const struct stop_spec *stop = &spec->stop;

	return stop->has_own && isfinite(own) &&
	    (spec->monitor.rises ? own >= stop->own : own <= stop->own);
}

static bool
reached_target(const struct job_spec *spec, const struct after_round *r)
{
	const struct stop_spec *stop = &spec->stop;

	if (reached_own(spec, r->own))
		return true;
	return r->evaluated &&
	    ((stop->has_accuracy && isfinite(r->accuracy) && r->accuracy >= stop->accuracy) ||
		(stop->has_loss && isfinite(r->loss) && r->loss <= stop->loss));
}

__attribute__((format(printf, 3, 4))) static void
change(struct after *out, enum job_state state, const char *format, ...)
{
	va_list args;

	out->job_state = state;
	va_start(args, format);
	vsnprintf(out->job_reason, sizeof(out->job_reason), format, args);
	va_end(args);
}

enum after_limit
after_reached(const struct stop_spec *stop, const struct after_progress *p)
{
	if (stop->rounds > 0 && p->round >= stop->rounds)
		return AFTER_ROUNDS;
	if (stop->reports > 0 && p->reports >= stop->reports)
		return AFTER_REPORTS;
	return stop->seconds > 0 && p->seconds >= stop->seconds ? AFTER_SECONDS : AFTER_NO_LIMIT;
}

/* NULL: the job goes on. */
static const char *
limit_text(const struct after_round *r)
{
	static const char *const texts[] = {[AFTER_ROUNDS] = "all rounds done",
	    [AFTER_REPORTS] = "all reports are in",
	    [AFTER_SECONDS] = "its time is over"};

	return r->limit == AFTER_REPORTS && !r->committed ? NULL : texts[r->limit];
}

/* Devices measure the base of a round: the model that the last one made they have not seen. What a guard went back to, and the base
 * of a round that failed, they have. */
static bool
is_unmeasured(const struct job_spec *spec, const struct after_round *r)
{
	return spec->recipe.evaluate_by == EVALUATE_DEVICES && r->committed && !r->turn->back;
}

static void
measure_last(struct after *out, const struct after_round *r)
{
	size_t len = strlen(out->job_reason);

	/* Somebody has stopped it. */
	if (!(r->actions & ROUND_DO_BEGIN))
		return;
	out->begin_evaluation = r->has_evaluators;
	if (r->has_evaluators)
		out->job_state = JOB_UNKNOWN;
	else
		snprintf(out->job_reason + len, sizeof(out->job_reason) - len,
		    "; its last model has no figure: fewer devices than the quorum evaluate");
}

void
after_decide(struct after *out, const struct job_spec *spec, const struct after_round *r)
{
	const struct rate_control_turn *turn = r->turn;
	bool target = reached_target(spec, r);
	const char *last = limit_text(r);

	*out = (struct after){.begin_next = r->actions & ROUND_DO_BEGIN};
	if (r->actions & ROUND_DO_PAUSE)
		change(out, JOB_PAUSED, "%d rounds in a row were not finite", ROUND_FAILURES);
	if (turn->verdict == GUARD_PAUSE || turn->verdict == GUARD_ROLLBACK_PAUSE)
		change(out, JOB_PAUSED, "%s", turn->reason);
	if (turn->verdict == GUARD_STOP && !target)
		change(out, JOB_STOPPED, "%s", turn->reason);
	else if (target)
		change(out, JOB_DONE, "target reached");
	else if (last)
		change(out, JOB_DONE, "%s%s", last, turn->back ? "; the last were bad" : "");
	if (out->job_state == JOB_STOPPED || out->job_state == JOB_DONE)
		out->begin_next = false;
	if (out->job_state == JOB_DONE && is_unmeasured(spec, r))
		measure_last(out, r);
}

void
after_evaluated(struct after *out, const struct after_evaluation *v, char why[128])
{
	const char *between = v->reason[0] ? "; its last model has no figure: " : "not evaluated: ";

	*out = (struct after){.begin_next = false};
	why[0] = '\0';
	if (v->known) {
		change(out, JOB_DONE, "%s", v->reason[0] ? v->reason : "evaluated");
		return;
	}
	if (v->reports == 0)
		snprintf(why, 128, "no device reported before the deadline");
	else if (v->reports < v->quorum)
		snprintf(why, 128, "%u of %u reports before the deadline", v->reports, v->quorum);
	else
		snprintf(why, 128, "the reports hold too few figures");
	change(out, JOB_DONE, "%s%s%s", v->reason, between, why);
}
