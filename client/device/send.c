#include "send.h"

#include <stdio.h>
#include <string.h>

#include "excerpt.h"
#include "fault.h"
#include "hash.h"
#include "hex.h"
#include "program_state.h"
#include "sign.h"
#include "upload.h"

#define ATTEMPTS 5
#define ABORT_ATTEMPTS 3
#define RETRY_AFTER_MAX_S 300.0
#define HELD_S 10.0 /* between two questions after what the coordinator holds in memory */

/* One delta on its way. */
struct sending {
	const char *task;
	unsigned attempts;
	bool again; /* it was sent before, perhaps */
	bool held; /* taken, but into memory: the copy here stays */
	bool busy; /* the coordinator answered, but could not take it */
	enum problem_type refused; /* for good, for this */
	double retry_after_s;
};

/* signer: of the key that must have signed it; NULL if this home does not know it. */
static enum err
check_receipt(const struct outbox_entry *entry, const struct transport_answer *answer,
    const uint8_t *signer, struct why *why)
{
	struct receipt receipt;
	uint8_t hash[HASH_LEN];
	enum err e =
	    manifest_receipt_decode(&receipt, buf_str(&answer->body), answer->body.len, why);

	if (e)
		return ERR_CORRUPT;
	hash_sha256(hash, buf_str(&answer->body), RECEIPT_SIGNED);
	if (signer && sign_verify(signer, hash, receipt.signature))
		return err_set(why, ERR_CORRUPT, "the receipt's signature does not verify");
	hash_sha256(hash, entry->raw, MANIFEST_SIGNED);
	if (memcmp(receipt.manifest_hash, hash, HASH_LEN) != 0 ||
	    memcmp(receipt.job, entry->manifest.job, sizeof(receipt.job)) != 0 ||
	    receipt.round != entry->manifest.round)
		return err_set(why, ERR_CORRUPT, "the receipt is for something else");
	return ERR_OK;
}

/* Refusals that concern the device or its certificate: mended by somebody, and the delta is as good as before. */
static bool
is_passing(enum problem_type t)
{
	return t == PROBLEM_NO_CERTIFICATE || t == PROBLEM_BAD_TOKEN ||
	    t == PROBLEM_UNKNOWN_DEVICE || t == PROBLEM_EXPIRED_CERTIFICATE ||
	    t == PROBLEM_DEVICE_SUSPENDED || t == PROBLEM_FORBIDDEN;
}

bool
send_final(long status, enum problem_type t)
{
	if (status < 400 || status == 401 || session_retryable(status) || is_passing(t))
		return false;
	return status != 403 || t == PROBLEM_DEVICE_REVOKED || t == PROBLEM_WRONG_DEVICE ||
	    t == PROBLEM_WRONG_TASK || t == PROBLEM_BAD_SIGNATURE;
}

/* A delta with its job's residual in it is too long: so would be the next ones, for what is refused leaves the residual as it is. */
static enum err
forget_residual(struct rivulet *r, const struct outbox_entry *entry, struct why *why)
{
	char job[33];

	hex_encode(job, entry->manifest.job, sizeof(entry->manifest.job));
	enum err e = residual_forget(&r->residual, job, why);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	events_emit(&r->events, EVENTS_WARN, "residual.lost",
	    EVENTS_PAIRS(EVENTS_S("job", job), EVENTS_S("reason", "norm-too-large")));
	return ERR_OK;
}

/* What waited for this delta's receipt counts from now on. */
static enum err
put_in_force(struct rivulet *r, const char *task, struct why *why)
{
	enum err e = residual_accept(&r->residual, task, why);

	return e ? e : program_state_accept(r->home, task, why);
}

/* It will never come. */
static void
forget(struct rivulet *r, const char *task)
{
	residual_refuse(&r->residual, task);
	program_state_refuse(r->home, task);
}

/* A delta that is refused says nothing of the device, nor does one that has to wait. */
static void
note_answer(
    struct rivulet *r, const struct transport_answer *answer, enum err e, enum problem_type type)
{
	bool ours =
	    e == ERR_DENIED && (type < PROBLEM_WRONG_DEVICE || type > PROBLEM_BAD_SIGNATURE);

	if (e != ERR_CLOSED)
		handle_answered(r, answer, ours ? e : ERR_OK, ours ? type : PROBLEM_NONE);
}

static enum err
judge(struct rivulet *r, const struct outbox_entry *entry, struct sending *s,
    const struct transport_answer *answer, struct why *why)
{
	enum problem_type type;
	enum err e = session_problem(answer, &type, why);
	bool taken = !e;

	if (taken && check_receipt(entry, answer, session_signer(r->session), why)) {
		/* As good as a lost answer: the same delta is answered with its receipt again. */
		s->busy = true;
		return ERR_CLOSED;
	}
	note_answer(r, answer, e, type);
	if (!taken && !send_final(answer->status, type)) {
		s->busy = session_retryable(answer->status);
		s->retry_after_s = answer->retry_after_s;
		return e == ERR_STATE ? ERR_DENIED : e;
	}
	FAULT("client.receipt");
	s->held = taken && answer->in_memory;
	if (taken && !s->held && put_in_force(r, s->task, why)) {
		/* Answered again with its receipt once the disk takes it. */
		s->busy = true;
		return ERR_CLOSED;
	}
	struct why unforgotten;
	if (!taken && type == PROBLEM_NORM_TOO_LARGE && forget_residual(r, entry, &unforgotten)) {
		/* Refused again, once the disk lets go of it. */
		*why = unforgotten;
		s->busy = true;
		return ERR_CLOSED;
	}
	if (!s->held)
		outbox_remove(&r->outbox, s->task);
	s->refused = taken ? PROBLEM_NONE : type;
	if (!taken)
		forget(r, s->task);
	return taken ? ERR_OK : ERR_STATE;
}

