#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "codec.h"
#include "fault.h"
#include "hex.h"
#include "job_needs.h"
#include "log.h"
#include "manifest.h"
#include "problem.h"
#include "registry.h"
#include "report.h"
#include "spent.h"
#include "store.h"
#include "tasks_inside.h"
#include "wake.h"

/* Jobs that a program evaluates on a set of its own (EVALUATE_PROGRAM): the model that a round makes waits, folded, for the first report
 * of a device that the job names as evaluator. */

/* --- tasks */

static void
task_id(const struct engine *g, const struct job *j, uint64_t round, const uint8_t device[32],
    uint8_t out[16])
{
	invites_task_id(g, j, round | STORE_EVALUATION_TASK, device, out);
}

static bool
gave_up(const struct engine_central *c, const uint8_t device[32])
{
	for (size_t i = 0; i < c->gave_up_count; i++)
		if (memcmp(c->gave_up[i], device, 32) == 0)
			return true;
	return false;
}

static bool
is_evaluating(const struct engine_central *c, uint64_t now)
{
	return c->open && !c->reported && now < c->until_ms;
}

/* What the device's program cannot do of it; data and layers are the program's own matter. */
static enum wait_reason
lacks(const struct recipe *r, const struct offer *o)
{
	if (!tasks_offer_names(o->features, o->feature_count, RECIPE_FEATURE_EVALUATE_PROGRAM) ||
	    !tasks_offer_names(o->evaluators, o->evaluator_count, r->trainer))
		return WAIT_NO_TRAINER;
	return recipe_feature_missing(r, codec_find_name(r->codec), o->features, o->feature_count)
	    ? WAIT_OLD_AGENT
	    : WAIT_NONE;
}

static enum wait_reason
judge(struct engine *g, const struct job *j, const uint8_t device[32], const struct offer *o,
    uint64_t now)
{
	const struct engine_central *c = &job_facts(j)->work->central;
	const struct invite *trained = invites_find(j, device);
	enum wait_reason why = tasks_offer_unready(o);

	if (!why)
		why = lacks(&job_facts(j)->work->spec.recipe, o);
	if (!why && !is_evaluating(c, now))
		why = WAIT_NOT_SELECTED;
	if (!why && gave_up(c, device))
		why = WAIT_ABORTED;
	/* It became an evaluator since: it does not rate what it has a part in. */
	if (!why && trained && trained->place.now > 0)
		why = WAIT_REPORTED;
	if (!why && !registry_is_active(jobs_uses(g).registry, device))
		why = WAIT_INELIGIBLE;
	return !why && tasks_offer_rests(o, j) ? WAIT_RESTING : why;
}

enum wait_reason
tasks_central_ask(struct engine *g, struct job *j, const uint8_t device[32],
    const struct offer *offer, struct task *out)
{
	const struct job_facts *facts = job_facts(j);
	const struct engine_central *c = &facts->work->central;
	/* One time for both: the deadline is not over between being looked at and being told. */
	const uint64_t now = clock_ms();
	uint8_t id[16];

	enum wait_reason why = judge(g, j, device, offer, now);
	if (why)
		return why;
	*out = (struct task){.kind = TASK_EVALUATE,
	    .round = c->round,
	    .model_bytes = c->bytes,
	    .seed = facts->work->spec.seed,
	    .deadline_s = (double)(c->until_ms - now) / 1000};
	task_id(g, j, c->round, device, id);
	hex_encode(out->task, id, 16);
	hex_encode(out->job, facts->id, 16);
	hex_encode(out->model, c->model, 32);
	if (tasks_offer_unsent(offer, out->task)) {
		*out = (struct task){.wait = true};
		return WAIT_UNSENT;
	}
	out->recipe.text = recipe_text_hold(facts->work->spec.recipe.text);
	FAULT("task.given");
	return WAIT_NONE;
}

bool
tasks_central_give_up(struct engine *g, struct job *j, const uint8_t device[32],
    const uint8_t task[16], struct abort_cause cause)
{
	struct engine_central *c = job_central(j);
	uint8_t id[16];
	char hex[17];

	if (!c || !c->open || !jobs_evaluator_of(g, j, device))
		return false;
	task_id(g, j, c->round, device, id);
	if (!hash_equal(id, task, sizeof(id)))
		return false;
	c->cause = cause;
	if (!abort_reason_passes(cause.reason) && !gave_up(c, device) &&
	    c->gave_up_count < ENGINE_CENTRAL_GAVE_UP)
		memcpy(c->gave_up[c->gave_up_count++], device, 32);
	jobs_counts(g)->tasks_aborted_total++;
	jobs_counts(g)->aborted[cause.reason]++;
	hex_encode(hex, device, 8);
	if (spent_log(jobs_uses(g).spent, jobs_uses(g).config, device, 0))
		log_event(LOG_LEVEL_INFO, "task.aborted", LOG_S("job", job_facts(j)->hex),
		    LOG_U("round", c->round), LOG_S("device", hex), LOG_S("reason", cause.word));
	return true;
}

/* --- reports */

bool
tasks_central_claims(const struct job *j, const struct manifest *m)
{
	return job_facts(j)->work &&
	    job_facts(j)->work->spec.recipe.evaluate_by == EVALUATE_PROGRAM &&
	    manifest_kind(m) == TASK_EVALUATE;
}

static bool
is_reported(const struct engine_central *c, uint64_t round, const uint8_t model[32])
{
	return c->reported && c->round == round && memcmp(c->model, model, 32) == 0;
}

