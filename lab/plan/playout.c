#include "playout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "play.h"
#include "refuse.h"

struct taking {
	struct plan_playout *out;
	size_t room;
	bool full; /* no memory */
};

static void
take_line(void *context, const struct simulate_line *line)
{
	struct taking *t = context;
	struct plan_playout *c = t->out;

	if (line->evaluation || line->abandoned)
		return;
	double *all = bytes_grow(c->round_seconds, (size_t)c->played, &t->room, sizeof(*all));
	t->full |= !all;
	if (!all)
		return;
	c->round_seconds = all;
	all[c->played++] = (double)(line->ended_us - line->began_us) / 1e6;
}

static bool
is_full(void *context)
{
	return ((const struct taking *)context)->full;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* How many rounds of these the job will have, if it was not played to its end. */
static double
rounds_of(const struct plan_playout *c, const struct stop_spec *stop)
{
	double rounds = stop->rounds > 0 ? (double)stop->rounds : INFINITY;

	if (c->played == 0)
		return 0;
	if (stop->reports > 0 && c->reports > 0)
		rounds = fmin(
		    rounds, ceil((double)stop->reports * (double)c->played / (double)c->reports));
	if (stop->seconds > 0 && c->seconds > 0)
		rounds = fmin(rounds, ceil(stop->seconds * (double)c->played / c->seconds));
	return isfinite(rounds) ? rounds : 0;
}

static double
share_reached(const struct simulate_result *r, size_t devices)
{
	size_t reached = 0;

	for (size_t i = 0; i < devices; i++)
		reached += r->folded[i] > 0;
	return devices > 0 ? (double)reached / (double)devices : 0;
}

static void
take_result(
    struct plan_playout *c, const struct plan_playout_want *want, const struct simulate_result *r)
{
	c->reports = r->reports;
	c->bytes_up = r->bytes_up;
	c->bytes_down = r->bytes_down;
	c->seconds = (double)r->us / 1e6;
	c->device_seconds = (double)r->device_us / 1e6;
	c->wasted_seconds = (double)r->wasted_us / 1e6;
	c->reports_share = share_reached(r, want->fleet->count);
	c->stuck = r->end == SIMULATE_STUCK;
	snprintf(c->reason, sizeof(c->reason), "%s", r->reason);
	c->rounds = r->end == SIMULATE_DONE ? c->played : (uint64_t)rounds_of(c, &want->job->stop);
	if (c->played > 0)
		qsort(c->round_seconds, (size_t)c->played, sizeof(*c->round_seconds), compare);
}

static uint64_t
rounds_to_play(const struct job_spec *job)
{
	uint64_t most = PLAN_PLAYOUT_TASKS / job->round.goal + 1;

	return most < PLAN_PLAYOUT_ROUNDS ? most : PLAN_PLAYOUT_ROUNDS;
}

/* With the nth draw of the fleet. */
static enum err
play_once(
    struct plan_playout *out, const struct plan_playout_want *want, unsigned n, struct why *why)
{
	struct fleet fleet = *want->fleet;
	struct taking taking = {.out = out};
	struct simulate_result result;
	const struct simulate_options options = {
	    .setup = {.job = want->job,
		.text = want->text,
		.len = want->len,
		.settings = want->settings,
		.init = want->init,
		.threads = 1},
	    .fleet = &fleet,
	    .data = settings_find_data(want->settings, want->job->recipe.data.name),
	    .jobs = 1,
	    .rounds = rounds_to_play(want->job),
	    .seed = want->job->seed,
	    .line = take_line,
	    .stop = is_full,
	    .context = &taking,
	};

	fleet.seed += n;
	*out = (struct plan_playout){.rounds = 0};
	enum err e = simulate_refuse(&options, why);
	if (e)
		return e;
	e = simulate_play(&result, &options, NULL, why);
	if (e == ERR_INVALID) {
		out->stuck = true;
		snprintf(out->reason, sizeof(out->reason), "%s", why->text);
		e = ERR_OK;
	} else if (!e && taking.full)
		e = err_set(why, ERR_NOMEM, "no memory for the rounds");
	if (!e && !out->stuck)
		take_result(out, want, &result);
	simulate_result_deinit(&result);
	return e;
}

enum err
plan_playout_play(struct plan_playout *out, const struct plan_playout_want *want, struct why *why)
{
	const unsigned draws = want->fleet->comes_and_goes ? PLAN_PLAYOUT_DRAWS : 1;
	char reason[sizeof(out->reason)] = "";
	enum err e = play_once(out, want, 0, why);

	for (unsigned i = 1; i < draws && !e && out->stuck; i++) {
		if (!reason[0])
			snprintf(reason, sizeof(reason), "%s", out->reason);
		plan_playout_deinit(out);
		e = play_once(out, want, i, why);
		out->waits = i;
	}
	if (reason[0])
		snprintf(out->reason, sizeof(out->reason), "%s", reason);
	return e;
}

void
plan_playout_deinit(struct plan_playout *c)
{
	free(c->round_seconds);
	*c = (struct plan_playout){.rounds = 0};
}

double
plan_playout_quantile(const struct plan_playout *c, double share)
{
	if (c->played == 0)
		return NAN;
	size_t at = (size_t)(share * (double)(c->played - 1) + 0.5);
	return c->round_seconds[at];
}
