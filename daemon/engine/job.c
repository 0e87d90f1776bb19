#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine_inside.h"
#include "hex.h"
#include "json.h"

/* One job in memory: what its document makes of it. */

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
engine_job_empty(struct engine_job *j)
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
engine_job_free(struct engine_job *j)
{
	if (j)
		engine_job_empty(j);
	free(j);
}

static enum err
read_document(struct engine_job *j, const char *text, size_t len, struct why *why)
{
	struct engine_work *w = j->work;

	w->schedule = schedule_state_start();
	w->stamp.normalise_max = -1;
	enum err e = job_parse(&w->spec, text, len, why);
	if (e)
		return e;
	/* The coordinator never looks at the names of classes. */
	json_free(w->spec.recipe.data.classes);
	w->spec.recipe.data.classes = NULL;
	memcpy(j->name, w->spec.name, sizeof(j->name));
	j->priority = w->spec.priority;
	j->only_evaluates = w->spec.only_evaluates;
	j->is_guarded = w->spec.guard.on;
	j->monitor = w->spec.monitor;
	j->keep = w->spec.keep;
	override_terms(&w->terms, &w->spec, &w->overrides);
	j->member.priority = w->terms.priority;
	j->member.share = w->terms.share;
	const struct round_policy policy = engine_terms_policy(j, w->spec.only_evaluates);
	round_init(&j->round, &policy, 0);
	enum err late = engine_late_init(j);
	return late ? late : engine_variate_init(j);
}

enum err
engine_job_new(
    struct engine_job **out, const uint8_t id[16], const char *text, size_t len, struct why *why)
{
	struct engine_job *j = engine_job_blank(id);

	if (j)
		j->work = calloc(1, sizeof(*j->work));
	enum err e =
	    j && j->work ? read_document(j, text, len, why) : err_set(why, ERR_NOMEM, "no memory");
	if (e)
		engine_job_free(j);
	else
		*out = j;
	return e;
}

struct engine_job *
engine_job_blank(const uint8_t id[16])
{
	struct engine_job *j = calloc(1, sizeof(*j));

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
