#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "engine_inside.h"
#include "health.h"
#include "log.h"

#define FIRST_MS 1000
#define LONGEST_MS 60000

/* Lock held. */
static void
fold_later(struct engine *g, struct engine_job *j, const struct why *why)
{
	uint64_t pause = FIRST_MS;

	for (unsigned i = 0; i < j->fold_failures && pause < LONGEST_MS; i++)
		pause *= 2;
	if (pause > LONGEST_MS)
		pause = LONGEST_MS;
	j->fold_failures++;
	engine_fold_at(g, j, clock_ms() + pause);
	snprintf(j->reason, sizeof(j->reason), "the round waits to be folded: %.90s", why->text);
	log_event(LOG_LEVEL_ERROR, "round.delayed", LOG_S("job", j->hex),
	    LOG_U("round", j->row.round), LOG_D("seconds", (double)pause / 1000),
	    LOG_S("why", why->text));
}

/* Back to an open, paused round that has what it had: resuming folds it again. Lock held. */
static void
set_aside(struct engine *g, struct engine_job *j, const struct why *why)
{
	uint32_t accepted = j->round.accepted;

	log_event(LOG_LEVEL_ERROR, "round.failed", LOG_S("job", j->hex),
	    LOG_U("round", j->row.round), LOG_S("why", why->text));
	engine_step(g, j, ROUND_PAUSE, 0);
	engine_step(g, j, ROUND_BEGIN, accepted);
	engine_set_state(g, j, JOB_PAUSED, why->text);
}

void
engine_fold_failed(struct engine *g, const struct engine_fold *f, enum err e, const struct why *why)
{
	struct engine_job *j = f->job;
	bool passes = health_passes(e);

	if (passes)
		health_note(g->services->health, e, j->model_bytes, why->text);
	lock_take(&g->lock);
	if (j->round.state == ROUND_FOLDING && passes)
		fold_later(g, j, why);
	else if (j->round.state == ROUND_FOLDING)
		set_aside(g, j, why);
	lock_release(&g->lock);
}

void
engine_retry(struct engine *g)
{
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j; j = engine_next(g, j, &seen))
		if (j->fold_retry_ms > 0)
			engine_fold_at(g, j, 1);
	lock_release(&g->lock);
}

bool
engine_retry_due(struct engine_job *j, uint64_t now_ms)
{
	if (j->fold_retry_ms == 0 || j->fold_retry_ms > now_ms)
		return false;
	j->fold_retry_ms = 0;
	return j->round.state == ROUND_FOLDING;
}
