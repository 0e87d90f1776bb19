#include "rivulet.h"

#include <stdio.h>
#include <stdlib.h>

#include "ask.h"
#include "device.h"
#include "finish.h"
#include "handle_inside.h"
#include "home.h"
#include "identity_set.h"
#include "local.h"
#include "next.h"
#include "scaffold.h"

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

static void
tell_warnings(const struct rivulet *r)
{
	const struct ini_warnings *w = &r->settings->warnings;

	for (size_t i = 0; i < w->count; i++)
		events_emit(&r->events, EVENTS_WARN, "settings.warning",
		    EVENTS_PAIRS(EVENTS_S("why", w->text[i].text)));
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
		e = ask_offer(r, options, why);
	if (e)
		return e;
	tell_warnings(r);
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

void
rivulet_close(struct rivulet *r)
{
	if (!r)
		return;
	handle_drop(r);
	if (r->offer)
		messages_offer_deinit(r->offer);
	free(r->offer);
	session_free(r->session);
	transport_free(r->mirror);
	settings_free(r->settings);
	home_unlock(r->lock);
	free(r);
}

int
rivulet_next(struct rivulet *r, double timeout_s, const struct rivulet_task **task)
{
	int rc = next_task(r, timeout_s);

	*task = rc == RIVULET_OK ? &r->task : NULL;
	return rc;
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
	return device_abort(r, abort_reason_parse(reason), log);
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
