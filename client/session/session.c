#include "session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "events.h"
#include "messages.h"
#include "rekey.h"
#include "renew.h"
#include "rng.h"
#include "session_inside.h"

#define URL_MAX (ADDRESS_MAX + 256)
#define RETRY_AFTER_MAX_S 300.0
#define CLOCK_OFF_S 60
#define REFUSED_LOOK_S \
	20.0 /* so often, at least, a device whose certificate is refused looks whether it still is */
#define HEADERS_MAX 14

static const struct events silent;

static enum err
connect_tls(struct transport **out, const struct session *s, const struct credentials *held,
    struct why *why)
{
	char key[KEY_PEM_MAX] = "";
	enum err e = key_pem(held->key, key);
	const struct transport_options t = {.ca_pem = held->ca_pem,
	    .cert_pem = held->cert_pem,
	    .key_pem = key,
	    .cancel = s->cancel,
	    .context = s->context};

	if (e)
		err_set(why, e, "the key cannot be used for TLS");
	else
		e = transport_new(out, &t, why);
	hash_wipe(key, sizeof(key));
	return e;
}

enum err
session_reload(struct session *s, struct why *why)
{
	struct credentials held;
	struct transport *transport;
	enum err e = credentials_load(&held, s->home, why);

	if (e)
		return e;
	e = connect_tls(&transport, s, &held, why);
	if (e) {
		credentials_deinit(&held);
		return e;
	}
	transport_free(s->transport);
	credentials_deinit(&s->held);
	s->transport = transport;
	s->held = held;
	/* Two bytes of a hash: as good as drawn, and the same each time. */
	s->spread = (held.device[0] * 256 + held.device[1]) / 65536.0;
	return ERR_OK;
}

static void
take_urls(struct session *s, const struct session_options *options)
{
	size_t n = options->url_count ? options->url_count : s->held.identity.url_count;

	s->url_count = n < IDENTITY_URLS_MAX ? n : IDENTITY_URLS_MAX;
	for (size_t i = 0; i < s->url_count; i++)
		memcpy(s->urls[i], options->url_count ? options->urls[i] : s->held.identity.urls[i],
		    ADDRESS_MAX);
}

/* Jitter wants numbers that differ between devices, not reproducible ones. */
static void
seed_backoff(struct session *s)
{
	uint64_t seed = 0;

	if (rng_bytes(&seed, sizeof(seed)))
		seed = (uint64_t)getpid() ^ (uint64_t)(backoff_now() * 1e9);
	backoff_init(&s->backoff, seed);
}

enum err
session_open(struct session **out, const struct session_options *options, struct why *why)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(why, ERR_NOMEM, "no memory for a session");
	s->cancel = options->cancel;
	s->context = options->context;
	s->events = options->events ? options->events : &silent;
	seed_backoff(s);
	s->locked = options->locked;
	if (strlen(options->home) >= sizeof(s->home)) {
		session_free(s);
		return err_set(why, ERR_LIMIT, "the home directory's name is too long");
	}
	strcpy(s->home, options->home);
	enum err e = session_reload(s, why);
	if (e) {
		session_free(s);
		return e;
	}
	take_urls(s, options);
	*out = s;
	return ERR_OK;
}

enum err
session_open_socket(struct session **out, const char *path, struct why *why)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(why, ERR_NOMEM, "no memory for a session");
	s->events = &silent;
	seed_backoff(s);
	strcpy(s->urls[0], "http://localhost");
	s->url_count = 1;
	struct transport_options t = {.unix_socket = path};
	enum err e = transport_new(&s->transport, &t, why);
	if (e) {
		session_free(s);
		return e;
	}
	*out = s;
	return ERR_OK;
}

enum err
session_open_token(
    struct session **out, const char *url, const char *ca_pem, const char *token, struct why *why)
{
	struct session *s = calloc(1, sizeof(*s));
	const struct transport_options t = {.ca_pem = ca_pem};

