#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "hex.h"
#include "jobs_inside.h"

/* One job in memory, and what is read of it all over. */

static void
work_free(struct job_work *w)
{
	if (!w)
		return;
	job_deinit(&w->spec);
	tensor_table_deinit(&w->table);
	speeds_deinit(&w->speeds);
	free(w);
}

void
job_empty(struct job *j)
{
	work_free(j->work);
	free(j->points);
	free(j->invites);
	free(j->slots);
	free(j->refusals.items);
	free(j->candidates);
	free(j->members);
	free(j->evaluators);
	j->work = NULL;
	change_facts(j)->work = NULL;
	j->points = NULL;
	j->invites = NULL;
	j->slots = NULL;
	j->refusals = (struct job_refusals){.count = 0};
	j->candidates = NULL;
	j->members = NULL;
	j->evaluators = NULL;
	j->invite_count = j->invite_room = 0;
	j->candidate_count = j->candidate_room = 0;
	j->member_count = 0;
	j->point_count = 0;
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
	memcpy(change_facts(j)->id, id, 16);
	hex_encode(change_facts(j)->hex, id, 16);
	change_facts(j)->ended_at = NAN;
	j->pace.expiry_ms = UINT64_MAX;
	change_facts(j)->place = DEVICE_STATUS_NO_PLACE;
	j->member = (struct share_member){.use = share_none(), .share = 1};
	return j;
}

bool
job_evaluates(const struct job *j)
{
	return j->facts.row.state == OUTCOME_EVALUATING;
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
	memcpy(r->job, j->facts.id, 16);
	memcpy(r->base, base, 32);
}

uint64_t
job_memory(const struct job *j)
{
	const struct job_work *w = j->work;
	const struct recipe *r = &w->spec.recipe;

	return sizeof(*j) + sizeof(*w) + recipe_text_bytes(r->text) +
	    r->net.layer_count * sizeof(*r->net.layers) +
	    r->net.class_weight_count * sizeof(*r->net.class_weights) +
	    r->rule_count * sizeof(*r->rules) +
	    w->spec.select.device_count * sizeof(*w->spec.select.devices) +
	    w->table.count * sizeof(*w->table.items) +
	    w->spec.aggregate.variates * sizeof(*j->members);
}

struct job_pace *
job_pace(struct job *j)
{
	return &j->pace;
}

struct round *
job_round(struct job *j)
{
	return &change_facts(j)->round;
}

struct job_stuck *
job_stuck(struct job *j)
{
	(void)change_facts(j);
	return &j->work->stuck;
}

struct job_refusals *
job_refusals(struct job *j)
{
	return &j->refusals;
}

struct engine_central *
job_central(struct job *j)
{
	(void)change_facts(j);
	return j->work ? &j->work->central : NULL;
}

struct speeds *
job_speeds(struct job *j)
{
	return j->work ? &j->work->speeds : NULL;
}

struct engine_differences *
job_differences(struct job *j)
{
	return j->work ? &j->work->differences : NULL;
}
