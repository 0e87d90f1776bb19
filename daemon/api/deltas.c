#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base64.h"
#include "clock.h"
#include "counts.h"
#include "delta_resume.h"
#include "fault.h"
#include "health.h"
#include "log.h"
#include "manifest.h"
#include "messages.h"
#include "orphan.h"
#include "registry.h"
#include "services.h"
#include "sign.h"
#include "spool.h"
#include "store.h"
#include "tasks.h"

/* One delta that is being received: the head is checked at the beginning, the body as it comes, then the delta is made durable. The report
 * of an evaluation is a delta without a body. */
struct delta {
	enum task_kind kind; /* kind of task that the request is for */
	uint8_t raw[MANIFEST_LEN];
	struct manifest m;
	struct engine_claim claim;
	char *report;
	struct manifest there; /* manifest of the part that is resumed */
	struct delta_body body;
	struct spool_part part;
	bool stays; /* the part is kept, though the request was refused */
	struct store_accept row;
	struct exchange *x;
	uint64_t came_ms; /* when this transfer began */
	bool taken;
	enum err verdict; /* result of tasks_take */
};

/* Answers with a fault of the coordinator, which is never final: the device keeps its delta and comes again. */
static void
own_fault(struct exchange *x, enum err e, const struct why *why)
{
	const char *detail = why && why->text[0] ? why->text : err_name(e);

	/* The quota is the operator's and no fault of the disk. */
	if (e == ERR_NOSPACE && spool_full(x->services->spool, x->request.length))
		exchange_problem(x, PROBLEM_NO_SPACE, "%s", detail);
	else if (health_passes(e) && e != ERR_DENIED)
		exchange_failed(x, e, why);
	else
		exchange_problem(x, PROBLEM_UNAVAILABLE, "%s", detail);
}

/* Is the problem one with which a delta cannot be accepted however often it is sent? */
static bool
is_lasting(enum problem_type p)
{
	switch (p) {
	case PROBLEM_BAD_REQUEST:
	case PROBLEM_BAD_MANIFEST:
	case PROBLEM_BAD_REPORT:
	case PROBLEM_BAD_SIGNATURE:
	case PROBLEM_WRONG_LENGTH:
	case PROBLEM_WRONG_ROOT:
	case PROBLEM_WRONG_CHUNK:
	case PROBLEM_NOT_FINITE:
	case PROBLEM_NO_EXAMPLES:
	case PROBLEM_NO_NORMALISER:
	case PROBLEM_TOO_MANY_EXAMPLES:
	case PROBLEM_TOO_MANY_STEPS:
	case PROBLEM_NORM_TOO_LARGE:
	case PROBLEM_UNKNOWN_CODEC:
	case PROBLEM_UNSUPPORTED:
	case PROBLEM_WRONG_KIND:
		return true;
	default:
		return false;
	}
}

/* Gives the device's place in the round to another device; the device does not get the same task again in this opening. */
static void
give_up(struct exchange *x, enum problem_type p)
{
	struct abort_cause cause = {
	    .reason = p == PROBLEM_NOT_FINITE ? ABORT_NOT_FINITE : ABORT_UNKNOWN};

	snprintf(cause.word, sizeof(cause.word), "%s", problem_word(p));
	registry_touch(x->services->registry, x->who.device, NULL, cause.word);
	if (is_lasting(p))
		(void)!tasks_abort(x->services->engine, x->who.device, x->param[0], cause, NULL);
}

/* --- the head */

/* A structured-field byte sequence, ":base64:", of at most *len bytes. */
static bool
decode_field(const char *text, void *out, size_t *len)
{
	size_t n = text ? strlen(text) : 0;

	return n >= 2 && text[0] == ':' && text[n - 1] == ':' &&
	    base64_decode(out, len, text + 1, n - 2) == ERR_OK;
}

static enum problem_type
read_manifest(struct exchange *x, struct delta *d, struct why *why)
{
	size_t len = sizeof(d->raw);

	if (!x->request.manifest) {
		err_set(why, ERR_INVALID, "the Rivulet-Manifest header is missing");
		return PROBLEM_BAD_MANIFEST;
	}
	if (!decode_field(x->request.manifest, d->raw, &len)) {
		err_set(
		    why, ERR_INVALID, "Rivulet-Manifest is not :base64: of %u bytes", MANIFEST_LEN);
		return PROBLEM_BAD_MANIFEST;
	}
	return manifest_decode(&d->m, d->raw, len, why) == ERR_OK ? PROBLEM_NONE
								  : PROBLEM_BAD_MANIFEST;
}

