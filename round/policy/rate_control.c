#include "rate_control.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool
rate_control_matters(const struct job_spec *spec)
{
	return spec->guard.on || spec->aggregate.scale.by != SCALE_NONE;
}

struct rate_control
rate_control_start(void)
{
	return (struct rate_control){.scale = scale_start()};
}

static void
explain(const struct job_spec *job, double value, const struct guard_point *best,
    struct rate_control_turn *t)
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

static bool
by_base(const struct job_spec *spec)
{
	return job_measures_base(spec, spec->guard.metric == GUARD_OWN);
}

/* Does its guard go back to bases that are measured when others are open? */
static bool
keeps_bases(const struct job_spec *spec)
{
	return spec->round.mode == ROUND_MODE_BUFFERED && spec->guard.on &&
	    spec->guard.action == GUARD_DO_ROLLBACK && by_base(spec);
}

/* What the round that has ended started from. */
static void
note_base(struct rate_control *c, const struct schedule_round *r)
{
	struct late_base b = {.round = r->round, .maker = c->base_round};

	memcpy(b.model, r->base, 32);
	memcpy(b.state, c->base_state, 32);
	late_bases_add(&c->bases, &b);
}

/* Those that no round will measure any more: they are older than what is measured, or their tasks are too old for the next round. */
static void
forget_bases(struct rate_control *c, const struct job_spec *spec, const struct schedule_round *r,
    const struct rate_control_turn *turn)
{
	const uint64_t next = r->round + 1, oldest = spec->round.max_staleness;

	if (r->evaluated || isfinite(r->own))
		late_bases_forget(&c->bases, r->measured + 1);
	late_bases_forget(&c->bases, next > oldest ? next - oldest : 0);
	if (turn->back)
		late_bases_branch(&c->bases, turn->base);
}

/* The base that a buffer has measured. A guard that does not go back needs its name alone. False: it is not known any more. */
static bool
measured(const struct rate_control *c, const struct job_spec *spec, const struct schedule_round *r,
    struct guard_point *p)
{
	const struct late_base *b = late_bases_find(&c->bases, r->measured);

	p->round = b ? b->maker : r->measured - 1;
	memcpy(p->model, b ? b->model : r->measured_base, 32);
	if (b)
		memcpy(p->state, b->state, 32);
	else
		memset(p->state, 0, 32);
	return b || !keeps_bases(spec);
}

/* The coordinator and a program evaluate the new model, devices the base. False: nothing is known of it. */
static bool
judged(const struct rate_control *c, const struct job_spec *spec, const struct schedule_round *r,
    struct guard_point *p)
{
	bool own = spec->guard.metric == GUARD_OWN, base = by_base(spec);
	bool accuracy = spec->guard.metric == GUARD_ACCURACY;

	*p = (struct guard_point){.value = own ? r->own
		: accuracy		       ? r->accuracy
					       : r->loss,
	    .round = base || r->failed ? c->base_round : r->round};
	/* Worse than any, even where no other is known. */
	if (accuracy && r->accuracy == 0 && !isfinite(r->loss))
		p->value = -INFINITY;
	memcpy(p->model, base ? r->base : r->model, 32);
	memcpy(p->state, base ? c->base_state : r->state, 32);
	bool known = own ? isfinite(r->own) : r->evaluated;
	return base && r->measured > 0 ? measured(c, spec, r, p) && known : known;
}

void
rate_control_step(struct rate_control *c, const struct job_spec *spec,
    const struct schedule_round *r, struct rate_control_turn *out)
{
	struct guard_point p;

	if (keeps_bases(spec))
		note_base(c, r);
	bool known = judged(c, spec, r, &p);
	*out = (struct rate_control_turn){.round = r->failed ? c->base_round : r->round};
	memcpy(out->base, r->model, 32);
	memcpy(out->state, r->state, 32);
	if (r->evaluated && r->measured > 0 && spec->recipe.evaluate_by == EVALUATE_DEVICES)
		c->metric_round = p.round;
	else if (r->evaluated)
		c->metric_round = spec->recipe.evaluate_by == EVALUATE_DEVICES || r->failed
		    ? c->base_round
		    : r->round;
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
	forget_bases(c, spec, r, out);
	/* A round of no reports is no change of the fleet. */
	out->factor = r->reports > 0 ? scale_next(&c->scale, &spec->aggregate.scale, r->reports)
				     : c->scale.used;
	c->base_round = out->round;
	memcpy(c->base, out->base, 32);
	memcpy(c->base_state, out->state, 32);
}

bool
rate_control_holds_model(const struct rate_control *c, const uint8_t model[32])
{
	for (uint32_t i = 0; i < c->bases.count; i++)
		if (memcmp(c->bases.items[i].model, model, 32) == 0)
			return true;
	return guard_holds_model(&c->guard, model);
}

bool
rate_control_holds(const struct rate_control *c, const uint8_t state[32])
{
	for (uint32_t i = 0; i < c->bases.count; i++)
		if (memcmp(c->bases.items[i].state, state, 32) == 0)
			return true;
	return guard_holds_state(&c->guard, state);
}

uint8_t *
rate_control_held(struct rate_control *c, uint32_t i)
{
	if (i < c->guard.count)
		return c->guard.points[i].state;
	i -= c->guard.count;
	return i < c->bases.count ? c->bases.items[i].state : NULL;
}
