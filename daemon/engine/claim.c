#include "engine.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "engine_inside.h"
#include "hex.h"
#include "log.h"
#include "registry.h"
#include "vectors.h"

/* What comes of tasks: deltas on their way, and tasks that are given back. */

/* What the round's tasks are to end with. Lock held. */
static enum problem_type
claim_kind(const struct engine_job *j, const struct manifest *m, struct why *why)
{
	bool evaluates = engine_evaluates(j);

	if (evaluates != (manifest_kind(m) == TASK_EVALUATE)) {
		err_set(why, ERR_INVALID, "the task is of kind %s",
		    task_kind_name(evaluates ? TASK_EVALUATE : TASK_TRAIN));
		return PROBLEM_WRONG_KIND;
	}
	if (evaluates)
		return engine_claim_examples(j, m, why);
	enum problem_type problem = engine_variate_claim(j, m->device, why);
	return problem ? problem : engine_claim_format(j, m, why);
}

/* The round, task and base of a manifest against the open round. Lock held. */
static enum problem_type
claim_round(struct engine *g, const struct engine_job *j, const struct manifest *m,
    const char *path_task, struct why *why)
{
	uint8_t id[16];
	char hex[33];

	/* Set aside: its deltas will be wanted again once a person has mended it. */
	if (j->round.state == ROUND_ENDED && states_job_lives(j->state)) {
		err_set(why, ERR_STATE, "the job waits for an administrator: %s", j->reason);
		return PROBLEM_UNAVAILABLE;
	}
	if (m->round != j->row.round || !states_job_lives(j->state)) {
		err_set(why, ERR_STATE, "round %llu; the open round is %llu, the job is %s",
		    (unsigned long long)m->round, (unsigned long long)j->row.round,
		    states_job_name(j->state));
		return PROBLEM_STALE_ROUND;
	}
	engine_task_id(g, j, m->round, m->device, id);
	hex_encode(hex, id, 16);
	if (!hash_equal(id, m->task, 16) || strcmp(path_task, hex) != 0) {
		err_set(why, ERR_DENIED, "the task is not this device's in this round");
		return PROBLEM_WRONG_TASK;
	}
	if (memcmp(m->base, j->row.base, 32) != 0) {
		err_set(why, ERR_STATE, "the open round starts from another model");
		return PROBLEM_WRONG_BASE;
	}
	const struct invite *have = engine_find_invite(j, m->device);
	if (have && have->state == INVITE_ACCEPTED) {
		err_set(why, ERR_EXISTS, "a delta of this device was accepted in this round");
		return PROBLEM_USED_TASK;
	}
	if (round_has_closed(&j->round)) {
		err_set(why, ERR_STATE, "round %llu has closed", (unsigned long long)m->round);
		return PROBLEM_ROUND_CLOSED;
	}
	return claim_kind(j, m, why);
}

/* Lock held. */
static void
fill_claim(struct engine_claim *out, const struct engine_job *j, const struct manifest *m)
{
	*out = (struct engine_claim){.kind = manifest_kind(m),
	    .round = m->round,
	    .examples = m->examples,
	    .elements = m->elements,
	    .payload_bytes = m->payload_bytes,
	    .entries = recipe_upload_entries(&j->work->spec.recipe.upload, m->elements),
	    .max_norm = j->work->spec.aggregate.max_norm,
	    .max_examples = j->work->spec.aggregate.max_examples,
	    .has_layers = j->work->spec.recipe.net.layer_count > 0};
	if (j->work->spec.recipe.evaluate_by == EVALUATE_DEVICES) {
		out->figures = j->work->spec.recipe.figures;
		out->class_count = j->work->spec.recipe.data.class_count;
	}
	memcpy(out->job_id, j->id, 16);
	memcpy(out->task, m->task, 16);
	memcpy(out->device, m->device, 32);
}

enum problem_type
engine_claim(struct engine *g, const struct manifest *m, const uint8_t device[32],
    const char *path_task, struct engine_claim *out, struct why *why)
{
	if (memcmp(m->device, device, 32) != 0) {
		err_set(why, ERR_DENIED, "the manifest names another device than the certificate");
		return PROBLEM_WRONG_DEVICE;
	}
	lock_take(&g->lock);
	struct engine_job *j = engine_find(g, m->job);
	enum problem_type problem = PROBLEM_UNKNOWN_JOB;
	if (j)
		problem = claim_round(g, j, m, path_task, why);
	else
		err_set(why, ERR_NOTFOUND, "no such job");
	if (!problem)
		fill_claim(out, j, m);
	lock_release(&g->lock);
	return problem;
}

enum problem_type
engine_claim_report(const struct engine_claim *claim, const struct report *r, struct why *why)
{
	enum err e = ERR_OK;

	if (!r->has_evaluate && claim->kind != TASK_EVALUATE)
		return PROBLEM_NONE;
	if (claim->kind == TASK_EVALUATE && r->eval_examples != claim->examples)
		e = err_set(why, ERR_INVALID, "evaluate.examples is not what the manifest says");
	else if (r->eval_examples > claim->max_examples)
		e = err_set(why, ERR_LIMIT, "evaluate.examples is above aggregate.max_examples");
	/* Neither cross-entropy nor mse ever is; what a model without layers is trained by, nobody here knows. */
	else if (claim->has_layers && r->eval_loss < 0)
		e = err_set(
		    why, ERR_INVALID, "evaluate.loss is negative; a loss of this job is not");
	return e ? PROBLEM_BAD_REPORT : PROBLEM_NONE;
}