	if (!s || asprintf(&s->bearer, "Authorization: Bearer %s", token) < 0) {
		free(s);
		return err_set(why, ERR_NOMEM, "no memory for a session");
	}
	s->events = &silent;
	seed_backoff(s);
	snprintf(s->urls[0], ADDRESS_MAX, "%s", url);
	s->url_count = 1;
	enum err e = transport_new(&s->transport, &t, why);
	if (e) {
		session_free(s);
		return e;
	}
	*out = s;
	return ERR_OK;
}

void
session_free(struct session *s)
{
	if (!s)
		return;
	if (s->bearer)
		hash_wipe(s->bearer, strlen(s->bearer));
	free(s->bearer);
	transport_free(s->transport);
	credentials_deinit(&s->held);
	free(s);
}

const struct identity *
session_identity(const struct session *s)
{
	return &s->held.identity;
}

const uint8_t *
session_device(const struct session *s)
{
	return s->held.device;
}

const struct key *
session_key(const struct session *s)
{
	return s->held.key;
}

const uint8_t *
session_signer(const struct session *s)
{
	return s->held.has_signer ? s->held.signer : NULL;
}

struct backoff *
session_backoff(struct session *s)
{
	return &s->backoff;
}

const char *
session_url(const struct session *s)
{
	return s->urls[s->current];
}

void
session_figures(const struct session *s, double *contact, uint64_t *sent, uint64_t *received)
{
	*contact = s->contact;
	*sent = s->sent;
	*received = s->received;
}

void
session_count(struct session *s, const struct transport_answer *answer)
{
	s->sent += answer->sent_bytes;
	s->received += answer->received_bytes;
}

int64_t
session_ends(const struct session *s)
{
	return s->held.cert.not_after;
}

const char *
session_request(const struct session *s)
{
	return s->request;
}

bool
session_retryable(long status)
{
	return status == 408 || status == 429 || status >= 500;
}

/* Could another address of the same coordinator do better? */
static bool
worth_another(enum err e, long status)
{
	return e == ERR_CLOSED || e == ERR_DENIED || (!e && status >= 502 && status <= 504);
}

/* A clock that stepped is told once, and what was put off by it is looked at again. */
static void
tell_step(struct session *s, const char *whose, double seconds)
{
	if (seconds == 0)
		return;
	events_emit(s->events, EVENTS_WARN, "clock.stepped",
	    EVENTS_PAIRS(EVENTS_S("whose", whose),
		EVENTS_S("to", seconds > 0 ? "later" : "earlier"),
		EVENTS_U("seconds", (unsigned long long)fabs(seconds))));
	s->revision++;
	renew_hurry(s);
}

bool
session_clock_stepped(struct session *s)
{
	const double seconds = skew_look(&s->skew);

	tell_step(s, "device", seconds);
	return seconds != 0;
}

/* The device's clock against the coordinator's: a wrong one explains refused certificates and odd times in logs. */
static void
note_clock(struct session *s, const struct transport_answer *answer)
{
	int64_t off, moved;

	if (!*s->home || answer->date == 0)
		return;
	tell_step(s, "coordinator", skew_hear(&s->skew, answer->date, answer->date_at));
	off = skew_offset(&s->skew);
	moved = off - s->clock_told;
	if (moved >= -CLOCK_OFF_S && moved <= CLOCK_OFF_S)
		return;
	s->clock_told = off;
	if (off >= -CLOCK_OFF_S && off <= CLOCK_OFF_S)
		events_emit(s->events, EVENTS_INFO, "clock.right",
		    EVENTS_PAIRS(EVENTS_D("seconds", (double)off)));
	else
		events_emit(s->events, EVENTS_WARN, "clock.wrong",
		    EVENTS_PAIRS(EVENTS_S("this_device", off > 0 ? "slow" : "fast"),
			EVENTS_U("seconds", (unsigned long long)(off > 0 ? off : -off))));
}

