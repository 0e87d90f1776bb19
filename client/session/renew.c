#include "renew.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backoff.h"
#include "err.h"
#include "events.h"
#include "home.h"
#include "identity_set.h"
#include "messages.h"
#include "prng.h"
#include "session_inside.h"
#include "transport.h"

#define BACKDATE (2 * 86400) /* certificates begin so long before they are made */
#define PAUSE_FIRST_S 2.0
#define PAUSE_MAX_S 3600.0
#define PAUSE_BUSY_S 60.0
#define SPREAD_S 10.0 /* when the coordinator asks all devices at once to renew */
#define ANSWER_MAX (64u << 10)
#define DATE_MAX 32

static int64_t
lifetime_of(const struct renew_facts *f)
{
	int64_t whole = f->not_after - f->not_before;

	return whole > BACKDATE ? whole - BACKDATE : whole;
}

enum renew_need
renew_needed(const struct renew_facts *f, int64_t *at)
{
	int64_t due = f->not_after - lifetime_of(f) / 3;

	/* What the coordinator said counts only if it is earlier: it must not keep a device from renewing. By a wrong clock it may have
	 * said what lies before the certificate's time. */
	if (f->renew_after > f->not_before && f->renew_after < due)
		due = f->renew_after;
	due += (int64_t)((double)(f->not_after - due) / 4 * f->spread);
	*at = due;
	if (f->now >= f->not_after)
		return RENEW_EXPIRED;
	if (f->now < f->not_before)
		return RENEW_NOT_YET;
	if (f->now >= due)
		return RENEW_DUE;
	return f->has_signer ? RENEW_NO : RENEW_SIGNER;
}

static struct renew_facts
facts_of(const struct session *s)
{
	return (struct renew_facts){.now = skew_now(&s->skew),
	    .not_before = s->held.cert.not_before,
	    .not_after = s->held.cert.not_after,
	    .renew_after = s->held.identity.renew_after,
	    .has_signer = s->held.has_signer,
	    .spread = s->spread};
}

/* What the certificate's dates, or the home, ask for; NULL: nothing. */
static const char *
need_of(const struct session *s, int64_t *at)
{
	const struct renew_facts f = facts_of(s);

	switch (renew_needed(&f, at)) {
	case RENEW_EXPIRED:
		return "expired";
	case RENEW_NOT_YET:
		/* By this device's clock alone it is that one which is wrong. */
		return s->skew.known ? "not-yet" : NULL;
	case RENEW_DUE:
		return "due";
	case RENEW_SIGNER:
		/* An administrator's command checks no receipts. */
		return s->locked ? "signer" : NULL;
	default:
		return NULL;
	}
}

static const char *
cause_of(const struct session *s)
{
	int64_t at;
	const char *need = need_of(s, &at);

	if (need && backoff_now() >= s->renew_dates_at)
		return need;
	return s->renew_wanted ? "asked" : NULL;
}

double
renew_in(const struct session *s)
{
	const double now = backoff_now();
	int64_t at = 0;

	if (!*s->home)
		return PAUSE_MAX_S;
	double due = need_of(s, &at) ? 0 : (double)(at - skew_now(&s->skew));
	due = fmax(due, s->renew_dates_at - now);
	if (s->renew_wanted)
		due = 0;
	return fmax(fmax(due, s->renew_at - now), 0);
}

static enum err
ask(struct session *s, struct join_answer *out, struct why *why)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct transport_answer answer = {.retry_after_s = -1};
	const struct session_call call = {.path = "/v1/renew",
	    .request = {.method = "POST",
		.headers = headers,
		.body = "{}",
		.body_len = 2,
		.answer_max = ANSWER_MAX}};
	enum err e = session_try(s, &call, &answer, why);

	if (!e)
		e = session_problem(&answer, NULL, why);
	if (!e)
		e = messages_joined_decode(out, buf_str(&answer.body), answer.body.len, why);
	transport_answer_deinit(&answer);
	return e;
}