/* Reads the counts that figures are made of, to see that the device's numbers are possible. */
static enum err
check_counts(const struct delta *d, size_t len, struct why *why)
{
	struct counts *counts = NULL;
	enum err e = messages_report_counts(
	    &counts, &d->claim.figures, d->claim.class_count, d->report, len, why);

	counts_free(counts);
	return e;
}

static enum problem_type
read_report(struct exchange *x, struct delta *d, struct why *why)
{
	bool told = d->m.flags & MANIFEST_REPORT;
	size_t len = REPORT_MAX;
	uint8_t digest[HASH_LEN];
	struct report r;

	if (!told && !x->request.report)
		return PROBLEM_NONE;
	d->report = malloc(REPORT_MAX + 1);
	if (!d->report)
		return PROBLEM_UNAVAILABLE;
	if (!told || !decode_field(x->request.report, d->report, &len)) {
		err_set(why, ERR_INVALID, "Rivulet-Report is missing, malformed or not announced");
		return PROBLEM_BAD_REPORT;
	}
	d->report[len] = '\0';
	hash_sha256(digest, d->report, len);
	if (!hash_equal(digest, d->m.report_hash, HASH_LEN)) {
		err_set(why, ERR_INVALID, "the report is not the one the manifest signs");
		return PROBLEM_BAD_REPORT;
	}
	if (messages_report_decode(&r, d->report, len, why))
		return PROBLEM_BAD_REPORT;
	if (check_counts(d, len, why))
		return PROBLEM_BAD_REPORT;
	return tasks_claim_report(&d->claim, &r, why);
}

static enum problem_type
check_signature(const struct exchange *x, const struct delta *d, struct why *why)
{
	struct registry_view view;
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, d->raw, MANIFEST_SIGNED);
	if (sign_verify(x->who.spki, digest, d->m.signature) == ERR_OK)
		return PROBLEM_NONE;
	/* The connection is by the present key; the delta may be from before the rotation. */
	if (registry_get(x->services->registry, x->who.device, &view) == ERR_OK &&
	    sign_verify(view.row.previous, digest, d->m.signature) == ERR_OK)
		return PROBLEM_NONE;
	err_set(why, ERR_DENIED, "the manifest is not signed by this device's key");
	return PROBLEM_BAD_SIGNATURE;
}

static enum err
find_row(struct store_db *db, void *arg, struct why *why)
{
	struct delta *d = arg;

	(void)why;
	enum err e = store_accept_get(db, d->m.job, d->m.round, d->m.device, &d->row);
	/* Or the report of a program that evaluates for its job. */
	return e == ERR_NOTFOUND && d->kind == TASK_EVALUATE
	    ? store_evaluation_get(db, d->m.job, d->m.round, d->m.device, &d->row)
	    : e;
}

/* Answers with the receipt. memory: the delta is in a spool that may be lost, and its round is not committed yet. */
static void
answer_receipt(struct exchange *x, const struct delta *d, bool memory)
{
	exchange_bytes(x, 201, "application/octet-stream", d->row.receipt, RECEIPT_LEN);
	if (memory && d->kind == TASK_TRAIN && spool_in_memory(x->services->spool))
		exchange_header(x, "Rivulet-Spool", "memory");
}

/* If this delta was accepted before, answers with its receipt again and returns true. *other: a different delta was accepted. */
static bool
answer_repeat(struct exchange *x, struct delta *d, bool open, bool *other)
{
	*other = false;
	if (memcmp(d->m.device, x->who.device, 32) != 0 ||
	    store_read(x->services->store, find_row, d, NULL))
		return false;
	bool same = memcmp(d->row.manifest, d->raw, MANIFEST_SIGNED) == 0;
	if (same)
		answer_receipt(x, d, open);
	free(d->row.report);
	d->row.report = NULL;
	*other = !same;
	return same;
}

