#include "next.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allowance.h"
#include "ask.h"
#include "fetch.h"
#include "home.h"
#include "local.h"
#include "rekey.h"
#include "scaffold.h"
#include "send.h"
#include "training.h"

#define WAIT_MAX_S 50.0
#define REST_S 0.1

static enum err
list_tensors(struct rivulet *r)
{
	const struct work *w = &r->work;

	r->tensors = calloc(w->table.count, sizeof(*r->tensors));
	if (!r->tensors)
		return err_set(&r->why, ERR_NOMEM, "no memory for a list of tensors");
	for (size_t i = 0; i < w->table.count; i++) {
		const struct tensor *t = &w->table.items[i];
		/* A foreign file's data need not be aligned; such a tensor cannot be given as floats. */
		bool floats = w->weights && t->dtype == TENSOR_F32 && t->begin % sizeof(float) == 0;
		r->tensors[i] = (struct rivulet_tensor){.name = t->name,
		    .shape = t->shape,
		    .dims = t->dims,
		    .count = t->elements,
		    .data = floats ? (float *)(void *)(w->weights + t->begin) : NULL,
		    .trained = t->in_delta,
		    .role = (int)t->role,
		    .type = tensor_dtype_name(t->dtype),
		    .bytes = w->weights ? w->weights + t->begin : NULL,
		    .size = t->end - t->begin};
	}
	return ERR_OK;
}

/* What the device said it has of the task's data. */
static uint64_t
examples_here(const struct rivulet *r)
{
	for (size_t i = 0; i < r->offer->data_count; i++)
		if (strcmp(r->offer->data[i].name, r->work.task.recipe.data.name) == 0)
			return r->offer->data[i].examples;
	return 0;
}

static void
show_plan(struct rivulet *r)
{
	const struct recipe *recipe = &r->work.task.recipe;
	const struct local_spec *local = &recipe->local;
	uint64_t examples = examples_here(r);

	r->task.kind = (int)r->work.task.kind;
	r->task.batch = local->batch;
	r->task.validation = recipe->data.validation;
	r->task.epochs = local->unit == LOCAL_EPOCHS ? (uint64_t)local->amount : 0;
	const struct allowance_want want = {
	    .recipe = recipe, .examples = examples, .most = r->work.task.max_examples};
	r->task.steps = training_steps(local, allowance_count(&want).train);
	r->task.seconds = local->seconds;
	r->stop_at = backoff_now() + work_budget(&r->work, r->settings->seconds_per_round);
}

static enum err
show_task(struct rivulet *r)
{
	const struct work *w = &r->work;

	r->task = (struct rivulet_task){.id = w->task.task,
	    .job = w->task.job,
	    .model = w->task.model,
	    .round = w->task.round,
	    .seed = training_seed(w->task.seed, w->task.round, session_device(r->session)),
	    .deadline_s = w->task.deadline_s,
	    .params = w->params,
	    .recipe = w->recipe,
	    .tensor_count = w->table.count,
	    .rate = work_rate(w)};
	show_plan(r);
	enum err e = list_tensors(r);
	r->task.tensors = r->tensors;
	return e;
}

/* Why a task is given back that could not be prepared; ABORT_NONE if the fault lies elsewhere. */
static enum abort_reason
abort_reason(enum err e)
{
	switch (e) {
	case ERR_NOMEM:
		return ABORT_OUT_OF_MEMORY;
	case ERR_LIMIT:
		return ABORT_TOO_LARGE;
	case ERR_NOSPACE:
	case ERR_READONLY:
	case ERR_IO:
	case ERR_FILES:
		return abort_reason_of_disk(e);
	case ERR_STATE:
		return ABORT_VARIATE_LOST;
	case ERR_NUMERIC:
		return ABORT_NOT_FINITE;
	case ERR_INVALID:
	case ERR_CORRUPT:
	case ERR_UNSUPPORTED:
	case ERR_NOTFOUND:
	case ERR_EXISTS:
		return ABORT_BAD_MODEL;
	/* The coordinator is not there, has refused the device, or nobody has time: the task is as good as before. */
	case ERR_OK:
	case ERR_AGAIN:
	case ERR_CLOSED:
	case ERR_TIMEOUT:
	case ERR_DENIED:
	case ERR_COUNT:
		break;
	}
	return ABORT_NONE;
}