/* The new certificate and CAs are tried before they take the old ones' place: what a coordinator with the wrong CA or clock
 * gives out must not lock the device out. */
static enum err
try_out(struct session *s, const struct join_answer *answer, struct why *why)
{
	char key[KEY_PEM_MAX] = "", url[ADDRESS_MAX + 16];
	struct transport_answer seen = {.retry_after_s = -1};
	struct transport *t = NULL;
	enum err e = key_pem(s->held.key, key);
	const struct transport_options options = {.ca_pem = answer->ca,
	    .cert_pem = answer->certificate,
	    .key_pem = key,
	    .cancel = s->cancel,
	    .context = s->context};

	if (!e)
		e = transport_new(&t, &options, why);
	hash_wipe(key, sizeof(key));
	if (e)
		return e;
	snprintf(url, sizeof(url), "%s/v1/status", session_url(s));
	const struct transport_request request = {.method = "GET", .url = url};
	e = transport_do(t, &request, &seen, why);
	if (!e)
		e = session_problem(&seen, NULL, why);
	transport_answer_deinit(&seen);
	transport_free(t);
	return e;
}

/* With the home's lock in hand. */
static enum err
renew_locked(struct session *s, struct why *why)
{
	struct join_answer *answer = malloc(sizeof(*answer));
	enum err e = answer ? ask(s, answer, why) : err_set(why, ERR_NOMEM, "no memory");

	if (!e)
		e = identity_set_check(answer, s->held.identity.device, key_spki(s->held.key), why);
	if (!e)
		e = try_out(s, answer, why);
	if (!e)
		e = identity_set_stage(s->home, answer, why);
	if (!e)
		e = identity_set_apply(s->home, why);
	free(answer);
	return e ? e : session_reload(s, why);
}

static double
drawn_pause(struct session *s)
{
	return RENEW_PAUSE_MIN_S +
	    (RENEW_PAUSE_MAX_S - RENEW_PAUSE_MIN_S) * prng_double(&s->backoff.rng);
}

/* After so many renewals in a row that changed nothing. */
static double
pause_after(struct session *s, unsigned renewals)
{
	double pause = RENEW_PAUSE_MAX_S;

	if (renewals <= RENEW_CALM)
		return drawn_pause(s);
	for (unsigned i = RENEW_CALM; i < renewals && pause < PAUSE_MAX_S; i++)
		pause *= 2;
	return fmin(pause, PAUSE_MAX_S) * (0.5 + 0.5 * prng_double(&s->backoff.rng));
}

/* Not at once again. For its dates: a tenth of the life that the certificate has, whatever the coordinator's dates say. */
static void
succeeded(struct session *s, const char *cause)
{
	const struct renew_facts f = facts_of(s);
	const double days = (double)(f.not_after - f.now) / 86400;
	const double rest = 1 + (double)lifetime_of(&f) / 10, now = backoff_now();
	const unsigned vain = s->renew_asked > s->renew_refused ? s->renew_asked : s->renew_refused;

	s->renew_failures = 0;
	s->renew_wanted = false;
	s->renew_dates_at = now + rest;
	s->renew_at = now + fmin(rest, pause_after(s, vain));
	events_emit(s->events, EVENTS_INFO, "certificate.renewed",
	    EVENTS_PAIRS(EVENTS_S("cause", cause), EVENTS_D("days", days),
		EVENTS_S("signer", s->held.has_signer ? "known" : "unknown"), SESSION_REQUEST(s)));
}

