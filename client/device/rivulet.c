#include "rivulet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ask.h"
#include "codec.h"
#include "delta.h"
#include "fetch.h"
#include "file.h"
#include "finish.h"
#include "handle.h"
#include "home.h"
#include "identity_set.h"
#include "local.h"
#include "machine.h"
#include "rekey.h"
#include "send.h"
#include "training.h"

#define WAIT_MAX_S 50.0
#define REST_S 0.1

static void
deliver_event(void *context, int level, const char *line)
{
	struct rivulet *r = context;

	r->event(r->context, level, line);
}

/* Two agents in one home would train the same task twice and step on each other's files. What a crash left half done to
 * the identity is finished before it is read. */
static enum err
take_home(struct rivulet *r, struct why *why)
{
	struct identity id;
	enum err e = identity_load(&id, r->home, why);

	if (!e)
		e = home_lock(&r->lock, r->home, why);
	return e ? e : identity_set_apply(r->home, why);
}

static enum err
open_session(struct rivulet *r, struct why *why)
{
	const struct session_options options = {.home = r->home,
	    .urls = (const char(*)[ADDRESS_MAX])r->settings->urls,
	    .url_count = r->settings->url_count,
	    .cancel = handle_cancelled,
	    .context = r,
	    .events = &r->events,
	    .locked = true};
	const struct transport_options mirror = {.cancel = handle_cancelled, .context = r};
	enum err e = session_open(&r->session, &options, why);

	if (!e && *r->settings->mirror)
		e = transport_new(&r->mirror, &mirror, why);
	return e;
}

/* A program's own loop offers one data set and one trainer; the agent replaces this by what its settings name. */
static enum err
fill_offer(struct rivulet *r, const struct rivulet_options *options, struct why *why)
{
	struct offer *o = r->offer = calloc(1, sizeof(*o));
	const char *const *codecs = codec_names();

	if (!o)
		return err_set(why, ERR_NOMEM, "no memory for an offer");
	snprintf(o->agent, sizeof(o->agent), "%s", RIVULET_VERSION);
	o->protocol = MESSAGES_PROTOCOL;
	machine_id(o->machine);
	o->memory_bytes = r->settings->memory_bytes;
	if (o->memory_bytes == 0) {
		long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
		o->memory_bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
	}
	for (; codecs[o->codec_count] && o->codec_count < MESSAGES_LIST_MAX; o->codec_count++)
		snprintf(o->codecs[o->codec_count], RECIPE_NAME_MAX, "%s", codecs[o->codec_count]);
	const char *const *layers = recipe_layer_names();
	for (; layers[o->layer_count] && o->layer_count < MESSAGES_LIST_MAX; o->layer_count++)
		snprintf(o->layers[o->layer_count], RECIPE_NAME_MAX, "%s", layers[o->layer_count]);
	const char *const *features = recipe_feature_names();
	for (size_t *n = &o->feature_count; features[*n] && *n < MESSAGES_LIST_MAX; ++*n)
		snprintf(o->features[*n], RECIPE_NAME_MAX, "%s", features[*n]);
	if (!options->trainer && !options->data)
		return ERR_OK;
	if (!options->trainer || !options->data || strlen(options->trainer) >= RECIPE_NAME_MAX ||
	    strlen(options->data) >= RECIPE_NAME_MAX || recipe_names_builtin(options->trainer) ||
	    options->examples < 1)
		return err_set(why, ERR_INVALID, "trainer, data and examples belong together");
	strcpy(o->trainers[0], options->trainer);
	strcpy(o->data[0].name, options->data);
	o->data[0].examples = options->examples;
	o->trainer_count = o->data_count = 1;
	return ERR_OK;
}

