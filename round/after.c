#include "after.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "round.h"

static bool
reached_target(const struct stop_spec *stop, const struct after_round *r)
{
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

void
after_decide(struct after *out, const struct job_spec *spec, const struct after_round *r)
{
	const struct schedule_turn *turn = r->turn;
	bool target = reached_target(&spec->stop, r);
	bool last = spec->stop.rounds > 0 && r->round >= spec->stop.rounds;

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
		change(out, JOB_DONE, "all rounds done%s", turn->back ? "; the last were bad" : "");
	if (out->job_state == JOB_STOPPED || out->job_state == JOB_DONE)
		out->begin_next = false;
}
