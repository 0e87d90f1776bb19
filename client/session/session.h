#ifndef SESSION_H
#define SESSION_H
#include "identity.h"
#include "line.h"
#include "problem.h"
#include "transport.h"

/*
 * A device's session with its coordinator: its key and certificate, the list of addresses with fail-over, and calls
 * with retries. One thread at a time; calls block.
 */
struct key;
struct session;

struct session_options {
	const char *home;
	/* Tried one after the other; none: the addresses of device.json. */
	const char (*urls)[ADDRESS_MAX];
	size_t url_count;
	bool (*cancel)(void *context);
	void *context;
	const struct events *events; /* NULL, or must outlive the session */
	bool locked; /* the caller holds the home's lock: renewals may write to it without asking */
};

ERR_MUST_USE enum err session_open(
    struct session **out, const struct session_options *options, struct why *why);
/* An admin session over a Unix socket: no identity. */
ERR_MUST_USE enum err session_open_socket(struct session **out, const char *path, struct why *why);
/* An admin session with an access token instead of a certificate. url: normalised; ca_pem: the CAs to trust. */
ERR_MUST_USE enum err session_open_token(
    struct session **out, const char *url, const char *ca_pem, const char *token, struct why *why);
void session_free(struct session *s);

const struct identity *session_identity(const struct session *s);
const uint8_t *session_device(const struct session *s); /* 32 bytes */
const struct key *session_key(const struct session *s);
/* KEY_SPKI_LEN bytes of the key that signs the coordinator's receipts; NULL if the home does not know it. */
const uint8_t *session_signer(const struct session *s);
struct backoff *session_backoff(struct session *s);
const char *session_url(const struct session *s); /* the address in use */
/* What the coordinator calls the last request (transport_answer.request), for the log; "": not known. */
const char *session_request(const struct session *s);
/* The wall clock of the last answer (0: none yet), and bytes so far, of exchanges that session_count was told of, too. */
void session_figures(const struct session *s, double *contact, uint64_t *sent, uint64_t *received);
/* Counts the bytes of an exchange with a mirror among the session's. */
void session_count(struct session *s, const struct transport_answer *answer);
int64_t session_ends(const struct session *s); /* when the certificate does, Unix seconds */
/* The pair of an event that has it; the last one, as without it the list ends there. */
#define SESSION_REQUEST(s) LINE_S(*session_request(s) ? "request" : NULL, session_request(s))

struct session_call {
	struct transport_request request; /* url stays NULL: the session sets it */
	const char *path; /* "/v1/..." */
	unsigned attempts; /* at least 1; each tries every address once */
	/* With a longer Retry-After the answer is returned, not retried; 0: no limit. */
	double patience_s;
	/* May be NULL. Called before each exchange, which goes to the address in use; may change *request, a copy, and call
	 * session_once. An error that it returns takes the place of the exchange. */
	enum err (*ready)(
	    void *context, struct session *s, struct transport_request *request, struct why *why);
	void *context; /* of ready */
};

/* One exchange with the address in use: no fail-over, no retries. Errors of transport_do, but a time-out is ERR_CLOSED. */
ERR_MUST_USE enum err session_once(struct session *s, const char *path,
    const struct transport_request *request, struct transport_answer *out, struct why *why);

/*
 * One request with fail-over and retries. Unreachable, timed out, 429 and 5xx are tried again after back-off or
 * Retry-After while attempts are left; any other status is an answer. `out` always belongs to the caller.
 * A certificate that is due is renewed before the request. A certificate refused as expired is renewed and the request repeated; a
 * rotation whose answer was lost is finished and the request repeated.
 * An address whose certificate does not check is skipped, as it may be a captive portal's. Errors of transport_do,
 * except that a time-out is ERR_CLOSED, too; the last answer's 429 or 5xx comes back as ERR_OK with its status.
 */
ERR_MUST_USE enum err session_do(struct session *s, const struct session_call *call,
    struct transport_answer *out, struct why *why);
/* Seconds until the certificate is due for renewal, which the next session_do then does; 0: now. */
double session_renew_in(const struct session *s);
/* Renews a due certificate now, without another request. */
void session_renew(struct session *s);
/* renew_asked; busy: the answer is a task. */
void session_renew_asked(struct session *s, bool wanted, bool busy);
/* Has this device's wall clock stepped since the last call? True once for each step, and long pauses of renewal end. Called while waiting:
 * a request that was refused before may succeed now. */
bool session_clock_stepped(struct session *s);
/* A number that grows whenever a request that failed may succeed from now on: the device's or the coordinator's clock has stepped, or a
 * refused certificate is accepted. A back-off that began before should end. */
unsigned session_revision(const struct session *s);
/* How long to wait instead of `pause` seconds: less if the certificate is refused for its dates. */
double session_pause(struct session *s, double pause);
/* Turns an answer that is no success into an error with the problem's text: 401, 403 ERR_DENIED; 404 ERR_NOTFOUND;
 * 409, 410 ERR_STATE; 413 ERR_LIMIT; 429 and 5xx ERR_CLOSED; other 4xx ERR_INVALID. ERR_OK for 2xx. `type`
 * (may be NULL) gets the type of the problem, whose word stands in `why`. */
ERR_MUST_USE enum err session_problem(
    const struct transport_answer *answer, enum problem_type *type, struct why *why);
/* session_problem that also says what the coordinator calls the request, for a person who looks into its log. */
ERR_MUST_USE enum err session_refusal(
    const struct transport_answer *answer, enum problem_type *type, struct why *why);
/* May a request with this answer succeed later (408, 429, 5xx)? */
bool session_retryable(long status);

#endif
