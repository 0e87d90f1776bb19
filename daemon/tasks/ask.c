#include <stdio.h>

#include "clock.h"
#include "config.h"
#include "fault.h"
#include "health.h"
#include "hex.h"
#include "job_needs.h"
#include "registry.h"
#include "report.h"
#include "shared.h"
#include "spool.h"
#include "tasks_inside.h"

/* A device asks for work. */

/* What a buffered job's task may take: as long as its delta may be of use, for all that is known. */
static double
time_left(const struct job *j, uint64_t now_ms)
{
	const struct job_facts *facts = job_facts(j);
	const struct round_spec *spec = &facts->work->spec.round;

	if (facts->round.policy.buffered)
		return spec->task_timeout_s * (1 + (double)spec->max_staleness);
	return facts->round.deadline_ms > now_ms
	    ? (double)(facts->round.deadline_ms - now_ms) / 1000
	    : 0;
}

static void
fill_task(struct engine *g, struct job *j, struct invite *invite, struct task *out)
{
	const struct job_facts *facts = job_facts(j);
	uint64_t now = clock_ms();

	*out = (struct task){.round = facts->row.round,
	    .model_bytes = facts->model_bytes,
	    .seed = facts->work->spec.seed};
	out->kind = job_evaluates(j) ? TASK_EVALUATE : TASK_TRAIN;
	hex_encode(out->task, invites_name_task(g, j, invite), 16);
	hex_encode(out->job, facts->id, 16);
	hex_encode(out->model, facts->row.base, 32);
	out->deadline_s = time_left(j, now);
	out->max_examples = facts->work->spec.aggregate.max_examples;
	out->recipe.text = recipe_text_hold(facts->work->spec.recipe.text);
	if (out->kind == TASK_TRAIN)
		jobs_variate_fill(j, invite->device, out);
}

/* Who asks. */
struct asker {
	const uint8_t *device;
	const struct offer *offer;
	uint64_t print; /* of it */
	struct device_status_ask *status;
	struct task *out;
};

/* Why tasks of that kind of the job are not for the device. */
static enum wait_reason
lacks_for(struct job *j, const struct asker *a, enum task_kind kind)
{
	return tasks_refusal_stands(j, a->device, kind, a->print)
	    ? WAIT_OUT_OF_MEMORY
	    : tasks_offer_lacks(j, a->offer, kind);
}

/* Why the device can do nothing for the job's open round. */
static enum wait_reason
lacks(struct job *j, const struct asker *a)
{
	enum wait_reason why;

	if (job_evaluates(j))
		return lacks_for(j, a, TASK_EVALUATE);
	why = lacks_for(j, a, TASK_TRAIN);
	if (!why)
		invites_note_usable(j);
	if (invites_wants_evaluator(j) && !lacks_for(j, a, TASK_EVALUATE))
		invites_note_evaluator(j, a->device);
	return why;
}

/* What the round still needs room for in the spool, for each report. */
static bool
lacks_room(const struct engine *g, const struct job *j)
{
	return !job_evaluates(j) && spool_full(jobs_uses(g).spool, sizes_payload(j));
}

/* What the roster says of the asker: a set of roster_action. v: zero if it has nothing of the job. */
static unsigned
ask_roster(struct engine *g, struct job *j, const struct asker *a, struct invite *v)
{
	const struct roster_round round = invites_round(j);
	struct roster_event e = {.kind = ROSTER_ASK};
	char task[33];

	if (roster_wants_unsent(&v->place, &round)) {
		hex_encode(task, invites_name_task(g, j, v), 16);
		e.unsent = tasks_offer_unsent(a->offer, task);
	}
	return invites_happens(j, v, &e);
}

/* WAIT_NONE: the device has a new task of the open round. */
static enum wait_reason
enter(struct engine *g, struct job *j, const uint8_t device[32])
{
	/* Suspended since it asked: tasks_device_gone has been here already, and nobody would take the task from it. */
	if (!registry_is_active(jobs_uses(g).registry, device))
		return WAIT_INELIGIBLE;
	if (lacks_room(g, j))
		return WAIT_SPOOL_FULL;
	const unsigned act = rounds_step(g, j, ROUND_ASK, 0);
	if (job_facts(j)->round.state == ROUND_GATHER)
		invites_note(j, device);
	if (!(act & ROUND_DO_INVITE))
		return WAIT_NOT_SELECTED;
	struct invite *v = invites_hold(j, device);
	if (!v)
		return WAIT_BUSY;
	(void)invites_happens(j, v, &(struct roster_event){.kind = ROSTER_GIVE});
	return WAIT_NONE;
}

/* WAIT_NONE: the device holds a task of the open round. */
static enum wait_reason
invite(struct engine *g, struct job *j, const struct asker *a)
{
	struct invite nothing = {.stored = false};
	/* Who rests, and how long, follows from who asks. */
	struct invite *v = roster_rests(&job_facts(j)->round) ? invites_hold(j, a->device)
							      : invites_find(j, a->device);
	const unsigned actions = ask_roster(g, j, a, v ? v : &nothing);
	enum wait_reason why = roster_wait(actions);

	if (!why && (actions & ROSTER_DO_ENTER))
		why = enter(g, j, a->device);
	if (!why)
		rounds_watch_task(g, j, invites_find(j, a->device));
	return why;
}

/* Why the job has nothing for the device, whatever its rounds are about. */
static enum wait_reason
judge_asker(struct engine *g, struct job *j, const struct asker *a)
{
	enum wait_reason why = jobs_ineligible(g, j, a->device);

	if (!why)
		why = tasks_offer_unready(a->offer);
	if (!why)
		why = lacks(j, a);
	return !why && tasks_offer_rests(a->offer, j) ? WAIT_RESTING : why;
}

