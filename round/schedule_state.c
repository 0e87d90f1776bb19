#include "schedule_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool
schedule_state_matters(const struct job_spec *spec)
{
	return spec->guard.on || spec->aggregate.scale.by != SCALE_NONE;
}

struct schedule_state
schedule_state_start(void)
{
	return (struct schedule_state){.scale = scale_start()};
}

static void
explain(const struct job_spec *job, double value, const struct guard_point *best,
    struct schedule_turn *t)
{
	const struct guard_spec *spec = &job->guard;
	static const char *const does[] = {[GUARD_CALM] = "",
	    [GUARD_BAD] = "",
	    [GUARD_STOP] = "the job is stopped",
	    [GUARD_PAUSE] = "the job is paused",
	    [GUARD_ROLLBACK] = "back to its model",
	    [GUARD_ROLLBACK_PAUSE] = "back to its model, and paused"};
	const char *metric = spec->metric == GUARD_ACCURACY ? "accuracy"
	    : spec->metric == GUARD_LOSS		    ? "loss"
							    : job->monitor.name;

	/* The accuracy of what gives no numbers, and a loss without a sign. */
	if (!isfinite(value))
		value = spec->metric == GUARD_ACCURACY ? 0 : (double)NAN;
	if (best)
		snprintf(t->reason, sizeof(t->reason),
		    "guard: %.30s %.6g, after %.6g of round %" PRIu64 "; %s", metric, value,
		    best->value, best->round, does[t->verdict]);
	else
		snprintf(t->reason, sizeof(t->reason), "guard: %.30s %.6g; %s", metric, value,
		    does[t->verdict]);
}

/* The coordinator evaluates the new model, devices the base. */
static struct guard_point
judged(const struct schedule_state *c, const struct job_spec *spec, const struct schedule_round *r)
{
	bool own = spec->guard.metric == GUARD_OWN;
	bool base = own || spec->recipe.evaluate_by == EVALUATE_DEVICES;
	bool accuracy = spec->guard.metric == GUARD_ACCURACY;
	struct guard_point p = {.value = own ? r->own
		: accuracy		     ? r->accuracy
					     : r->loss,
	    .round = base || r->failed ? c->base_round : r->round};

	/* Worse than any, even where no other is known. */
	if (accuracy && r->accuracy == 0 && !isfinite(r->loss))
		p.value = -INFINITY;
	memcpy(p.model, base ? r->base : r->model, 32);
	memcpy(p.state, base ? c->base_state : r->state, 32);
	/* Nobody goes on from an older base (job_parse), so that no state has to be kept with it. */
	if (base && r->measured > 0) {
		p.round = r->measured - 1;
		memcpy(p.model, r->measured_base, 32);
		memset(p.state, 0, 32);
	}
	return p;
}

void
schedule_state_step(struct schedule_state *c, const struct job_spec *spec,
    const struct schedule_round *r, struct schedule_turn *out)
{
	const struct guard_point p = judged(c, spec, r);

	*out = (struct schedule_turn){.round = r->failed ? c->base_round : r->round};
	memcpy(out->base, r->model, 32);
	memcpy(out->state, r->state, 32);
	if (r->evaluated && r->measured > 0)
		c->metric_round = r->measured - 1;
	else if (r->evaluated)
		c->metric_round = spec->recipe.evaluate_by == EVALUATE_DEVICES || r->failed
		    ? c->base_round
		    : r->round;
	bool known = spec->guard.metric == GUARD_OWN ? isfinite(r->own) : r->evaluated;
	out->verdict = guard_step(&c->guard, &spec->guard, &p, known);
	const struct guard_point *best = guard_best(&c->guard);
	/* A job that is stopped has the best as its last model. */
	out->back = best && out->verdict >= GUARD_STOP && out->verdict != GUARD_PAUSE;
	if (out->back) {
		out->round = best->round;
		memcpy(out->base, best->model, 32);
		memcpy(out->state, best->state, 32);
	}
	if (out->verdict >= GUARD_STOP)
		explain(spec, p.value, best, out);
	/* A round of no reports is no change of the fleet. */
	out->factor = r->reports > 0 ? scale_next(&c->scale, &spec->aggregate.scale, r->reports)
				     : c->scale.used;
	c->base_round = out->round;
	memcpy(c->base, out->base, 32);
	memcpy(c->base_state, out->state, 32);
}