/* Checks that Content-Length is the length of the whole body, or of the rest from the offset on. */
static enum problem_type
check_length(const struct http_request *q, const struct manifest *m, struct why *why)
{
	uint64_t whole = manifest_body_bytes(m->payload_bytes);
	uint64_t from = q->method == VERB_PATCH ? q->offset : 0;

	if (from <= whole && q->length == whole - from)
		return PROBLEM_NONE;
	err_set(why, ERR_INVALID,
	    "Content-Length is %llu from byte %llu; leaves and payload have %llu bytes",
	    (unsigned long long)q->length, (unsigned long long)from, (unsigned long long)whole);
	return PROBLEM_WRONG_LENGTH;
}

/* Is the request for this kind of manifest? An evaluation's report has a request of its own; an unknown kind is treated as a delta. */
static enum problem_type
check_kind(const struct delta *d, struct why *why)
{
	bool evaluates = manifest_kind(&d->m) == TASK_EVALUATE;

	if (evaluates == (d->kind == TASK_EVALUATE))
		return PROBLEM_NONE;
	err_set(
	    why, ERR_INVALID, "this request is for manifests of kind %s", task_kind_name(d->kind));
	return PROBLEM_WRONG_KIND;
}

static enum problem_type
check_head(struct exchange *x, struct delta *d, struct why *why)
{
	enum problem_type p = read_manifest(x, d, why);

	if (!p)
		p = check_kind(d, why);
	if (!p)
		p = tasks_claim(
		    x->services->engine, &d->m, x->who.device, x->param[0], &d->claim, why);
	if (!p)
		p = read_report(x, d, why);
	if (!p)
		p = check_length(&x->request, &d->m, why);
	return p ? p : check_signature(x, d, why);
}

static enum err
prepare_body(struct exchange *x, struct delta *d, struct why *why)
{
	enum err e = delta_body_init(&d->body, &d->m);

	if (e)
		return err_set(why, e, "no memory");
	d->body.vectors.params.entries = d->claim.entries;
	return spool_begin(x->services->spool, d->raw, &d->part, why);
}

static void
wrong_offset(struct exchange *x, struct delta *d, uint64_t offset, const char *detail)
{
	d->stays = true;
	exchange_problem(x, PROBLEM_WRONG_OFFSET, "%s", detail);
	exchange_header(x, "Upload-Offset", "%llu", (unsigned long long)offset);
}

/* Resumes the part that is there; a response is set unless the rest of the body may come. */
static enum err
prepare_rest(struct exchange *x, struct delta *d, struct why *why)
{
	enum err e = delta_resume(
	    x->services->spool, d->m.task, d->m.device, &d->part, &d->there, &d->body, why);

	if (e == ERR_NOTFOUND)
		wrong_offset(x, d, 0, "nothing of this delta is here");
	else if (e)
		return e;
	else if (memcmp(d->part.file.manifest, d->raw, MANIFEST_SIGNED) != 0)
		wrong_offset(x, d, 0, "what is here belongs to another manifest");
	else if (d->body.now.at != x->request.offset)
		wrong_offset(x, d, d->body.now.at, "the body goes on at Upload-Offset");
	/* What is there was counted without a limit; the rest has at least an entry, and meets it. */
	d->body.vectors.params.entries = d->claim.entries;
	return ERR_OK;
}

/* A delta that was accepted before is answered with its receipt, whatever became of its round. The engine forgets tasks of ended rounds, so
 * rows are read for these. True: a response is set. */
static bool
answer_known(struct exchange *x, struct delta *d, enum problem_type problem)
{
	const bool over = problem == PROBLEM_STALE_ROUND || problem == PROBLEM_TOO_STALE ||
	    problem == PROBLEM_STALE_BASE;
	const bool maybe = over || problem == PROBLEM_USED_TASK ||
	    problem == PROBLEM_ROUND_CLOSED || problem == PROBLEM_UNAVAILABLE ||
	    (!problem && d->claim.late);
	bool other;

	if (!maybe)
		return false;
	if (answer_repeat(x, d, !over, &other))
		return true;
	if (!problem && other)
		exchange_problem(x, PROBLEM_USED_TASK, "another delta of this task was accepted");
	return !problem && other;
}