static void
tell_address(const struct session *s, const char *reason, long status)
{
	if (s->events)
		events_emit(s->events, EVENTS_INFO, "address.failed",
		    EVENTS_PAIRS(EVENTS_S("url", s->urls[s->current]),
			EVENTS_U("status", (unsigned long)status), EVENTS_S("reason", reason),
			SESSION_REQUEST(s)));
}

/* The call's headers, and the token if there is one. */
static enum err
add_bearer(const struct session *s, const struct transport_request *request,
    const char *out[HEADERS_MAX + 2])
{
	size_t n = 0;

	for (; request->headers && request->headers[n]; n++) {
		if (n == HEADERS_MAX)
			return ERR_LIMIT;
		out[n] = request->headers[n];
	}
	out[n] = s->bearer;
	out[n + 1] = NULL;
	return ERR_OK;
}

enum err
session_once(struct session *s, const char *path, const struct transport_request *request,
    struct transport_answer *out, struct why *why)
{
	struct transport_request there = *request;
	const char *headers[HEADERS_MAX + 2];
	char url[URL_MAX];
	int n = snprintf(url, sizeof(url), "%s%s", s->urls[s->current], path);

	*out = (struct transport_answer){.retry_after_s = -1};
	if (n < 0 || (size_t)n >= sizeof(url))
		return err_set(why, ERR_LIMIT, "request path too long");
	if (add_bearer(s, request, headers))
		return err_set(why, ERR_LIMIT, "too many headers");
	there.url = url;
	there.headers = headers;
	s->request[0] = '\0';
	enum err e = transport_do(s->transport, &there, out, why);
	strcpy(s->request, out->request);
	session_count(s, out);
	if (!e) {
		s->contact = clock_wall();
		note_clock(s, out);
	}
	return e == ERR_TIMEOUT ? ERR_CLOSED : e;
}

enum err
session_try(struct session *s, const struct session_call *call, struct transport_answer *out,
    struct why *why)
{
	bool unreachable = false;
	enum err e = ERR_CLOSED;

	for (size_t i = 0; i < s->url_count; i++) {
		struct transport_request request = call->request;
		if (i > 0)
			transport_answer_deinit(out);
		*out = (struct transport_answer){.retry_after_s = -1};
		e = call->ready ? call->ready(call->context, s, &request, why) : ERR_OK;
		if (!e)
			e = session_once(s, call->path, &request, out, why);
		if (!worth_another(e, out->status))
			return e;
		unreachable |= e == ERR_CLOSED;
		if (s->url_count > 1)
			tell_address(s, e && why ? why->text : "", out->status);
		s->current = (s->current + 1) % s->url_count;
	}
	/* The address that answers with a strange certificate is not the one to wait for. */
	return e == ERR_DENIED && unreachable ? ERR_CLOSED : e;
}

static double
pause_of(struct session *s, const struct transport_answer *answer)
{
	double after = answer->retry_after_s;

	if (after > 0)
		return backoff_after(
		    &s->backoff, after < RETRY_AFTER_MAX_S ? after : RETRY_AFTER_MAX_S);
	return backoff_next(&s->backoff);
}

static enum err
with_retries(struct session *s, const struct session_call *call, struct transport_answer *out,
    struct why *text)
{
	*out = (struct transport_answer){.retry_after_s = -1};
	for (unsigned left = call->attempts;; left--) {
		enum err e = session_try(s, call, out, text);
		bool again = e == ERR_CLOSED || (!e && session_retryable(out->status));
		if (!again) {
			if (!e)
				backoff_reset(&s->backoff);
			return e;
		}
		bool too_long = call->patience_s > 0 && out->retry_after_s > call->patience_s;
		if (left <= 1 || too_long)
			return e;
		double pause = pause_of(s, out);
		events_emit(s->events, EVENTS_INFO, "retry",
		    EVENTS_PAIRS(EVENTS_S("path", call->path),
			EVENTS_U("status", (unsigned long)out->status),
			EVENTS_S("reason", e ? text->text : ""), EVENTS_D("seconds", pause),
			SESSION_REQUEST(s)));
		if (!backoff_sleep(pause, s->cancel, s->context))
			return err_set(text, ERR_AGAIN, "cancelled");
		transport_answer_deinit(out);
	}
}