/* Is a report of this round and model taken now? What it is of need not be there at the moment: a round that a start, or a failure, has
 * interrupted is folded again, mostly to the same model. Lock held. */
static enum problem_type
takes(const struct job *j, uint64_t round, const uint8_t model[32], struct why *why)
{
	const struct job_facts *facts = job_facts(j);
	const struct engine_central *c = &facts->work->central;

	if (!c->open && round == facts->row.round && states_job_lives(facts->state) &&
	    !is_reported(c, round, model)) {
		err_set(why, ERR_AGAIN, "round %llu waits to be folded: try again later",
		    (unsigned long long)round);
		return PROBLEM_UNAVAILABLE;
	}
	if (round != c->round || !is_evaluating(c, clock_ms())) {
		err_set(why, ERR_STATE,
		    "the evaluation of round %llu is over: the first report of an evaluator "
		    "counts, and none after evaluate.deadline_s",
		    (unsigned long long)round);
		return PROBLEM_ROUND_CLOSED;
	}
	if (memcmp(model, c->model, 32) == 0)
		return PROBLEM_NONE;
	err_set(why, ERR_STATE, "the round has come to another model");
	return PROBLEM_WRONG_BASE;
}

enum problem_type
tasks_central_claim(struct engine *g, const struct job *j, const struct manifest *m,
    const char *path_task, struct why *why)
{
	uint8_t id[16];
	char hex[33];

	if (!jobs_evaluator_of(g, j, m->device)) {
		err_set(why, ERR_DENIED, "this device is none of the job's evaluators");
		return PROBLEM_WRONG_TASK;
	}
	task_id(g, j, m->round, m->device, id);
	hex_encode(hex, id, 16);
	if (m->round >= STORE_EVALUATION_TASK || !hash_equal(id, m->task, 16) ||
	    strcmp(path_task, hex) != 0) {
		err_set(why, ERR_DENIED, "the task is not this device's in this round");
		return PROBLEM_WRONG_TASK;
	}
	enum problem_type problem = takes(j, m->round, m->base, why);
	if (problem || m->examples > 0)
		return problem;
	err_set(why, ERR_INVALID, "examples is 0");
	return PROBLEM_NO_EXAMPLES;
}

enum err
tasks_central_take(struct job *j, const struct engine_claim *claim)
{
	struct engine_central *c = job_central(j);
	const enum problem_type problem = takes(j, claim->round, claim->base, NULL);

	if (problem)
		return problem == PROBLEM_UNAVAILABLE ? ERR_AGAIN : ERR_STATE;
	if (c->taken)
		return ERR_AGAIN;
	c->taken = true;
	return ERR_OK;
}

void
tasks_central_settle(struct job *j, const struct engine_claim *claim, bool durable)
{
	struct engine_central *c = job_central(j);

	/* The round may have come to another model meanwhile, which nobody has measured yet. */
	if (!c || claim->round != c->round || memcmp(claim->base, c->model, 32) != 0)
		return;
	c->taken = false;
	c->reported |= durable;
}

/* --- for the folder */

void
tasks_central_begin(
    struct engine *g, const struct engine_fold *f, const uint8_t model[32], uint64_t bytes)
{
	const uint64_t now = clock_ms();

	jobs_lock(g);
	struct engine_central *c = job_central(f->job);
	*c = (struct engine_central){.open = true,
	    .round = f->row.round,
	    .bytes = bytes,
	    .until_ms = now + (uint64_t)(f->evaluate_deadline_s * 1000)};
	memcpy(c->model, model, 32);
	jobs_unlock(g);
	wake_ring(jobs_uses(g).wake);
}

enum engine_central_state
tasks_central_look(struct engine *g, const struct engine_fold *f)
{
	jobs_lock(g);
	const struct engine_central *c = &job_facts(f->job)->work->central;
	enum engine_central_state s = CENTRAL_WAITS;
	if (c->reported)
		s = CENTRAL_REPORTED;
	else if (!states_job_lives(job_facts(f->job)->state))
		s = CENTRAL_OVER;
	/* What is on its way to the disk came in time. */
	else if (clock_ms() >= c->until_ms && !c->taken)
		s = CENTRAL_LATE;
	jobs_unlock(g);
	return s;
}

void
tasks_central_why(struct engine *g, const struct engine_fold *f, char out[ENGINE_UNMEASURED_MAX])
{
	struct engine_evaluators e;
	struct abort_cause cause;

	jobs_evaluators(g, f->spec, &e);
	jobs_lock(g);
	cause = job_facts(f->job)->work->central.cause;
	jobs_unlock(g);
	out[0] = '\0';
	if (!jobs_evaluator_missing(out, &e) && cause.word[0])
		snprintf(out, ENGINE_UNMEASURED_MAX,
		    "the evaluator's program gave the task back: %.40s (\"rivulet job show\" has "
		    "its "
		    "last words)",
		    cause.word);
}

void
tasks_central_tell(struct engine *g, const struct engine_fold *f)
{
	char why[ENGINE_UNMEASURED_MAX];

	tasks_central_why(g, f, why);
	jobs_lock(g);
	jobs_note_unmeasured(f->job, why);
	jobs_unlock(g);
}

void
tasks_central_end(struct engine *g, const struct engine_fold *f)
{
	jobs_lock(g);
	struct engine_central *c = job_central(f->job);
	struct engine_central over = {.round = c->round, .reported = c->reported};
	/* Whoever comes second is told so at once, also before the round is committed. */
	memcpy(over.model, c->model, sizeof(over.model));
	*c = over;
	jobs_unlock(g);
}