static enum err
open_all(struct rivulet *r, const struct rivulet_options *options, struct why *why)
{
	enum err e = identity_home(r->home, options->home, why);

	if (!e)
		e = settings_load(&r->settings, r->home, options->config, why);
	if (!e)
		e = take_home(r, why);
	if (!e)
		e = open_session(r, why);
	if (!e)
		e = cache_init(&r->cache, r->home, r->settings->cache_bytes, why);
	if (!e)
		e = outbox_init(&r->outbox, r->home, r->settings->outbox_bytes, why);
	if (!e)
		e = residual_init(
		    &r->residual, r->home, r->settings->residual_bytes, &r->outbox, why);
	if (!e)
		e = scaffold_init(r->home, why);
	if (!e)
		e = local_init(r->home, why);
	if (!e)
		e = fill_offer(r, options, why);
	if (e)
		return e;
	home_note(r->home, "started", "and asking for work");
	backoff_init(&r->idle, prng_u64(&session_backoff(r->session)->rng));
	backoff_init(&r->rotate, prng_u64(&session_backoff(r->session)->rng));
	backoff_init(&r->resend, prng_u64(&session_backoff(r->session)->rng));
	return ERR_OK;
}

int
rivulet_open(
    struct rivulet **out, const struct rivulet_options *options, char *why, size_t why_size)
{
	struct why reason = {""};
	struct rivulet *r = calloc(1, sizeof(*r));
	enum err e = ERR_NOMEM;

	*out = NULL;
	if (r) {
		r->lock = -1;
		r->cancel = options->cancel;
		r->context = options->context;
		r->event = options->event;
		r->events = (struct events){.sink = r->event ? deliver_event : NULL, .context = r};
		e = open_all(r, options, &reason);
	}
	if (e) {
		if (why && why_size)
			snprintf(why, why_size, "%s", *reason.text ? reason.text : err_name(e));
		rivulet_close(r);
		return handle_error(e);
	}
	*out = r;
	return RIVULET_OK;
}

static void
drop_work(struct rivulet *r)
{
	work_deinit(&r->work);
	r->has_work = false;
}

void
rivulet_close(struct rivulet *r)
{
	if (!r)
		return;
	drop_work(r);
	if (r->offer)
		messages_offer_deinit(r->offer);
	free(r->offer);
	session_free(r->session);
	transport_free(r->mirror);
	settings_free(r->settings);
	home_unlock(r->lock);
	free(r);
}

static void
show_task(struct rivulet *r)
{
	struct work *w = &r->work;

	r->task = (struct rivulet_task){.id = w->task.task,
	    .job = w->task.job,
	    .model = w->task.model,
	    .round = w->task.round,
	    .seed = training_seed(w->task.seed, w->task.round, session_device(r->session)),
	    .deadline_s = w->task.deadline_s,
	    .params = w->params,
	    .recipe = w->recipe,
	    .tensors = w->tensors,
	    .tensor_count = w->table.count};
}

/* The abort reason that goes with a failure to prepare a task; NULL if the fault lies elsewhere. */
static const char *
abort_word(enum err e)
{
	switch (e) {
	case ERR_NOMEM:
		return "out-of-memory";
	case ERR_LIMIT:
		return "too-large";
	case ERR_NOSPACE:
		return "disk-full";
	case ERR_STATE:
		return "variate-lost";
	case ERR_INVALID:
	case ERR_CORRUPT:
	case ERR_UNSUPPORTED:
	case ERR_NOTFOUND:
		return "bad-model";
	default:
		return NULL;
	}
}

