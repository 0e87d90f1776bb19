#include <stdlib.h>
#include <string.h>

#include "job_struct.h"
#include "json.h"

/* What its document makes of a job. */

static enum err
read_document(struct job *j, const char *text, size_t len, struct why *why)
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
	const struct round_policy policy = terms_policy(j, w->spec.only_evaluates);
	round_init(&j->round, &policy, 0);
	enum err late = jobs_late_init(j);
	return late ? late : jobs_variate_init(j);
}

enum err
jobs_read(struct job **out, const uint8_t id[16], const char *text, size_t len, struct why *why)
{
	struct job *j = job_blank(id);

	if (j)
		j->work = calloc(1, sizeof(*j->work));
	enum err e =
	    j && j->work ? read_document(j, text, len, why) : err_set(why, ERR_NOMEM, "no memory");
	if (e)
		job_free(j);
	else
		*out = j;
	return e;
}
