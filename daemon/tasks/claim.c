#include <assert.h>
#include <math.h>
#include <string.h>

#include "clock.h"
#include "codec.h"
#include "hex.h"
#include "judge.h"
#include "log.h"
#include "manifest.h"
#include "registry.h"
#include "report.h"
#include "spent.h"
#include "tasks_inside.h"
#include "training.h"
#include "wake.h"

/* What comes of tasks: deltas on their way, and tasks that are given back. */

/* What a refused delta's sender is told. Lock held. */
static void
say_refused(const struct roster_verdict *v, const struct job *j, const struct manifest *m,
    const struct roster_round *r, struct why *why)
{
	const unsigned long long round = m->round, late = v->late;

	switch (v->refusal) {
	case ROSTER_ACCEPTS:
		break;
	case ROSTER_NO_ROUND:
		err_set(why, ERR_STATE, "round %llu; the open round is %llu, the job is %s", round,
		    (unsigned long long)r->number, states_job_name(job_facts(j)->state));
		break;
	case ROSTER_TOO_OLD:
		err_set(why, ERR_STATE, "the task is %llu rounds old, and %u are allowed", late,
		    r->max_staleness);
		break;
	case ROSTER_GIVEN_UP:
		err_set(why, ERR_STATE, "a guard gave up the model that the task started from");
		break;
	case ROSTER_TASK_BASE:
		err_set(why, ERR_STATE, "the task's round started from another model");
		break;
	case ROSTER_ROUND_BASE:
		err_set(why, ERR_STATE, "the open round starts from another model");
		break;
	case ROSTER_OTHER_TASK:
		err_set(why, ERR_DENIED, "the task is not this device's in this round");
		break;
	case ROSTER_USED:
		err_set(why, ERR_EXISTS, "a delta of this device was accepted in this round");
		break;
	case ROSTER_CLOSED:
		err_set(why, ERR_STATE, "round %llu has closed", round);
		break;
	case ROSTER_AGED:
		err_set(why, ERR_STATE,
		    "this round has as many deltas of the device as it may, and for the next one "
		    "the task is too old");
		break;
	case ROSTER_DEFERRED:
		err_set(why, ERR_AGAIN,
		    "its guard may go back once round %llu is folded: try again later",
		    (unsigned long long)r->number);
		break;
	case ROSTER_ENOUGH:
		err_set(why, ERR_AGAIN,
		    "this round and the next have as many deltas of the device as "
		    "they may: try again later");
		break;
	case ROSTER_OTHER_KIND:
		err_set(why, ERR_INVALID, "the task is of kind %s",
		    task_kind_name(r->evaluates ? TASK_EVALUATE : TASK_TRAIN));
		break;
	}
}

/* What the delta holds, against what the job takes. Lock held. */
static enum problem_type
claim_content(const struct job *j, const struct manifest *m, struct why *why)
{
	if (job_evaluates(j))
		return tasks_claim_examples(j, m, why);
	enum problem_type problem = jobs_variate_claim(j, m->device, why);
	return problem ? problem : tasks_claim_format(j, m, why);
}

/* Lock held. */
static enum problem_type
claim_round(struct engine *g, const struct job *j, const struct manifest *m, const char *path_task,
    struct why *why)
{
	const struct roster_place nothing = {.state = ROSTER_NONE};
	const struct roster_round round = invites_round(j);
	const struct invite *have = invites_find(j, m->device);
	uint8_t id[16];
	char hex[33];

	invites_task_id(g, j, m->round, m->device, id);
	hex_encode(hex, id, 16);
	const struct roster_head head = {.round = m->round,
	    .base = m->base,
	    .open_base = job_facts(j)->row.base,
	    .is_its_task = hash_equal(id, m->task, 16) && strcmp(path_task, hex) == 0,
	    .evaluates = manifest_kind(m) == TASK_EVALUATE};
	const struct roster_verdict v = roster_judge(have ? &have->place : &nothing, &round, &head);
	if (!v.refusal)
		return claim_content(j, m, why);
	say_refused(&v, j, m, &round, why);
	return roster_refusal_problem(v.refusal);
}

/* As many steps as tell how fast the device was: no more than the job plans for the examples, if it does. Of a task that was sized more
 * are refused. */
static uint64_t
steps_of(const struct local_spec *local, const struct manifest *m)
{
	const uint64_t planned =
	    local->unit == LOCAL_SIZED ? 0 : training_steps(local, m->examples);

	return planned > 0 && planned < m->steps ? planned : m->steps;
}