/* WAIT_NONE: out holds a task of this job. */
static enum wait_reason
ask_job(struct engine *g, struct job *j, const struct asker *a)
{
	const struct job_facts *facts = job_facts(j);
	const uint8_t *device = a->device;
	const struct offer *offer = a->offer;
	struct task *out = a->out;

	if (facts->state != JOB_RUNNING)
		return facts->state == JOB_PAUSED ? WAIT_PAUSED : WAIT_NO_JOB;
	enum wait_reason why = judge_asker(g, j, a);
	if (why)
		return why;
	if (!job_evaluates(j) && jobs_variate_full(j, device))
		return WAIT_JOB_FULL;
	why = invite(g, j, a);
	if (why)
		return why;
	uint64_t steps;
	if (tasks_size(j, device, &steps))
		return WAIT_BUSY;
	struct invite *have = invites_find(j, device);
	fill_task(g, j, have, out);
	out->steps = steps;
	tasks_offer_difference(j, offer, out);
	if (facts->work->spec.recipe.upload.codec_count > 1)
		snprintf(out->codec, sizeof(out->codec), "%s",
		    recipe_upload_choose(
			&facts->work->spec.recipe.upload, offer->codecs, offer->codec_count));
	/* The device would only wait with it; other jobs may have work for it meanwhile. */
	if (tasks_offer_unsent(offer, out->task)) {
		messages_task_deinit(out);
		*out = (struct task){.wait = true};
		return WAIT_UNSENT;
	}
	have->given_ms = clock_ms();
	have->began_ms = 0;
	have->print = a->print;
	jobs_share_begin(g, j, have);
	FAULT("task.given");
	return WAIT_NONE;
}

/* The same of whatever the device is to the job. Evaluators count among none of those that its rounds need. */
static enum wait_reason
ask_either(struct engine *g, struct job *j, const struct asker *a)
{
	const bool evaluates =
	    states_job_lives(job_facts(j)->state) && jobs_evaluator_of(g, j, a->device);
	enum wait_reason why =
	    evaluates ? tasks_central_ask(g, j, a->device, a->offer, a->out) : ask_job(g, j, a);

	device_status_say(a->status, job_facts(j)->place, evaluates ? WAIT_INELIGIBLE : why);
	return why;
}

static bool
wants_deltas(const struct job *j)
{
	return job_facts(j)->state == JOB_RUNNING && round_wants(&job_facts(j)->round);
}

bool
tasks_spool_full(struct engine *g)
{
	bool full = false;
	unsigned seen = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j && !full; j = jobs_next(g, j, &seen))
		full = wants_deltas(j) && lacks_room(g, j);
	jobs_unlock(g);
	return full;
}

/* Who asks again gets what it has, whichever job of that priority has had less by now. Lock held, and given away. */
static enum wait_reason
ask_held(struct engine *g, const struct asker *a, struct job **held, int64_t priority)
{
	struct job *j = *held;

	if (!j || jobs_share_priority(j) < priority)
		return WAIT_NO_JOB;
	jobs_leave(j);
	*held = NULL;
	return ask_either(g, j, a) ? WAIT_NO_JOB : WAIT_NONE;
}

/* WAIT_NONE: out holds a task of one of them. Lock held, and given away now and then. */
static enum wait_reason
walk_jobs(struct engine *g, const struct asker *a)
{
	enum wait_reason reason = WAIT_NO_JOB;
	struct share_walk walk = {.seen = 0};
	struct job *held = jobs_share_held(g, a->device), *j;

	while (reason && !jobs_pace(g)->stopping && (j = jobs_share_next(g, &walk))) {
		enum wait_reason why = ask_held(g, a, &held, jobs_share_priority(j));
		if (why)
			why = ask_either(g, j, a);
		/* The first job's reason is the telling one, unless it only says the job is over. */
		if (!why || reason == WAIT_NO_JOB)
			reason = why;
	}
	if (held)
		jobs_leave(held);
	return a->offer->unready[0] ? tasks_offer_unready(a->offer) : reason;
}

/* WAIT_NONE: out holds a task of one of them. reason: why none is asked, or WAIT_NONE. */
static enum wait_reason
ask_jobs(struct engine *g, const struct asker *a, enum wait_reason reason)
{
	jobs_lock(g);
	jobs_counts(g)->task_asks_total++;
	if (!reason) {
		reason = walk_jobs(g, a);
		if (jobs_pace(g)->stopping)
			reason = WAIT_RESTARTING;
	}
	jobs_unlock(g);
	return reason;
}

void
tasks_ask(struct engine *g, const uint8_t device[32], const struct offer *offer, struct task *out)
{
	enum wait_reason reason = health_reason(jobs_uses(g).health);
	struct device_status_ask status;

	device_status_begin(jobs_uses(g).registry, &status);
	*out = (struct task){.wait = true};
	if (offer->protocol < MESSAGES_PROTOCOL)
		reason = WAIT_OLD_AGENT;
	reason = ask_jobs(g,
	    &(struct asker){device, offer, reason ? 0 : tasks_refusal_print(offer), &status, out},
	    reason);
	if (reason) {
		const struct config *c = shared_take(jobs_uses(g).config);
		messages_task_deinit(out);
		*out = (struct task){.wait = true, .wait_s = c->retry_after_s};
		shared_give(jobs_uses(g).config, c);
		snprintf(out->reason, sizeof(out->reason), "%s",
		    wait_reason_is_owners(reason) ? offer->unready : wait_reason_name(reason));
	}
	device_status_tell(
	    jobs_uses(g).registry, device, &status, reason ? (double)out->wait_s : out->deadline_s);
}
