#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "hex.h"
#include "job_struct.h"

/* One job in memory, and what is read of it all over. */

static void
work_free(struct engine_work *w)
{
	if (!w)
		return;
	job_deinit(&w->spec);
	tensor_table_deinit(&w->table);
	free(w->points);
	free(w->regulars);
	tempo_deinit(&w->tempo);
	free(w);
}

void
job_empty(struct job *j)
{
	work_free(j->work);
	free(j->invites);
	free(j->refusals);
	free(j->candidates);
	free(j->members);
	free(j->evaluators);
	j->work = NULL;
	j->invites = NULL;
	j->refusals = NULL;
	j->candidates = NULL;
	j->members = NULL;
	j->evaluators = NULL;
	j->invite_count = j->invite_room = 0;
	j->refusal_count = j->refusal_room = 0;
	j->candidate_count = j->candidate_room = 0;
	j->member_count = 0;
	j->evaluator_count = j->evaluator_room = 0;
}

void
job_free(struct job *j)
{
	if (j)
		job_empty(j);
	free(j);
}

struct job *
job_blank(const uint8_t id[16])
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	memcpy(j->id, id, 16);
	hex_encode(j->hex, id, 16);
	j->ended_at = NAN;
	j->expiry_ms = UINT64_MAX;
	j->place = STANDING_NO_PLACE;
	j->member = (struct share_member){.use = share_none(), .share = 1};
	return j;
}

bool
job_evaluates(const struct job *j)
{
	return j->row.state == OUTCOME_EVALUATING;
}

void
job_open_row(struct store_round *r, const struct job *j, uint64_t round, const uint8_t base[32])
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