/* Lock held. */
static void
fill_claim(struct engine_claim *out, const struct job *j, const struct manifest *m)
{
	const struct job_facts *facts = job_facts(j);
	const struct local_spec *local = &facts->work->spec.recipe.local;
	const uint64_t steps = steps_of(local, m);

	*out = (struct engine_claim){.kind = manifest_kind(m),
	    .round = m->round,
	    .late = m->round != facts->row.round,
	    .examples = m->examples,
	    .accuracy = m->accuracy,
	    .speed = {.steps = steps, .samples = training_samples(local, m->examples, steps)},
	    .codec = m->codec < CODEC_IDS ? m->codec : CODEC_F32,
	    .elements = m->elements,
	    .payload_bytes = m->payload_bytes,
	    .entries = recipe_upload_entries(&facts->work->spec.recipe.upload, m->elements),
	    .max_norm = facts->work->spec.aggregate.max_norm,
	    .max_examples = facts->work->spec.aggregate.max_examples,
	    .has_layers = facts->work->spec.recipe.net.layer_count > 0};
	if (facts->work->spec.recipe.evaluate_by == EVALUATE_DEVICES) {
		out->figures = facts->work->spec.recipe.figures;
		out->class_count = facts->work->spec.recipe.data.class_count;
	}
	memcpy(out->job_id, facts->id, 16);
	memcpy(out->speed.job, facts->id, 16);
	memcpy(out->speed.device, m->device, 32);
	memcpy(out->task, m->task, 16);
	memcpy(out->device, m->device, 32);
	memcpy(out->base, m->base, 32);
}

/* Here the device's work ends, and its upload begins. Lock held. */
static void
note_began(struct job *j, const struct manifest *m)
{
	struct invite *v = invites_find(j, m->device);

	if (v && v->place.round == m->round && v->began_ms == 0)
		v->began_ms = clock_ms();
}

/* How long the device had its task; 0: it is not known when it went out. */
static double
seconds_of(const struct invite *v)
{
	return v->given_ms > 0 && v->began_ms > v->given_ms
	    ? (double)(v->began_ms - v->given_ms) / 1000
	    : 0;
}

/* Set aside: what comes of its tasks will be wanted again once a person has mended it. */
static bool
is_set_aside(const struct job *j, struct why *why)
{
	const struct job_facts *facts = job_facts(j);

	if (facts->round.state != ROUND_ENDED || !states_job_lives(facts->state))
		return false;
	err_set(why, ERR_STATE, "the job waits for an administrator: %s", facts->reason);
	return true;
}

enum problem_type
tasks_claim(struct engine *g, const struct manifest *m, const uint8_t device[32],
    const char *path_task, struct engine_claim *out, struct why *why)
{
	if (memcmp(m->device, device, 32) != 0) {
		err_set(why, ERR_DENIED, "the manifest names another device than the certificate");
		return PROBLEM_WRONG_DEVICE;
	}
	jobs_lock(g);
	struct job *j = jobs_find(g, m->job);
	enum problem_type problem = PROBLEM_UNKNOWN_JOB;
	const bool central = j && tasks_central_claims(j, m);
	if (j && is_set_aside(j, why))
		problem = PROBLEM_UNAVAILABLE;
	else if (central)
		problem = tasks_central_claim(g, j, m, path_task, why);
	else if (j)
		problem = claim_round(g, j, m, path_task, why);
	else
		err_set(why, ERR_NOTFOUND, "no such job");
	if (!problem) {
		if (!central)
			note_began(j, m);
		fill_claim(out, j, m);
		out->central = central;
	}
	jobs_unlock(g);
	return problem;
}

/* An accuracy beside the labels that it is a share of. */
static bool
agrees(double accuracy, const struct report_counted *c)
{
	if (!c->has_labels)
		return true;
	return c->labels == 0 ? isnan(accuracy)
			      : fabs(accuracy - messages_report_accuracy(c)) <= 1e-5;
}

static enum err
check_evaluated(const struct engine_claim *claim, const struct report *r, struct why *why)
{
	if (claim->kind == TASK_EVALUATE && r->eval_examples != claim->examples)
		return err_set(why, ERR_INVALID, "evaluate.examples is not what the manifest says");
	if (!claim->central && r->eval_examples > claim->max_examples)
		return err_set(why, ERR_LIMIT, "evaluate.examples is above aggregate.max_examples");
	/* Neither cross-entropy nor mse ever is; what a model without layers is trained by, nobody here knows. */
	if (claim->has_layers && r->eval_loss < 0)
		return err_set(
		    why, ERR_INVALID, "evaluate.loss is negative; a loss of this job is not");
	if (!agrees(r->eval_accuracy, &r->evaluated))
		return err_set(
		    why, ERR_INVALID, "evaluate.accuracy is not evaluate.right / evaluate.labels");
	return ERR_OK;
}

