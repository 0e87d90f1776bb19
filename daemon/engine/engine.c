#include "engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "bytes.h"
#include "choice.h"
#include "clock.h"
#include "engine_inside.h"
#include "fault.h"
#include "health.h"
#include "hex.h"
#include "log.h"
#include "registry.h"
#include "spool.h"
#include "vectors.h"

struct engine_job *
engine_find(const struct engine *g, const uint8_t id[16])
{
	for (struct engine_job *j = g->buckets[id[0]]; j; j = j->chain)
		if (memcmp(j->id, id, 16) == 0 && !j->gone)
			return j;
	return NULL;
}

struct engine_job *
engine_next(struct engine *g, struct engine_job *j, unsigned *seen)
{
	if (++*seen % 8 == 0) {
		j->users++;
		lock_give_way(&g->lock);
		j->users--;
	}
	return j->next;
}

/* --- tasks and invitations */

static void
task_id(const struct engine *g, const struct engine_job *j, uint64_t round,
    const uint8_t device[32], uint8_t out[16])
{
	uint8_t text[56], mac[HASH_LEN];
	struct bytes_writer w = bytes_writer(text, sizeof(text));

	bytes_put(&w, j->id, 16);
	bytes_put_u64(&w, round);
	bytes_put(&w, device, 32);
	hash_hmac(mac, g->task_key, sizeof(g->task_key), text, sizeof(text));
	memcpy(out, mac, 16);
}

static size_t
invite_at(const struct engine_job *j, const uint8_t device[32])
{
	return bytes_place(j->invites, j->invite_count, sizeof(*j->invites), device, 32);
}

static struct invite *
find_invite(const struct engine_job *j, const uint8_t device[32])
{
	size_t at = invite_at(j, device);

	if (at < j->invite_count && memcmp(j->invites[at].device, device, 32) == 0)
		return &j->invites[at];
	return NULL;
}

bool
engine_has_invite(const struct engine_job *j, const uint8_t device[32])
{
	const struct invite *have = find_invite(j, device);

	return have && have->state != INVITE_STOPPED;
}

enum err
engine_invite(struct engine_job *j, const uint8_t device[32], enum invite_state state)
{
	size_t at = invite_at(j, device);

	if (at < j->invite_count && memcmp(j->invites[at].device, device, 32) == 0) {
		j->invites[at].state = state;
		return ERR_OK;
	}
	struct invite *items =
	    bytes_grow(j->invites, j->invite_count, &j->invite_room, sizeof(*items));
	if (!items)
		return ERR_NOMEM;
	j->invites = items;
	memmove(&j->invites[at + 1], &j->invites[at], (j->invite_count - at) * sizeof(*j->invites));
	j->invites[at] = (struct invite){.state = state};
	memcpy(j->invites[at].device, device, 32);
	j->invite_count++;
	return ERR_OK;
}

/* The id of an invitation's task, from now on known. */
static const uint8_t *
name_task(struct engine *g, const struct engine_job *j, struct invite *v)
{
	static const uint8_t none[sizeof(v->task)];

	assert(v);
	if (memcmp(v->task, none, sizeof(none)) != 0)
		return v->task;
	task_id(g, j, j->row.round, v->device, v->task);
	g->report.tasks_total++;
	return v->task;
}

/* --- asking for work */

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
engine_selects(struct engine *g, const uint8_t job[16], const struct select_spec *select,
    const uint8_t device[32])
{
	return is_in_share(select, job, device) &&
	    registry_matches(g->services->registry, device, select);
}

enum wait_reason
engine_ineligible(struct engine *g, const struct engine_job *j, const uint8_t device[32])
{
	return j->work && engine_selects(g, j->id, &j->work->spec.select, device) ? WAIT_NONE
										  : WAIT_INELIGIBLE;
}

bool
engine_evaluates(const struct engine_job *j)
{
	return j->row.state == OUTCOME_EVALUATING;
}

static void
fill_task(struct engine *g, struct engine_job *j, struct invite *invite, struct task *out)
{
	uint64_t now = clock_ms();

	*out = (struct task){
	    .round = j->row.round, .model_bytes = j->model_bytes, .seed = j->work->spec.seed};
	out->kind = engine_evaluates(j) ? TASK_EVALUATE : TASK_TRAIN;
	hex_encode(out->task, name_task(g, j, invite), 16);
	hex_encode(out->job, j->id, 16);
	hex_encode(out->model, j->row.base, 32);
	out->deadline_s =
	    j->round.deadline_ms > now ? (double)(j->round.deadline_ms - now) / 1000 : 0;
	out->recipe.text = recipe_text_hold(j->work->spec.recipe.text);
	if (out->kind == TASK_TRAIN)
		engine_variate_fill(j, invite->device, out);
}

/* Why the device can do nothing for the job's open round. */
static enum wait_reason
lacks(struct engine_job *j, const uint8_t device[32], const struct offer *offer)
{
	enum wait_reason why;

	if (engine_evaluates(j))
		return engine_offer_lacks(j, offer, TASK_EVALUATE);
	why = engine_offer_lacks(j, offer, TASK_TRAIN);
	j->asked |= why == WAIT_NONE;
	if (engine_draw_wants_evaluator(j) && !engine_offer_lacks(j, offer, TASK_EVALUATE))
		engine_draw_evaluator(j, device);
	return why;
}