/* Refused for what is in it, and not for when it came. */
static bool
is_bad(enum problem_type t)
{
	return t == PROBLEM_TOO_LARGE || t == PROBLEM_BAD_SIGNATURE ||
	    (t >= PROBLEM_BAD_MANIFEST && t <= PROBLEM_WRONG_KIND);
}

/* The same work would be refused again: the job rests, as where a task fails. A delta that had to wait here and came too late says nothing
 * of the job. */
static void
take_refusal(struct rivulet *r, const char *job, const struct sending *s)
{
	bool bad = is_bad(s->refused);

	if (bad || !s->again)
		handle_failed(r, job, ABORT_UNKNOWN, bad ? handle_worked(r) : 0);
}

static enum err
send_entry(struct rivulet *r, const struct outbox_entry *entry, struct sending *s, struct why *why)
{
	struct transport_answer answer;
	char job[33];
	FAULT("client.send");
	const struct upload u = {entry, s->task, s->attempts, s->again};
	enum err e = upload_send(r, &u, &answer, why);
	FAULT("client.sent");

	if (e)
		handle_answered(r, NULL, e, PROBLEM_NONE);
	else
		e = judge(r, entry, s, &answer, why);
	r->taken += !e && !s->held;
	hex_encode(job, entry->manifest.job, sizeof(entry->manifest.job));
	const struct line_pair pairs[] = {EVENTS_S("job", job),
	    EVENTS_U("round", entry->manifest.round), EVENTS_U("bytes", entry->body_bytes),
	    EVENTS_D("loss", (double)entry->manifest.loss),
	    EVENTS_U("status", (unsigned long)answer.status),
	    e ? EVENTS_S("reason", why->text)
	      : EVENTS_S("receipt", session_signer(r->session) ? "verified" : "unchecked"),
	    EVENTS_S("request", answer.request),
	    EVENTS_S(*answer.began ? "began" : NULL, answer.began), EVENTS_END};
	bool evaluates = manifest_kind(&entry->manifest) == TASK_EVALUATE;
	const char *what = e == ERR_STATE ? (evaluates ? "report.refused" : "delta.refused")
	    : e				  ? (evaluates ? "report.kept" : "delta.kept")
	    : s->held			  ? "delta.held"
	    : evaluates			  ? "report.accepted"
					  : "delta.accepted";
	bool known = s->held && s->again;
	events_emit(&r->events, e ? EVENTS_WARN : known ? EVENTS_DEBUG : EVENTS_INFO, what, pairs);
	transport_answer_deinit(&answer);
	if (!e)
		job_backoff_done(&r->job_backoff, job);
	if (e == ERR_STATE)
		take_refusal(r, job, s);
	return e;
}

/* An entry of an earlier life may also be signed by a key that was replaced since. */
static enum err
open_entry(struct outbox_entry *out, struct rivulet *r, const char *task, struct why *why)
{
	const struct identity *id = session_identity(r->session);
	const uint8_t *spki = r->outbox_checked ? NULL : key_spki(session_key(r->session));
	enum err e = outbox_open(out, &r->outbox, task, spki, why);
	struct why ignored;

	for (size_t i = 0; spki && e == ERR_CORRUPT && i < id->previous_count; i++)
		if (outbox_open(out, &r->outbox, task, id->previous[i], &ignored) == ERR_OK)
			return ERR_OK;
	return e;
}

/* What a replaced key signed is signed by the present one on its way; the file stays as it is. Nothing is keyed on signature
 * bytes, so it remains the same delta. */
static enum err
sign_again(struct outbox_entry *entry, const struct key *key)
{
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, entry->raw, MANIFEST_SIGNED);
	if (sign_verify(key_spki(key), digest, entry->raw + MANIFEST_SIGNED) == ERR_OK)
		return ERR_OK;
	return sign_hash(key, digest, entry->raw + MANIFEST_SIGNED);
}

/* Do the owner's rules keep deltas here? */
static bool
is_kept_here(struct rivulet *r, struct why *why)
{
	if (!r->eligibility)
		return false;
	const struct verdict *v = eligibility_look_at_link(r->eligibility);
	if (v->sending)
		err_set(why, ERR_CLOSED, "%s: the delta waits", wait_reason_name(v->sending));
	return v->sending != WAIT_NONE;
}