/* A refusal that this device can mend by itself. */
static bool
mended(struct session *s, const struct transport_answer *answer)
{
	enum problem_type type;
	struct why why;

	if (!*s->home || s->changing || answer->status != 403 ||
	    session_problem(answer, &type, &why) == ERR_OK)
		return false;
	if (type == PROBLEM_EXPIRED_CERTIFICATE)
		return renew_refused(s, answer->date);
	/* An earlier rotation's answer was lost. */
	return type == PROBLEM_KEY_ROTATED && s->locked && rekey_begun(s->home) &&
	    rekey_run(s, &why) == ERR_OK;
}

static void
note_accepted(struct session *s, enum err e, const struct transport_answer *answer)
{
	if (!e && answer->status >= 200 && answer->status < 300 && !s->changing)
		renew_accepted(s);
}

enum err
session_do(struct session *s, const struct session_call *call, struct transport_answer *out,
    struct why *why)
{
	struct why local;
	struct why *text = why ? why : &local;

	if (*s->home)
		(void)session_clock_stepped(s);
	renew_if_due(s);
	enum err e = with_retries(s, call, out, text);
	if (e || !mended(s, out)) {
		note_accepted(s, e, out);
		return e;
	}
	transport_answer_deinit(out);
	e = with_retries(s, call, out, text);
	note_accepted(s, e, out);
	return e;
}

double
session_renew_in(const struct session *s)
{
	return renew_in(s);
}

void
session_renew(struct session *s)
{
	renew_if_due(s);
}

void
session_renew_asked(struct session *s, bool wanted, bool busy)
{
	renew_asked(s, wanted, busy);
}

unsigned
session_revision(const struct session *s)
{
	return s->revision;
}

double
session_pause(struct session *s, double pause)
{
	const double until = fmax(s->renew_at - backoff_now(), REFUSED_LOOK_S / 10);

	return s->refused
	    ? fmin(pause, fmin(until, REFUSED_LOOK_S) + 2 * prng_double(&s->backoff.rng))
	    : pause;
}

static enum err
status_error(long status)
{
	if (status == 401 || status == 403)
		return ERR_DENIED;
	if (status == 404)
		return ERR_NOTFOUND;
	if (status == 409 || status == 410)
		return ERR_STATE;
	if (status == 413)
		return ERR_LIMIT;
	return session_retryable(status) ? ERR_CLOSED : ERR_INVALID;
}

enum err
session_problem(const struct transport_answer *answer, enum problem_type *type, struct why *why)
{
	struct problem p;

	if (type)
		*type = PROBLEM_NONE;
	if (answer->status >= 200 && answer->status < 300)
		return ERR_OK;
	enum err e = status_error(answer->status);
	if (messages_problem_decode(&p, buf_str(&answer->body), answer->body.len, NULL))
		return err_set(why, e, "the coordinator answered with status %ld", answer->status);
	const char *colon = strrchr(p.type, ':');
	const char *kind = colon ? colon + 1 : p.type;
	if (type)
		*type = problem_find(p.type);
	return err_set(why, e, "%s (%s)", *p.detail ? p.detail : p.title, kind);
}

enum err
session_refusal(const struct transport_answer *answer, enum problem_type *type, struct why *why)
{
	char cite[REQUEST_ID_MAX + 16];
	enum err e = session_problem(answer, type, why);

	if (!e || !*answer->request)
		return e;
	/* It must not be what is cut off. */
	int len = snprintf(cite, sizeof(cite), " [request %s]", answer->request);
	why->text[sizeof(why->text) - 1 - (size_t)len] = '\0';
	strcat(why->text, cite);
	return e;
}