/* True: the head is good and new. False: a response is set. */
static bool
begin(struct exchange *x, enum task_kind kind)
{
	struct delta *d = calloc(1, sizeof(*d));
	struct why why = {""};

	x->state = d;
	if (!d) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return false;
	}
	d->x = x;
	d->came_ms = clock_ms();
	d->kind = kind;
	registry_touch(x->services->registry, x->who.device, NULL, NULL);
	if (x->request.method == VERB_PATCH && !x->request.has_offset) {
		exchange_problem(x, PROBLEM_BAD_REQUEST, "the Upload-Offset header is missing");
		return false;
	}
	enum problem_type problem = check_head(x, d, &why);
	if (answer_known(x, d, problem))
		return false;
	if (!problem)
		return true;
	give_up(x, problem);
	exchange_problem(x, problem, "%s", why.text);
	return false;
}

static void
delta_begin(struct exchange *x)
{
	bool patch = x->request.method == VERB_PATCH;
	struct why why = {""};

	if (!begin(x, TASK_TRAIN))
		return;
	struct delta *d = x->state;
	enum err e = patch ? prepare_rest(x, d, &why) : prepare_body(x, d, &why);
	FAULT("delta.part");
	if (e)
		own_fault(x, e, &why);
	else
		x->wanted = x->response.status == 0;
	if (x->wanted)
		api_delta_began(x, &d->part);
}

static void
report_begin(struct exchange *x)
{
	x->wanted = begin(x, TASK_EVALUATE);
}

/* --- the body: leaves, then payload */

static enum err
refuse(struct exchange *x, enum problem_type problem, const char *detail)
{
	give_up(x, problem);
	exchange_problem(x, problem, "%s", detail);
	return ERR_INVALID;
}

static enum err
delta_data(struct exchange *x, const void *data, size_t len)
{
	struct delta *d = x->state;
	uint64_t at = d->body.now.at;
	enum problem_type problem = delta_body_take(&d->body, data, len);

	if (problem)
		return refuse(x, problem, d->body.detail);
	enum err e = spool_write(x->services->spool, &d->part, data, len, at);
	FAULT("delta.body");
	if (e == ERR_AGAIN)
		exchange_problem(x, PROBLEM_UNAVAILABLE, "a newer transfer of this task has begun");
	else if (e)
		own_fault(x, e, NULL);
	return e;
}

/* A report has no body: its Content-Length was 0. */
static enum err
report_data(struct exchange *x, const void *data, size_t len)
{
	(void)data, (void)len;
	return refuse(x, PROBLEM_WRONG_LENGTH, "an evaluation's report has no body");
}

/* --- making it durable */

static enum err
accept_work(struct store_db *db, void *arg, struct why *why)
{
	struct delta *d = arg;
	const struct services *s = d->x->services;

	FAULT("accept.begin");
	d->verdict = tasks_take(s->engine, &d->claim);
	d->taken = d->verdict == ERR_OK;
	if (!d->taken)
		return err_set(
		    why, d->verdict, "the delta was not taken: %s", err_name(d->verdict));
	d->row.folded = d->claim.folded;
	FAULT("accept.taken");
	enum err e =
	    d->claim.central ? store_evaluation_put(db, &d->row) : store_accept_insert(db, &d->row);
	FAULT("accept.row");
	if (e || d->kind == TASK_EVALUATE)
		return e;
	if (d->claim.speed.seconds > 0)
		e = store_speed_add(db, &d->claim.speed);
	return e ? e : spool_accept(s->spool, &d->part, why);
}

/* Answers a delta that came later than another delta of the device, or than the end of the round. */
static void
answer_late(struct exchange *x, struct delta *d)
{
	bool other = false;

	/* The same delta may come twice at a time: a device repeats it when its connection seems dead. */
	if (answer_repeat(x, d, true, &other))
		return;
	if (other)
		exchange_problem(
		    x, PROBLEM_USED_TASK, "another delta was accepted for this task meanwhile");
	else if (d->verdict == ERR_STATE)
		exchange_problem(
		    x, PROBLEM_ROUND_CLOSED, "the round closed before the delta was durable");
	else
		exchange_problem(
		    x, PROBLEM_UNAVAILABLE, "the other copy of this delta was not made durable");
}

/* Refuses a delta whose device may no longer send it: its identity changed between the head and the end of the body. */
static void
answer_denied(struct exchange *x)
{
	struct registry_view view = {.row.state = DEVICE_REVOKED};

	(void)!registry_get(x->services->registry, x->who.device, &view);
	exchange_problem(x, registry_state_problem(view.row.state), "the device is %s by now",
	    states_device_name(view.row.state));
}