static enum err
send_one(struct rivulet *r, struct sending *s, struct why *why)
{
	struct outbox_entry entry;
	enum err e = open_entry(&entry, r, s->task, why);

	if (e == ERR_CORRUPT || e == ERR_NOTFOUND) {
		events_emit(&r->events, EVENTS_ERROR, "delta.dropped",
		    EVENTS_PAIRS(EVENTS_S("task", s->task), EVENTS_S("reason", why->text)));
		outbox_remove(&r->outbox, s->task);
		forget(r, s->task);
		return ERR_STATE;
	}
	if (e)
		return e;
	if (sign_again(&entry, session_key(r->session)))
		e = err_set(why, ERR_IO, "signing failed");
	else
		e = send_entry(r, &entry, s, why);
	/* It is too much for what is left of the owner's day. */
	if (e == ERR_LIMIT && is_kept_here(r, why)) {
		s->busy = true;
		e = ERR_CLOSED;
	}
	outbox_close(&entry);
	return e;
}

/* Leaves the outbox alone for a while: as long as the coordinator said, or longer with each failure. */
static void
postpone(struct rivulet *r, double retry_after_s)
{
	double pause = backoff_next(&r->resend);

	if (retry_after_s > RETRY_AFTER_MAX_S)
		retry_after_s = RETRY_AFTER_MAX_S;
	double after = backoff_after(&r->resend, retry_after_s);
	r->resend_at = backoff_now() + (after > pause ? after : pause);
}

enum err
send_delta(struct rivulet *r, const char *task, struct why *why)
{
	struct sending s = {.task = task, .attempts = ATTEMPTS};
	struct why local;

	if (is_kept_here(r, why ? why : &local)) {
		events_emit(&r->events, EVENTS_INFO, "delta.waits",
		    EVENTS_PAIRS(
			EVENTS_S("task", task), EVENTS_S("reason", handle_verdict(r)->word)));
		return ERR_CLOSED;
	}
	enum err e = send_one(r, &s, why ? why : &local);

	if (s.busy)
		postpone(r, s.retry_after_s);
	if (s.held)
		r->held_at = backoff_now() + HELD_S;
	return e;
}

enum err
send_all(struct rivulet *r, struct why *why)
{
	char tasks[OUTBOX_ENTRIES_MAX][OUTBOX_TASK_HEX];
	enum err first = ERR_OK;
	double after = -1;
	bool busy = false, held = false;

	if (backoff_now() < r->resend_at || backoff_now() < r->held_at)
		return ERR_OK;
	struct why kept;
	if (is_kept_here(r, &kept))
		return ERR_OK;
	size_t n = outbox_list(&r->outbox, tasks, OUTBOX_ENTRIES_MAX);
	for (size_t i = 0; i < n; i++) {
		struct sending s = {.task = tasks[i], .attempts = 1, .again = true};
		enum err e = send_one(r, &s, why);
		busy |= s.busy;
		held |= s.held;
		if (s.busy && s.retry_after_s > after)
			after = s.retry_after_s;
		if (e && e != ERR_STATE && !s.busy && !first)
			first = e;
		if (!s.busy && (e == ERR_CLOSED || e == ERR_TIMEOUT || e == ERR_AGAIN))
			return e;
	}
	if (busy)
		postpone(r, after);
	else
		backoff_reset(&r->resend);
	if (held)
		r->held_at = backoff_now() + HELD_S;
	if (!first)
		r->outbox_checked = true;
	return first;
}

/* Only printable text may travel in an abort message. */
static void
copy_printable(char *out, size_t room, const char *text)
{
	size_t len = strlen(text), skip = len >= room ? len - room + 1 : 0;

	for (text += skip; *text; text++) {
		unsigned char c = (unsigned char)*text;
		*out++ = c == '\n' || (c >= 0x20 && c < 0x7f) ? (char)c : c == '\t' ? ' ' : '?';
	}
	*out = '\0';
}

enum err
send_abort(
    struct rivulet *r, const char *task, struct abort_cause cause, const char *log, struct why *why)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct abort_request message = {.cause = cause};
	struct transport_answer answer;
	struct buf text;
	char path[64];

	char said[sizeof(message.log)];
	copy_printable(said, sizeof(said), log ? log : "");
	excerpt_make(message.log, sizeof(message.log), r->settings->send_log, said);
	buf_init(&text, 32u << 10);
	enum err e = messages_abort_encode(&text, &message);
	if (e) {
		buf_deinit(&text);
		return err_set(why, e, "abort message");
	}
	snprintf(path, sizeof(path), "/v1/tasks/%.32s/abort", task);
	const struct session_call call = {.path = path,
	    .attempts = ABORT_ATTEMPTS,
	    .request = {
		.method = "POST", .headers = headers, .body = text.data, .body_len = text.len}};
	e = session_do(r->session, &call, &answer, why);
	if (!e)
		e = session_problem(&answer, NULL, why);
	events_emit(&r->events, EVENTS_WARN, "task.aborted",
	    EVENTS_PAIRS(EVENTS_S("task", task), EVENTS_S("reason", cause.word),
		EVENTS_S("log", said), SESSION_REQUEST(r->session)));
	transport_answer_deinit(&answer);
	buf_deinit(&text);
	return e;
}