static enum abort_reason
consider(struct rivulet *r)
{
	struct work *w = &r->work;
	const struct verdict *v = handle_verdict(r);

	/* It may have changed while the task was on its way. */
	if (v->reason) {
		err_set(&r->why, ERR_DENIED, "%.180s", v->text);
		return abort_reason_of_owner(v->reason);
	}
	enum abort_reason reason =
	    r->consider ? r->consider(r->consider_context, w, &r->why) : ABORT_NONE;

	if (reason || w->task.model_bytes <= r->settings->model_bytes)
		return reason;
	err_set(&r->why, ERR_LIMIT, "the model has %llu bytes, model_bytes allows %llu",
	    (unsigned long long)w->task.model_bytes, (unsigned long long)r->settings->model_bytes);
	return ABORT_TOO_LARGE;
}

static enum err
load_variates(struct rivulet *r)
{
	enum err e = scaffold_load(&r->work, r->home, &r->why);

	if (!e)
		e = fetch_state(r, &r->why);
	return e ? e : scaffold_correct(&r->work, &r->why);
}

/* Without its local tensors the device begins with the model's. */
static void
load_local(struct rivulet *r)
{
	struct why why = {""};

	if (local_load(&r->work, r->home, &why))
		events_emit(&r->events, EVENTS_ERROR, "local.lost",
		    EVENTS_PAIRS(EVENTS_S("job", r->work.task.job), EVENTS_S("reason", why.text)));
}

static enum err
load(struct rivulet *r)
{
	struct work *w = &r->work;
	enum err e = fetch_model(r, &r->why);

	if (!e)
		e = work_load(w, w->path, r->settings->memory_bytes, &r->why);
	if (e)
		return e;
	load_local(r);
	if (work_variates(w) && w->task.kind == TASK_TRAIN)
		e = load_variates(r);
	return e ? e : show_task(r);
}

/* Given back for want of memory: so much is missing. */
static struct abort_cause
cause_of(struct rivulet *r, enum abort_reason reason)
{
	const struct work *w = &r->work;
	struct abort_cause cause = abort_reason_cause(reason);

	if (reason != ABORT_OUT_OF_MEMORY || w->needed_bytes == 0)
		return cause;
	cause.needed_bytes = w->needed_bytes;
	cause.memory_bytes = w->memory_bytes;
	snprintf(r->shortage, sizeof(r->shortage),
	    "%s: a task of job %.8s takes %llu bytes, and %llu are allowed here", cause.word,
	    w->task.job, (unsigned long long)w->needed_bytes, (unsigned long long)w->memory_bytes);
	home_note(r->home, "waiting", r->shortage);
	return cause;
}

/* Fetches and loads; a task that cannot be done is given back and ERR_TIMEOUT returned. */
static enum err
prepare(struct rivulet *r)
{
	enum abort_reason reason = consider(r);
	r->denied = false;
	enum err e = reason ? ERR_DENIED : load(r);
	struct why ignored;

	if (!e)
		return ERR_OK;
	if (!reason && e == ERR_LIMIT)
		reason = abort_reason_of_owner(handle_verdict(r)->reason);
	/* What the system keeps from this user is as good as read-only. */
	if (!reason)
		reason = abort_reason(e == ERR_DENIED && !r->denied ? ERR_READONLY : e);
	if (reason) {
		e = send_abort(r, r->work.task.task, cause_of(r, reason), r->why.text, &ignored);
		e = e == ERR_AGAIN ? e : ERR_TIMEOUT;
		handle_failed(r, r->work.task.job, reason, handle_worked(r));
	}
	handle_drop(r);
	return e;
}

/* A new key was asked for by `rivulet rotate`. What can pass is tried again; of what cannot, the command is told. */
static void
serve_rotation(struct rivulet *r)
{
	struct why why = {""}, ignored;
	enum err e = rekey_run(r->session, &why);

	if (e == ERR_CLOSED || e == ERR_TIMEOUT || e == ERR_AGAIN) {
		r->rotate_at = backoff_now() + backoff_next(&r->rotate);
		return;
	}
	backoff_reset(&r->rotate);
	if (e)
		(void)!home_put(r->home, HOME_ROTATE_FAILED, why.text, &ignored);
	(void)!home_drop(r->home, HOME_ROTATE, &ignored);
}

