#include <math.h>
#include <string.h>

#include "clock.h"
#include "engine_inside.h"

/* What is read of a job all over: its open round's row. */

bool
engine_evaluates(const struct engine_job *j)
{
	return j->row.state == OUTCOME_EVALUATING;
}

void
engine_open_row(
    struct store_round *r, const struct engine_job *j, uint64_t round, const uint8_t base[32])
{
	*r = (struct store_round){.round = round,
	    .state = j->work->spec.only_evaluates ? OUTCOME_EVALUATING : OUTCOME_OPEN,
	    .goal = j->work->terms.round.goal,
	    .loss = NAN,
	    .accuracy = NAN,
	    .norm = NAN,
	    .eval_own = NAN,
	    .opened_at = clock_wall(),
	    .opened_ms = clock_ms()};
	memcpy(r->job, j->id, 16);
	memcpy(r->base, base, 32);
}