static void
accept_done(void *arg, enum err e, const struct why *why)
{
	struct delta *d = arg;
	struct exchange *x = d->x;

	FAULT("accept.committed");
	if (d->taken)
		tasks_settle(x->services->engine, &d->claim, !e, d->row.body_bytes);
	if (e && d->part.accepted)
		spool_orphan_note(x->services->spool, &d->m);
	else if (!e)
		spool_orphan_release(x->services->spool, x->services->store);
	if (!e)
		answer_receipt(x, d, true);
	else if (d->verdict == ERR_DENIED)
		answer_denied(x);
	else if (d->verdict == ERR_STATE || e == ERR_EXISTS)
		answer_late(x, d);
	else
		own_fault(x, e, why);
	FAULT("accept.answer");
	exchange_done(x);
	FAULT("accept.answered");
}

static enum err
make_receipt(struct delta *d)
{
	const struct services *s = d->x->services;
	struct receipt r = {.round = d->m.round,
	    .accepted_at_ms = (uint64_t)(clock_wall() * 1000),
	    .incarnation = s->incarnation};
	uint8_t digest[HASH_LEN];

	memcpy(r.job, d->m.job, 16);
	hash_sha256(r.manifest_hash, d->raw, MANIFEST_SIGNED);
	manifest_receipt_encode(d->row.receipt, &r);
	hash_sha256(digest, d->row.receipt, RECEIPT_SIGNED);
	return sign_hash(s->sign_key, digest, d->row.receipt + RECEIPT_SIGNED);
}

static void
fill_row(struct delta *d)
{
	memcpy(d->row.job, d->m.job, 16);
	d->row.round = d->m.round;
	memcpy(d->row.device, d->m.device, 32);
	memcpy(d->row.task, d->m.task, 16);
	memcpy(d->row.manifest, d->raw, MANIFEST_LEN);
	d->row.report = d->report;
	d->row.body_bytes = manifest_body_bytes(d->m.payload_bytes);
	d->row.accepted_at = clock_wall();
}

/* Queues the transaction that writes the delta's row with the receipt, which is all that is still to be made durable. */
static void
submit(struct exchange *x, enum err e, struct why *why)
{
	struct delta *d = x->state;

	if (!e)
		e = make_receipt(d);
	if (!e)
		e = store_submit(x->services->store, accept_work, accept_done, d);
	if (!e)
		return;
	own_fault(x, e, why);
	exchange_done(x);
}

static void
report_finish(struct exchange *x)
{
	struct why why = {""};

	fill_row(x->state);
	submit(x, ERR_OK, &why);
}

static void
delta_finish(struct exchange *x)
{
	struct delta *d = x->state;
	struct why why = {""};

	if (d->claim.max_norm > 0 && sqrt(d->body.now.sum_squares) > d->claim.max_norm) {
		refuse(x, PROBLEM_NORM_TOO_LARGE, "the delta's norm is above aggregate.max_norm");
		exchange_done(x);
		return;
	}
	fill_row(d);
	d->claim.speed.up_bytes = x->request.length;
	d->claim.speed.up_seconds = (double)(clock_ms() - d->came_ms) / 1000;
	d->claim.speed.at = d->row.accepted_at;
	FAULT("delta.complete");
	enum err e = spool_sync(x->services->spool, &d->part, &why);
	FAULT("delta.synced");
	submit(x, e, &why);
}

static void
delta_drop(struct exchange *x)
{
	struct delta *d = x->state;

	if (!d)
		return;
	/* Cut off before an answer: what is there can be taken up. */
	if ((d->stays || x->response.status == 0) && d->body.good.at > d->body.leaf_bytes)
		spool_leave(x->services->spool, &d->part);
	else
		spool_drop(x->services->spool, &d->part);
	delta_body_deinit(&d->body);
	free(d->report);
	free(d);
	x->state = NULL;
}

const struct stream_ops api_delta_put = {delta_begin, delta_data, delta_finish, delta_drop};
const struct stream_ops api_delta_patch = {delta_begin, delta_data, delta_finish, delta_drop};
const struct stream_ops api_report_post = {report_begin, report_data, report_finish, delta_drop};