enum problem_type
tasks_claim_report(const struct engine_claim *claim, const struct report *r, struct why *why)
{
	bool evaluates = claim->kind == TASK_EVALUATE;
	enum err e = r->has_evaluate || evaluates ? check_evaluated(claim, r, why) : ERR_OK;

	if (!e && !evaluates && !agrees((double)claim->accuracy, &r->trained))
		e = err_set(why, ERR_INVALID,
		    "the manifest's accuracy is not trained.right / trained.labels");
	return e ? PROBLEM_BAD_REPORT : PROBLEM_NONE;
}

/* Lock held. ERR_STATE: no round takes it; ERR_AGAIN: none does yet. */
static enum err
take(struct engine *g, struct job *j, struct engine_claim *claim)
{
	/* The invitation is made (or kept) now, so that settling cannot run out of memory. */
	struct invite *v = invites_hold(j, claim->device);

	if (!v)
		return ERR_NOMEM;
	const bool out = v->place.round == claim->round && roster_is_unanswered(&v->place);
	const unsigned actions = invites_happens(
	    j, v, &(struct roster_event){.kind = ROSTER_TAKE, .round = claim->round});
	if (!(actions & ROSTER_DO_TAKE))
		return actions & ROSTER_DO_LATER ? ERR_AGAIN : ERR_STATE;
	claim->fresh = actions & ROSTER_DO_FRESH;
	claim->folded = job_facts(j)->row.round + ((actions & ROSTER_DO_NEXT) != 0);
	if (out) {
		claim->speed.seconds = seconds_of(v);
		claim->given_ms = v->given_ms;
	}
	const unsigned how = (actions & ROSTER_DO_FRESH ? ROUND_TAKE_FRESH : 0) |
	    (actions & ROSTER_DO_NEXT ? ROUND_TAKE_NEXT : 0);
	const unsigned taken = rounds_step(g, j, ROUND_TAKE, how);
	assert(taken & ROUND_DO_TAKE);
	(void)taken;
	return ERR_OK;
}

enum err
tasks_take(struct engine *g, struct engine_claim *claim)
{
	enum err e = ERR_STATE;

	if (!registry_is_active(jobs_uses(g).registry, claim->device))
		return ERR_DENIED;
	jobs_lock(g);
	struct job *j = jobs_find(g, claim->job_id);
	if (j && job_facts(j)->work && claim->central)
		e = tasks_central_take(j, claim);
	else if (j && job_facts(j)->work &&
	    (job_evaluates(j) || !jobs_variate_full(j, claim->device)))
		e = take(g, j, claim);
	jobs_unlock(g);
	return e;
}

/* What was taken is durable, or lost. Lock held. */
static void
settle(struct engine *g, struct job *j, const struct engine_claim *claim, bool durable)
{
	const struct roster_event e = {.kind = durable ? ROSTER_SETTLED : ROSTER_LOST,
	    .round = claim->round,
	    .folded = claim->folded,
	    .fresh = claim->fresh};
	struct invite nothing = {.stored = false};

	/* The job is over meanwhile. */
	if (!job_facts(j)->work)
		return;
	struct invite *v = durable && roster_rests(&job_facts(j)->round)
	    ? invites_hold(j, claim->device)
	    : invites_find(j, claim->device);
	const unsigned actions = invites_happens(j, v ? v : &nothing, &e);
	const uint32_t next = (actions & ROSTER_DO_NEXT) != 0;
	if (actions & ROSTER_DO_END)
		jobs_share_end(g, j, v);
	rounds_step(g, j, durable ? ROUND_ACCEPTED : ROUND_LOST, next);
	if (actions & ROSTER_DO_FREE)
		rounds_step(g, j, ROUND_EXPIRED, 0);
}

/* Lock held. */
static void
count_taken(struct engine_report *r, const struct engine_claim *claim, uint64_t body_bytes)
{
	r->delta_bytes_total += body_bytes;
	r->delta_bytes[claim->codec] += body_bytes;
	if (claim->given_ms > 0)
		histogram_add(&r->report_seconds, (double)(clock_ms() - claim->given_ms) / 1000);
	if (claim->kind != TASK_TRAIN)
		return;
	r->deltas_total++;
	r->deltas[claim->codec]++;
	histogram_add(&r->staleness_rounds, (double)(claim->folded - claim->round));
}

void
tasks_settle(struct engine *g, const struct engine_claim *claim, bool durable, uint64_t body_bytes)
{
	jobs_lock(g);
	struct job *j = jobs_find(g, claim->job_id);
	if (durable) {
		if (j)
			jobs_count_bytes(j, body_bytes, 0);
		count_taken(jobs_counts(g), claim, body_bytes);
	}
	if (j && durable && !claim->central) {
		tasks_size_note(j, claim);
		device_status_reported(jobs_uses(g).registry, claim->device, job_facts(j)->place);
	}
	if (j && claim->central)
		tasks_central_settle(j, claim, durable);
	else if (j)
		settle(g, j, claim, durable);
	jobs_unlock(g);
	if (durable && !claim->central)
		registry_count_report(jobs_uses(g).registry, claim->device);
}

