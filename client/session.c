#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "hex.h"
#include "key.h"
#include "messages.h"
#include "rng.h"
#include "x509.h"

#define URL_MAX (ADDRESS_MAX + 256)
#define RETRY_AFTER_MAX_S 300.0

struct session {
	struct identity identity;
	uint8_t device[32];
	struct key *key;
	uint8_t signer[KEY_SPKI_LEN];
	bool has_signer;
	struct transport *transport;
	char urls[IDENTITY_URLS_MAX][ADDRESS_MAX];
	size_t url_count, current;
	struct backoff backoff;
	bool (*cancel)(void *context);
	void *context;
	const struct events *events;
};

static enum err
read_pem(char **out, const char *home, const char *name, struct why *why)
{
	char path[PATH_MAX];
	size_t len;
	enum err e = identity_path(path, home, name, why);

	return e ? e : file_read(path, IDENTITY_PEM_MAX, out, &len, why);
}

static enum err
load_key(struct session *s, const char *home, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, home, "key.pem", why);

	if (!e)
		e = key_load(&s->key, path, why);
	if (e)
		return e;
	/* After a change of key the id stays that of the first one: device.json decides. */
	if (!hex_decode(s->device, sizeof(s->device), s->identity.device, 64))
		return err_set(why, ERR_CORRUPT, "%s/device.json: bad device id", home);
	return ERR_OK;
}

/* Homes that joined an older coordinator have no signer.pem. */
static enum err
load_signer(struct session *s, const char *home, struct why *why)
{
	struct x509_cert cert, ca;
	struct x509_info info;
	char *text = NULL, *ca_text = NULL;
	enum err e = read_pem(&text, home, "signer.pem", why);

	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	e = read_pem(&ca_text, home, "ca.pem", why);
	if (!e &&
	    (x509_from_pem(&cert, text, NULL) || x509_from_pem(&ca, ca_text, NULL) ||
		x509_verify(&cert, &ca) || x509_parse(&info, &cert, NULL)))
		e = err_set(why, ERR_CORRUPT, "%s/signer.pem is not certified by ca.pem", home);
	free(text);
	free(ca_text);
	if (e)
		return e;
	memcpy(s->signer, info.spki, KEY_SPKI_LEN);
	s->has_signer = true;
	return ERR_OK;
}

static enum err
connect_tls(struct session *s, const struct session_options *options, struct why *why)
{
	char key[KEY_PEM_MAX] = "";
	char *cert = NULL, *ca = NULL;
	enum err e = read_pem(&cert, options->home, "cert.pem", why);

	if (!e)
		e = read_pem(&ca, options->home, "ca.pem", why);
	if (!e && (e = key_pem(s->key, key)))
		err_set(why, e, "the key cannot be used for TLS");
	struct transport_options t = {.ca_pem = ca,
	    .cert_pem = cert,
	    .key_pem = key,
	    .cancel = options->cancel,
	    .context = options->context};
	if (!e)
		e = transport_new(&s->transport, &t, why);
	hash_wipe(key, sizeof(key));
	free(cert);
	free(ca);
	return e;
}

static void
take_urls(struct session *s, const struct session_options *options)
{
	size_t n = options->url_count ? options->url_count : s->identity.url_count;

	s->url_count = n < IDENTITY_URLS_MAX ? n : IDENTITY_URLS_MAX;
	for (size_t i = 0; i < s->url_count; i++)
		memcpy(s->urls[i], options->url_count ? options->urls[i] : s->identity.urls[i],
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
	s->events = options->events;
	seed_backoff(s);
	enum err e = identity_load(&s->identity, options->home, why);
	if (!e)
		e = load_key(s, options->home, why);
	if (!e)
		e = load_signer(s, options->home, why);
	if (!e)
		e = connect_tls(s, options, why);
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

void
session_free(struct session *s)
{
	if (!s)
		return;
	transport_free(s->transport);
	key_free(s->key);
	free(s);
}

const struct identity *
session_identity(const struct session *s)
{
	return &s->identity;
}

const uint8_t *
session_device(const struct session *s)
{
	return s->device;
}

const struct key *
session_key(const struct session *s)
{
	return s->key;
}

const uint8_t *
session_signer(const struct session *s)
{
	return s->has_signer ? s->signer : NULL;
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

/* Tries each address once, beginning with the one that worked last. */
static enum err
one_round(struct session *s, const struct session_call *call, struct transport_answer *out,
    struct why *why)
{
	char url[URL_MAX];
	bool unreachable = false;
	enum err e = ERR_CLOSED;

	for (size_t i = 0; i < s->url_count; i++) {
		struct transport_request request = call->request;
		int n = snprintf(url, sizeof(url), "%s%s", s->urls[s->current], call->path);
		if (n < 0 || (size_t)n >= sizeof(url))
			return err_set(why, ERR_LIMIT, "request path too long");
		request.url = url;
		if (i > 0)
			transport_answer_deinit(out);
		e = transport_do(s->transport, &request, out, why);
		if (e == ERR_TIMEOUT)
			e = ERR_CLOSED;
		if (!worth_another(e, out->status))
			return e;
		unreachable |= e == ERR_CLOSED;
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

enum err
session_do(struct session *s, const struct session_call *call, struct transport_answer *out,
    struct why *why)
{
	struct why local;
	struct why *text = why ? why : &local;

	*out = (struct transport_answer){.retry_after_s = -1};
	for (unsigned left = call->attempts;; left--) {
		enum err e = one_round(s, call, out, text);
		bool again = e == ERR_CLOSED || (!e && session_retryable(out->status));
		if (!again) {
			if (!e)
				backoff_reset(&s->backoff);
			return e;
		}
		if (left <= 1)
			return e;
		double pause = pause_of(s, out);
		if (s->events)
			events_emit(s->events, EVENTS_INFO, "retry",
			    EVENTS_PAIRS(EVENTS_S("path", call->path),
				EVENTS_U("status", (unsigned long)out->status),
				EVENTS_S("reason", e ? text->text : ""),
				EVENTS_D("seconds", pause)));
		if (!backoff_sleep(pause, s->cancel, s->context))
			return err_set(why, ERR_AGAIN, "cancelled");
		transport_answer_deinit(out);
	}
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
session_problem(const struct transport_answer *answer, char *word, struct why *why)
{
	struct problem p;

	if (word)
		*word = '\0';
	if (answer->status >= 200 && answer->status < 300)
		return ERR_OK;
	enum err e = status_error(answer->status);
	if (messages_problem_decode(&p, buf_str(&answer->body), answer->body.len, NULL))
		return err_set(why, e, "the coordinator answered with status %ld", answer->status);
	const char *colon = strrchr(p.type, ':');
	const char *kind = colon ? colon + 1 : p.type;
	if (word)
		snprintf(word, 64, "%.63s", kind);
	return err_set(why, e, "%s (%s)", *p.detail ? p.detail : p.title, kind);
}