static void
failed(struct session *s, const char *cause, const struct why *why)
{
	double pause = PAUSE_FIRST_S;

	for (unsigned i = 0; i < s->renew_failures && pause < PAUSE_MAX_S; i++)
		pause *= 2;
	if (pause > PAUSE_MAX_S)
		pause = PAUSE_MAX_S;
	s->renew_failures++;
	pause *= 0.5 + 0.5 * prng_double(&s->backoff.rng);
	s->renew_at = backoff_now() + pause;
	events_emit(s->events, EVENTS_WARN, "certificate.renew-failed",
	    EVENTS_PAIRS(EVENTS_S("cause", cause), EVENTS_S("reason", why->text),
		EVENTS_D("again_s", pause), SESSION_REQUEST(s)));
}

enum err
renew_now(struct session *s, const char *cause, struct why *why)
{
	struct why local;
	struct why *text = why ? why : &local;
	int lock = -1;
	enum err e = s->locked ? ERR_OK : home_lock(&lock, s->home, text);

	if (e) {
		s->renew_at = backoff_now() + PAUSE_BUSY_S;
		return e;
	}
	s->changing = true;
	e = renew_locked(s, text);
	s->changing = false;
	home_unlock(lock);
	if (!e)
		succeeded(s, cause);
	else if (e != ERR_AGAIN)
		failed(s, cause, text);
	return e;
}

void
renew_if_due(struct session *s)
{
	const char *cause;

	if (!*s->home || s->changing || backoff_now() < s->renew_at)
		return;
	cause = cause_of(s);
	if (cause)
		(void)!renew_now(s, cause, NULL);
}

/* --- what the coordinator says of the certificate */

static void
print_date(char out[DATE_MAX], int64_t seconds)
{
	const time_t t = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(out, DATE_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm))
		strcpy(out, "?");
}

static void
tell_refused(struct session *s, int64_t date)
{
	char there[DATE_MAX] = "unknown", begins[DATE_MAX], ends[DATE_MAX];

	if (s->refused)
		return;
	s->refused = true;
	if (date > 0)
		print_date(there, date);
	print_date(begins, s->held.cert.not_before);
	print_date(ends, s->held.cert.not_after);
	events_emit(s->events, EVENTS_WARN, "certificate.refused",
	    EVENTS_PAIRS(EVENTS_S("coordinator", there), EVENTS_S("begins", begins),
		EVENTS_S("ends", ends), EVENTS_D("again_s", fmax(s->renew_at - backoff_now(), 0))));
}

static void
no_longer_than(double *at, double pause)
{
	*at = fmin(*at, backoff_now() + pause);
}

static void
shorten_pauses(struct session *s)
{
	const double pause = drawn_pause(s);

	no_longer_than(&s->renew_at, pause);
	no_longer_than(&s->renew_dates_at, pause);
}

void
renew_hurry(struct session *s)
{
	s->renew_failures = s->renew_asked = s->renew_refused = 0;
	shorten_pauses(s);
}

bool
renew_refused(struct session *s, int64_t date)
{
	const bool in_time = date >= s->held.cert.not_before && date <= s->held.cert.not_after;
	struct why why;

	/* The coordinator judged by another clock than it shows. */
	if (date > 0 && in_time && s->renew_refused < RENEW_CALM)
		shorten_pauses(s);
	tell_refused(s, date);
	if (backoff_now() < s->renew_at)
		return false;
	s->renew_refused++;
	return renew_now(s, "refused", &why) == ERR_OK;
}

void
renew_accepted(struct session *s)
{
	s->renew_refused = 0;
	s->revision += s->refused;
	s->refused = false;
}

void
renew_asked(struct session *s, bool wanted, bool busy)
{
	if (!wanted)
		s->renew_asked = 0;
	if (!wanted || s->renew_wanted)
		return;
	s->renew_wanted = true;
	/* Of what was put off for long before, nobody knew that it would be asked for. */
	if (s->renew_asked++ == 0) {
		s->renew_failures = 0;
		no_longer_than(&s->renew_at, drawn_pause(s));
	}
	if (!busy)
		s->renew_at = fmax(s->renew_at, backoff_now() + SPREAD_S * s->spread);
}