enum err
engine_take(struct engine *g, struct engine_claim *claim)
{
	enum err e = ERR_STATE;

	if (!registry_is_active(g->services->registry, claim->device))
		return ERR_DENIED;
	lock_take(&g->lock);
	struct engine_job *j = engine_find(g, claim->job_id);
	/* The invitation is made (or kept) now, so that settling cannot run out of memory. */
	if (j && j->work && j->row.round == claim->round &&
	    (engine_evaluates(j) || !engine_variate_full(j, claim->device))) {
		const struct invite *have = engine_find_invite(j, claim->device);
		bool fresh = !have || have->state >= INVITE_ABORTED;
		if (fresh)
			e = engine_invite(j, claim->device, INVITE_OUT);
		else
			e = have->state == INVITE_OUT ? ERR_OK : ERR_STATE;
		if (!e && !(engine_step(g, j, ROUND_TAKE, fresh) & ROUND_DO_TAKE))
			e = ERR_STATE;
		claim->folded = j->row.round;
	}
	lock_release(&g->lock);
	return e;
}

void
engine_settle(struct engine *g, const struct engine_claim *claim, bool durable, uint64_t body_bytes)
{
	lock_take(&g->lock);
	struct engine_job *j = engine_find(g, claim->job_id);
	struct invite *have = j ? engine_find_invite(j, claim->device) : NULL;
	if (durable) {
		if (have)
			have->state = INVITE_ACCEPTED;
		if (j)
			j->bytes_up += body_bytes;
		g->report.deltas_total += claim->kind == TASK_TRAIN;
		g->report.delta_bytes_total += body_bytes;
	}
	if (j && durable)
		standing_reported(g->services->registry, claim->device, j->place);
	if (j)
		engine_step(g, j, durable ? ROUND_ACCEPTED : ROUND_LOST, 0);
	lock_release(&g->lock);
	if (durable)
		registry_count_report(g->services->registry, claim->device);
}

/* Lock held. */
static void
give_up(struct engine *g, struct engine_job *j, struct invite *v, struct abort_cause cause)
{
	char hex[17];

	v->state = cause.reason == ABORT_STOPPED ? INVITE_STOPPED : INVITE_ABORTED;
	standing_gave_up(g->services->registry, v->device, j->place, cause.reason);
	g->report.tasks_aborted_total++;
	hex_encode(hex, v->device, 8);
	engine_step(g, j, ROUND_GAVE_UP, engine_schedule_blames(j, cause.reason));
	log_event(LOG_LEVEL_INFO, "task.aborted", LOG_S("job", j->hex),
	    LOG_U("round", j->row.round), LOG_S("device", hex), LOG_S("reason", cause.word));
}

enum err
engine_abort(struct engine *g, const uint8_t device[32], const char *task, struct abort_cause cause,
    const char *log)
{
	struct tail tail = {.at_seconds = clock_wall(), .text = (char *)(uintptr_t)log};
	enum err e = ERR_NOTFOUND;
	unsigned seen = 0;
	uint8_t id[16];

	if (!hex_decode(id, sizeof(id), task, strlen(task)))
		return ERR_NOTFOUND;
	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j && e; j = engine_next(g, j, &seen)) {
		struct invite *have = engine_find_invite(j, device);
		if (!have || have->state != INVITE_OUT ||
		    !hash_equal(engine_name_task(g, j, have), id, sizeof(id)))
			continue;
		memcpy(tail.job, j->id, sizeof(tail.job));
		tail.round = j->row.round;
		give_up(g, j, have, cause);
		e = ERR_OK;
	}
	lock_release(&g->lock);
	if (e)
		return e;
	memcpy(tail.device, device, sizeof(tail.device));
	memcpy(tail.reason, cause.word, sizeof(tail.reason));
	tails_note(&g->tails, &tail);
	wake_ring(&g->services->wake);
	return ERR_OK;
}

void
engine_device_gone(struct engine *g, const uint8_t device[32], const char *word)
{
	struct abort_cause cause = abort_reason_parse(word);
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j; j = engine_next(g, j, &seen)) {
		struct invite *have = engine_find_invite(j, device);
		engine_draw_forget(j, device);
		if (have && have->state == INVITE_OUT)
			give_up(g, j, have, cause);
	}
	lock_release(&g->lock);
	wake_ring(&g->services->wake);
}

void
engine_count_down(struct engine *g, const uint8_t model[32], uint64_t bytes)
{
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j; j = engine_next(g, j, &seen))
		if (memcmp(j->row.base, model, 32) == 0 ||
		    memcmp(j->row.optimizer_state, model, 32) == 0)
			j->bytes_down += bytes;
	lock_release(&g->lock);
}
