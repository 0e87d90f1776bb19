#include "budget.h"
#include "config.h"
#include "cpu.h"
#include "evalset.h"
#include "job_facts.h"
#include "job_needs.h"
#include "server_step.h"
#include "shared.h"
#include "tensor.h"
#include "vectors.h"

/* The bytes and operations that a job needs. */

void
sizes_note_fold(struct job_work *w)
{
	const struct job_spec *spec = &w->spec;

	w->cost =
	    fold_cost(&spec->aggregate, &spec->download, &w->table, spec->round.goal, cpu_count());
	if (spec->recipe.evaluate_by == EVALUATE_COORDINATOR)
		w->cost.bytes += evalset_net_bytes(&spec->recipe);
}

enum err
sizes_check_fold(const struct engine_uses *u, const struct job_work *w, struct why *why)
{
	const struct config *c = shared_take(u->config);
	const uint64_t work = c->fold_work,
		       bytes = budget_large(budget_all(u->budget, c->work_bytes));

	shared_give(u->config, c);
	if (w->spec.only_evaluates)
		return ERR_OK;
	if (work > 0 && w->cost.work > (double)work)
		return err_set(why, ERR_LIMIT,
		    "folding a round takes %.3g operations, and the coordinator's [limits] "
		    "fold_work is %.3g: a smaller model, fewer reports or another rule take less",
		    w->cost.work, (double)work);
	if (w->cost.bytes > bytes)
		return err_set(why, ERR_LIMIT,
		    "folding a round takes %llu bytes of memory; the coordinator's [limits] "
		    "work_bytes allow %llu: ask its administrator",
		    (unsigned long long)w->cost.bytes, (unsigned long long)bytes);
	return ERR_OK;
}

uint64_t
sizes_payload(const struct job *j)
{
	const struct job_facts *facts = job_facts(j);

	return vectors_times(
	    recipe_upload_most(&facts->work->spec.recipe.upload, facts->work->table.elements),
	    facts->work->spec.aggregate.variates > 0);
}

uint64_t
sizes_state(const struct job *j)
{
	const struct job_spec *spec = &job_facts(j)->work->spec;

	return server_step_bytes(&spec->aggregate, &spec->download, &job_facts(j)->work->table);
}
