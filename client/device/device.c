#include "device.h"

#include <stdio.h>
#include <string.h>

#include "handle_inside.h"
#include "machine.h"
#include "ram.h"
#include "send.h"

struct offer *
device_offer(struct rivulet *r)
{
	return r->offer;
}

void
device_consider(struct rivulet *r,
    enum abort_reason (*consider)(void *context, struct work *work, struct why *why), void *context)
{
	r->consider = consider;
	r->consider_context = context;
}

void
device_interrupt(struct rivulet *r, bool (*wanted)(void *context), void *context)
{
	r->interrupted = wanted;
	r->interrupt_context = context;
}

struct work *
device_task(struct rivulet *r)
{
	return r->has_work ? &r->work : NULL;
}

int
device_abort(struct rivulet *r, struct abort_cause cause, const char *log)
{
	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	/* It is not asked for such jobs again. */
	if (cause.reason == ABORT_NO_FIGURES)
		messages_offer_set_figures(r->offer, r->work.task.recipe.trainer, false);
	enum err e = send_abort(r, r->work.task.task, cause, log, &r->why);
	handle_failed(r, r->work.task.job, cause.reason, handle_worked(r));
	handle_drop(r);
	return handle_error(e);
}

void
device_state(const struct rivulet *r, struct device_figures *out)
{
	const bool evaluates = r->has_work && r->work.task.kind == TASK_EVALUATE;

	out->task = evaluates ? DEVICE_EVALUATES : r->has_work ? DEVICE_TRAINS : DEVICE_NO_TASK;
	out->reason = r->has_work ? WAIT_NONE : wait_reason_find(r->waiting);
	out->standing = r->standing;
}

void
device_count(const struct rivulet *r, struct device_figures *out)
{
	out->rounds = r->taken;
	session_figures(r->session, &out->contact, &out->sent, &out->received);
	out->certificate_end = session_ends(r->session);
	outbox_held(&r->outbox, &out->outbox_deltas, &out->outbox_bytes);
}

bool
device_cancelled(void *context)
{
	return handle_cancelled(context);
}

void
device_check_with(struct rivulet *r, eligibility_check *check, void *context)
{
	if (r->eligibility)
		eligibility_check_with(r->eligibility, check, context);
}

enum wait_reason
device_stops(struct rivulet *r, struct why *why)
{
	const struct verdict *v = handle_verdict(r);

	if (v->training)
		snprintf(why->text, sizeof(why->text), "%s", v->text);
	return v->training;
}

const char *
device_unready(const struct rivulet *r)
{
	return r->unready;
}

uint64_t
device_memory(const struct rivulet *r)
{
	return r->settings->memory_bytes > 0 ? r->settings->memory_bytes : ram_limit();
}

const char *
device_shortage(const struct rivulet *r)
{
	return strcmp(r->waiting, wait_reason_name(WAIT_OUT_OF_MEMORY)) == 0 ? r->shortage : "";
}

bool
device_wait(struct rivulet *r)
{
	handle_settle(r);
	const double pause = r->job_rests ? 0 : session_pause(r->session, backoff_next(&r->idle));

	r->job_rests = false;
	return handle_wait(r, pause) != HANDLE_BROKEN_OFF;
}

enum abort_reason
device_disk(const struct rivulet *r)
{
	return abort_reason_of_disk(r->failed);
}

const char *
device_home(const struct rivulet *r)
{
	return r->home;
}

const struct settings *
device_settings(const struct rivulet *r)
{
	return r->settings;
}

const struct events *
device_events(const struct rivulet *r)
{
	return &r->events;
}

struct session *
device_session(struct rivulet *r)
{
	return r->session;
}