/* What the round still needs room for in the spool, for each report. */
static bool
lacks_room(const struct engine *g, const struct engine_job *j)
{
	return !engine_evaluates(j) && spool_full(g->services->spool, engine_variate_payload(j));
}

/* WAIT_NONE: out holds a task of this job. */
static enum wait_reason
ask_job(struct engine *g, struct engine_job *j, const uint8_t device[32], const struct offer *offer,
    struct task *out)
{
	if (j->state != JOB_RUNNING)
		return j->state == JOB_PAUSED ? WAIT_PAUSED : WAIT_NO_JOB;
	enum wait_reason why = engine_ineligible(g, j, device);
	if (!why)
		why = lacks(j, device, offer);
	if (why)
		return why;
	if (!engine_evaluates(j) && engine_variate_full(j, device))
		return WAIT_JOB_FULL;
	const struct invite *have = find_invite(j, device);
	if (have && have->state == INVITE_STOPPED)
		have = NULL;
	if (have && have->state != INVITE_OUT)
		return have->state == INVITE_ACCEPTED ? WAIT_REPORTED : WAIT_ABORTED;
	/* Its delta would come too late. */
	if (round_has_closed(&j->round))
		return WAIT_NOT_SELECTED;
	if (!have) {
		if (lacks_room(g, j))
			return WAIT_SPOOL_FULL;
		unsigned act = engine_step(g, j, ROUND_ASK, 0);
		if (j->round.state == ROUND_GATHER)
			engine_draw_note(j, device);
		if (!(act & ROUND_DO_INVITE))
			return WAIT_NOT_SELECTED;
		if (engine_invite(j, device, INVITE_OUT))
			return WAIT_BUSY;
	}
	fill_task(g, j, find_invite(j, device), out);
	engine_steps_offer(j, offer, out);
	if (j->work->spec.recipe.upload.codec_count > 1)
		snprintf(out->codec, sizeof(out->codec), "%s",
		    recipe_upload_choose(
			&j->work->spec.recipe.upload, offer->codecs, offer->codec_count));
	/* The device would only wait with it; other jobs may have work for it meanwhile. */
	if (engine_offer_unsent(offer, out->task)) {
		messages_task_deinit(out);
		*out = (struct task){.wait = true};
		return WAIT_UNSENT;
	}
	FAULT("task.given");
	return WAIT_NONE;
}

static bool
wants_deltas(const struct engine_job *j)
{
	return j->state == JOB_RUNNING && round_wants(&j->round);
}

bool
engine_spool_full(struct engine *g)
{
	bool full = false;
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j && !full; j = engine_next(g, j, &seen))
		full = wants_deltas(j) && lacks_room(g, j);
	lock_release(&g->lock);
	return full;
}

/* WAIT_NONE: out holds a task of one of them. */
static enum wait_reason
ask_jobs(struct engine *g, const uint8_t device[32], const struct offer *offer,
    struct standing_ask *standing, struct task *out)
{
	enum wait_reason reason = WAIT_NO_JOB;
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j && reason && !g->stopping;
	     j = engine_next(g, j, &seen)) {
		enum wait_reason why = ask_job(g, j, device, offer, out);
		standing_say(standing, j->place, why);
		/* The first job's reason is the telling one, unless it only says the job is over. */
		if (!why || reason == WAIT_NO_JOB)
			reason = why;
	}
	if (g->stopping)
		reason = WAIT_RESTARTING;
	lock_release(&g->lock);
	return reason;
}

void
engine_ask(struct engine *g, const uint8_t device[32], const struct offer *offer, struct task *out)
{
	enum wait_reason reason = health_reason(g->services->health);
	struct standing_ask standing;

	standing_begin(g->services->registry, &standing);
	*out = (struct task){.wait = true};
	if (offer->protocol < MESSAGES_PROTOCOL)
		reason = WAIT_OLD_AGENT;
	else if (!reason)
		reason = ask_jobs(g, device, offer, &standing, out);
	if (reason) {
		const struct config *c = shared_take(g->services->config);
		messages_task_deinit(out);
		*out = (struct task){.wait = true, .wait_s = c->retry_after_s};
		shared_give(g->services->config, c);
		snprintf(out->reason, sizeof(out->reason), "%s", wait_reason_name(reason));
	}
	standing_tell(g->services->registry, device, &standing,
	    reason ? (double)out->wait_s : out->deadline_s);
}

/* --- deltas */

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
	task_id(g, j, m->round, m->device, id);
	hex_encode(hex, id, 16);
	if (!hash_equal(id, m->task, 16) || strcmp(path_task, hex) != 0) {
		err_set(why, ERR_DENIED, "the task is not this device's in this round");
		return PROBLEM_WRONG_TASK;
	}
	if (memcmp(m->base, j->row.base, 32) != 0) {
		err_set(why, ERR_STATE, "the open round starts from another model");
		return PROBLEM_WRONG_BASE;
	}
	const struct invite *have = find_invite(j, m->device);
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
		const struct invite *have = find_invite(j, claim->device);
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
	struct invite *have = j ? find_invite(j, claim->device) : NULL;
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
		struct invite *have = find_invite(j, device);
		if (!have || have->state != INVITE_OUT ||
		    !hash_equal(name_task(g, j, have), id, sizeof(id)))
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
		struct invite *have = find_invite(j, device);
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