/* Lock held. passes: the device may have the task again, whatever the cause. */
static void
give_up(struct engine *g, struct job *j, struct invite *v, struct abort_cause cause, bool passes)
{
	const struct job_facts *facts = job_facts(j);
	char hex[17];

	const uint64_t round = v->place.round;
	const bool evaluates = round == facts->row.round && job_evaluates(j);
	const bool refused =
	    tasks_refusal_note(j, v, evaluates ? TASK_EVALUATE : TASK_TRAIN, cause);
	const struct roster_event e = {.kind = ROSTER_GIVE_UP,
	    .passes = passes || refused || abort_reason_passes(cause.reason)};
	const unsigned actions = invites_happens(j, v, &e);
	v->gave_up = cause.reason;
	jobs_share_end(g, j, v);
	tasks_returned(g, j, v);
	device_status_gave_up(jobs_uses(g).registry, v->device, facts->place, cause.reason);
	if (cause.reason == ABORT_BAD_MODEL)
		rounds_doubt(g, facts->row.base);
	jobs_counts(g)->tasks_aborted_total++;
	jobs_counts(g)->aborted[cause.reason]++;
	hex_encode(hex, v->device, 8);
	if (actions & ROSTER_DO_GAVE_UP)
		rounds_step(g, j, ROUND_GAVE_UP, jobs_guard_blames(j, v, cause.reason));
	if (spent_log(jobs_uses(g).spent, jobs_uses(g).config, v->device, 0))
		log_event(LOG_LEVEL_INFO, "task.aborted", LOG_S("job", facts->hex),
		    LOG_U("round", round), LOG_S("device", hex), LOG_S("reason", cause.word));
}

enum err
tasks_abort(struct engine *g, const uint8_t device[32], const char *task, struct abort_cause cause,
    const char *log)
{
	struct tail tail = {.at_seconds = clock_wall(), .text = (char *)(uintptr_t)log};
	enum err e = ERR_NOTFOUND;
	unsigned seen = 0;
	uint8_t id[16];

	if (!hex_decode(id, sizeof(id), task, strlen(task)))
		return ERR_NOTFOUND;
	jobs_lock(g);
	for (struct job *j = jobs_first(g); j && e; j = jobs_next(g, j, &seen)) {
		struct invite *have = invites_find(j, device);
		if (tasks_central_give_up(g, j, device, id, cause)) {
			memcpy(tail.job, job_facts(j)->id, sizeof(tail.job));
			tail.round = job_facts(j)->work->central.round;
			e = ERR_OK;
			continue;
		}
		if (!have || !roster_is_unanswered(&have->place) ||
		    !hash_equal(invites_name_task(g, j, have), id, sizeof(id)))
			continue;
		memcpy(tail.job, job_facts(j)->id, sizeof(tail.job));
		tail.round = have->place.round;
		give_up(g, j, have, cause, false);
		e = ERR_OK;
	}
	jobs_unlock(g);
	if (e)
		return e;
	memcpy(tail.device, device, sizeof(tail.device));
	memcpy(tail.reason, cause.word, sizeof(tail.reason));
	tails_note(jobs_tails(g), &tail);
	wake_ring(jobs_uses(g).wake);
	return ERR_OK;
}

void
tasks_device_gone(struct engine *g, const uint8_t device[32], const char *word)
{
	struct abort_cause cause = abort_reason_parse(word);
	unsigned seen = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j; j = jobs_next(g, j, &seen)) {
		struct invite *have = invites_find(j, device);
		invites_forget(j, device);
		tasks_refusal_forget(j, device);
		/* The device failed at nothing: once it is active again it may have the task. */
		if (have && have->place.state == ROSTER_OUT)
			give_up(g, j, have, cause, true);
	}
	jobs_unlock(g);
	wake_ring(jobs_uses(g).wake);
}

void
tasks_count_down(struct engine *g, const uint8_t model[32], uint64_t bytes)
{
	unsigned seen = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j; j = jobs_next(g, j, &seen))
		if (memcmp(job_facts(j)->row.base, model, 32) == 0 ||
		    memcmp(job_facts(j)->row.optimizer_state, model, 32) == 0 ||
		    jobs_late_reads(j, model))
			jobs_count_bytes(j, 0, bytes);
	jobs_unlock(g);
}

size_t
tasks_tails(struct engine *g, const uint8_t job[16], struct tail out[TAILS_OF_JOB])
{
	return tails_of(jobs_tails(g), job, out);
}
