#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "job_facts.h"
#include "registry.h"
#include "store.h"

/* Who may work on a job, evaluate it, and read of it. */

bool
jobs_evaluator(struct engine *g, const struct job_spec *spec, const uint8_t device[32])
{
	return spec->recipe.evaluate_by == EVALUATE_PROGRAM &&
	    registry_matches(jobs_registry(g), device, &spec->evaluators);
}

bool
jobs_evaluator_of(struct engine *g, const struct job *j, const uint8_t device[32])
{
	return job_facts(j)->work && jobs_evaluator(g, &job_facts(j)->work->spec, device);
}

bool
jobs_evaluator_reads(
    struct engine *g, const struct job *j, const uint8_t device[32], const uint8_t model[32])
{
	const struct job_facts *facts = job_facts(j);

	return facts->work && facts->work->central.open &&
	    memcmp(facts->work->central.model, model, 32) == 0 && jobs_evaluator_of(g, j, device);
}

static bool
is_in_share(const struct select_spec *s, const uint8_t job[16], const uint8_t device[32])
{
	/* Mostly all are meant, and this is asked of every job at every turn: no hash then. */
	if (s->percent[0] <= 0 && s->percent[1] >= 100)
		return true;
	double place = choice_percent(job, device);
	return place >= s->percent[0] && place < s->percent[1];
}

bool
jobs_selects(
    struct engine *g, const uint8_t job[16], const struct job_spec *spec, const uint8_t device[32])
{
	return is_in_share(&spec->select, job, device) &&
	    registry_matches(jobs_registry(g), device, &spec->select) &&
	    !jobs_evaluator(g, spec, device);
}

enum wait_reason
jobs_ineligible(struct engine *g, const struct job *j, const uint8_t device[32])
{
	const struct job_facts *facts = job_facts(j);

	return facts->work && jobs_selects(g, facts->id, &facts->work->spec, device)
	    ? WAIT_NONE
	    : WAIT_INELIGIBLE;
}

static enum err
read_document(struct store_db *db, void *arg, struct why *why)
{
	struct store_job *row = arg;

	(void)why;
	return store_job_get(db, row->id, row);
}

bool
jobs_past_selects(struct engine *g, const uint8_t job[16], const uint8_t device[32], uint64_t *read)
{
	struct store_job row = {.document = NULL};
	struct job_spec spec;

	memcpy(row.id, job, sizeof(row.id));
	if (store_read(jobs_uses(g).store, read_document, &row, NULL))
		return false;
	if (read)
		*read += row.document_len;
	enum err e = job_parse(&spec, row.document, row.document_len, NULL);
	free(row.document);
	if (e)
		return false;
	bool selects = jobs_selects(g, job, &spec, device) || jobs_evaluator(g, &spec, device);
	job_deinit(&spec);
	return selects;
}

/* Has the device work to do for it? */
bool
jobs_concerns(struct engine *g, const struct job *j, const uint8_t device[32])
{
	return !jobs_ineligible(g, j, device) || jobs_evaluator_of(g, j, device);
}