/* Neither a delta's next try, the certificate's renewal nor a job that has rested may be kept waiting by a held request. */
static unsigned
longest_wait(struct rivulet *r, double left)
{
	const double dues[] = {r->resend_at - backoff_now(), r->held_at - backoff_now(),
	    session_renew_in(r->session),
	    /* In whole seconds: other jobs may have a task meanwhile. */
	    ceil(job_backoff_next(&r->job_backoff, backoff_now()))};
	double wait = left < 0 || left > WAIT_MAX_S ? WAIT_MAX_S : left;

	for (size_t i = 0; i < sizeof(dues) / sizeof(*dues); i++)
		if (dues[i] > 0 && dues[i] < wait)
			wait = dues[i];
	return (unsigned)wait;
}

/* One pass: what waits in the outbox, then a request for work. Nothing of that before a suspended device may ask again, but for what a person
 * at this machine asks of it. */
static enum err
one_pass(struct rivulet *r, double left, double *pause_s)
{
	*pause_s = fmax(r->suspended_until - backoff_now(), 0);
	if (*pause_s > 0 && !handle_requested(r))
		return ERR_TIMEOUT;
	*pause_s = 0;
	handle_settle(r);
	r->job_rests = false;
	r->began_at = 0;
	if (handle_requested(r))
		serve_rotation(r);
	enum err e = send_all(r, &r->why);
	session_renew(r->session);
	if (!e)
		e = ask_once(r, longest_wait(r, left), pause_s, &r->why);
	if (e)
		return e;
	/* Before a long training. */
	session_renew(r->session);
	if (outbox_has(&r->outbox, r->work.task.task)) {
		/* Done already, but the coordinator has not taken the delta, or has lost it with its memory. */
		handle_drop(r);
		r->held_at = 0;
		*pause_s = backoff_next(&r->idle);
		return ERR_TIMEOUT;
	}
	e = prepare(r);
	if (e == ERR_TIMEOUT && !r->job_rests)
		*pause_s = backoff_next(&r->idle);
	return e;
}

/* For `rivulet doctor`; the next answer is noted again, whatever it says. */
static void
note_failure(struct rivulet *r, enum err e)
{
	home_note(r->home, e == ERR_CLOSED ? "unreachable" : "failed", r->why.text);
	r->waiting[0] = '\0';
}

/* Waits, and renews the certificate when that becomes due meanwhile; a wait is over when this device's clock steps, which may be what the
 * last failure came from. False: cancelled, or something is asked of us. */
static bool
rest(struct rivulet *r, double seconds)
{
	double until = backoff_now() + seconds;

	for (;;) {
		double left = until - backoff_now(), due = session_renew_in(r->session);
		bool last = !(due < left);
		r->asking = true;
		const enum handle_wait how = handle_wait(r, last ? left : due + REST_S);
		r->asking = false;
		if (last || how != HANDLE_WAITED)
			return how != HANDLE_BROKEN_OFF;
		session_renew(r->session);
	}
}

static void
tell_unreachable(struct rivulet *r, double *pause_s)
{
	if (*pause_s <= 0)
		*pause_s = backoff_next(session_backoff(r->session));
	if (r->away_since <= 0)
		r->away_since = backoff_now();
	events_emit(&r->events, EVENTS_WARN, "unreachable",
	    EVENTS_PAIRS(EVENTS_S("reason", r->why.text), EVENTS_D("seconds", *pause_s),
		SESSION_REQUEST(r->session)));
}

int
next_task(struct rivulet *r, double timeout_s)
{
	double until = backoff_now() + timeout_s, pause;

	handle_drop(r);
	for (;;) {
		if (handle_interrupted(r))
			return RIVULET_TIMEOUT;
		double left = timeout_s < 0 ? -1 : until - backoff_now();
		enum err e = one_pass(r, left < 0 && timeout_s >= 0 ? 0 : left, &pause);
		if (!e)
			return RIVULET_OK;
		if (e == ERR_AGAIN && !handle_cancelled(r))
			continue; /* broken off for a request */
		if (e != ERR_TIMEOUT)
			note_failure(r, e);
		if (e != ERR_TIMEOUT && e != ERR_CLOSED)
			return handle_error(e);
		if (e == ERR_CLOSED)
			tell_unreachable(r, &pause);
		left = until - backoff_now();
		bool last = timeout_s >= 0 && pause >= left;
		if (!rest(r, last ? left : pause)) {
			if (handle_cancelled(r))
				return RIVULET_STOPPED;
			continue;
		}
		if (last)
			return RIVULET_TIMEOUT;
	}
}