/* Fetches and loads; a task that cannot be done is given back and ERR_TIMEOUT returned. */
static enum err
prepare(struct rivulet *r)
{
	struct work *w = &r->work;
	const char *word = r->consider ? r->consider(r->agent, w, &r->why) : NULL;
	enum err e = ERR_OK;

	if (!word && w->task.model_bytes > r->settings->model_bytes) {
		err_set(&r->why, ERR_LIMIT, "the model has %llu bytes, model_bytes allows %llu",
		    (unsigned long long)w->task.model_bytes,
		    (unsigned long long)r->settings->model_bytes);
		word = "too-large";
	}
	if (!word) {
		e = fetch_model(r, &r->why);
		if (!e)
			e = work_load(w, w->path, r->settings->memory_bytes, &r->why);
		if (!e) {
			local_load(w, r->home);
			e = scaffold_load(r, &r->why);
		}
		if (!e)
			return ERR_OK;
		word = abort_word(e);
	}
	if (word) {
		struct why ignored;
		e = send_abort(r, w->task.task, word, r->why.text, &ignored);
		e = e == ERR_AGAIN ? e : ERR_TIMEOUT;
	}
	drop_work(r);
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

/* One pass: what waits in the outbox, then a request for work. */
static enum err
one_pass(struct rivulet *r, double left, double *pause_s)
{
	double wait = left < 0 || left > WAIT_MAX_S ? WAIT_MAX_S : left;
	if (handle_requested(r))
		serve_rotation(r);
	enum err e = send_all(r, &r->why);
	double due = r->resend_at - backoff_now();

	/* A held request must not keep a delta from its next try. */
	if (due > 0 && due < wait)
		wait = due;
	due = r->held_at - backoff_now();
	if (due > 0 && due < wait)
		wait = due;
	/* Nor the certificate from its renewal. */
	session_renew(r->session);
	due = session_renew_in(r->session);
	if (due > 0 && due < wait)
		wait = due;
	*pause_s = 0;
	if (!e)
		e = ask_once(r, (unsigned)wait, pause_s, &r->why);
	if (e)
		return e;
	if (outbox_has(&r->outbox, r->work.task.task)) {
		/* Done already, but the coordinator has not taken the delta, or has lost it with its memory. */
		drop_work(r);
		r->held_at = 0;
		*pause_s = backoff_next(&r->idle);
		return ERR_TIMEOUT;
	}
	e = prepare(r);
	if (e == ERR_TIMEOUT)
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

/* Waits, and renews the certificate when that becomes due meanwhile; false: cancelled, or something is asked of us. */
static bool
rest(struct rivulet *r, double seconds)
{
	double until = backoff_now() + seconds;
	bool whole;

	for (;;) {
		double left = until - backoff_now(), due = session_renew_in(r->session);
		bool last = !(due < left);
		r->asking = true;
		whole = backoff_sleep(last ? left : due + REST_S, handle_cancelled, r);
		r->asking = false;
		if (last || !whole)
			return whole;
		session_renew(r->session);
	}
}

int
rivulet_next(struct rivulet *r, double timeout_s, const struct rivulet_task **task)
{
	double until = backoff_now() + timeout_s, pause;

	*task = NULL;
	drop_work(r);
	for (;;) {
		double left = timeout_s < 0 ? -1 : until - backoff_now();
		enum err e = one_pass(r, left < 0 && timeout_s >= 0 ? 0 : left, &pause);
		if (!e) {
			show_task(r);
			*task = &r->task;
			return RIVULET_OK;
		}
		if (e == ERR_AGAIN && !handle_cancelled(r))
			continue; /* broken off for a request */
		if (e != ERR_TIMEOUT)
			note_failure(r, e);
		if (e != ERR_TIMEOUT && e != ERR_CLOSED)
			return handle_error(e);
		if (e == ERR_CLOSED) {
			if (pause <= 0)
				pause = backoff_next(session_backoff(r->session));
			events_emit(&r->events, EVENTS_WARN, "unreachable",
			    EVENTS_PAIRS(
				EVENTS_S("reason", r->why.text), EVENTS_D("seconds", pause)));
		}
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

int
rivulet_submit(struct rivulet *r, const struct rivulet_result *result)
{
	const struct finish f = {.examples = result->examples,
	    .steps = result->steps,
	    .loss = result->loss,
	    .accuracy = result->accuracy,
	    .partial = result->partial != 0,
	    .normaliser = (double)result->steps,
	    .optimizer = MANIFEST_EXTERNAL};

	return finish_submit(r, &f);
}

int
rivulet_abort(struct rivulet *r, const char *reason, const char *log)
{
	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	enum err e = send_abort(r, r->work.task.task, reason, log, &r->why);
	drop_work(r);
	return handle_error(e);
}

const char *
rivulet_why(const struct rivulet *r)
{
	return r->why.text;
}

const char *
rivulet_device(const struct rivulet *r)
{
	return session_identity(r->session)->device;
}

const char *
rivulet_name(const struct rivulet *r)
{
	return session_identity(r->session)->name;
}

const char *
rivulet_version(void)
{
	return RIVULET_VERSION;
}

const char *
rivulet_error_name(int error)
{
	static const char *const names[] = {"ok", "timeout", "stopped", "invalid", "limit",
	    "no-memory", "io", "not-found", "denied", "corrupt", "unreachable", "refused", "state",
	    "numeric"};

	return error >= 0 && error <= RIVULET_NUMERIC ? names[error] : "unknown";
}
