#include "upload.h"

#include <stdio.h>
#include <string.h>

#include "base64.h"
#include "fault.h"
#include "hash.h"

#define HEADER_MAX (BASE64_LEN(REPORT_MAX) + 32)
#define DISAGREEMENTS_MAX 3 /* about the offset; after that the delta is sent whole */

struct transfer {
	struct rivulet *r;
	const struct upload *u;
	char began[REQUEST_ID_MAX]; /* the request that the upload began with; "": not known */
	bool begins; /* the last exchange was for the whole */
	char path[64], began_line[REQUEST_ID_MAX + 16], manifest[BASE64_LEN(MANIFEST_LEN) + 64],
	    report[HEADER_MAX], offset[48];
	const char *headers[6];
	size_t last; /* of headers, where Upload-Offset and Rivulet-Began go */
	bool ask; /* before the next exchange */
	bool whole; /* never ask */
	uint64_t from, best; /* offset of the last try; the largest so far */
};

/* "Name: :base64:", an RFC 8941 byte sequence. */
static void
header(char *out, size_t room, const char *name, const void *data, size_t len)
{
	size_t n = (size_t)snprintf(out, room, "%s: :", name);

	base64_encode(out + n, data, len);
	n += BASE64_LEN(len);
	out[n++] = ':';
	out[n] = '\0';
}

/* Only an offset that a coordinator gives is believed: the leaves' end and whole chunks, with something left to send. */
static bool
sane(const struct outbox_entry *entry, uint64_t offset)
{
	uint64_t leaves = manifest_chunks(entry->manifest.payload_bytes) * HASH_LEN;

	return offset >= leaves && offset < entry->body_bytes &&
	    (offset - leaves) % MANIFEST_CHUNK == 0;
}

/* Asks how much is there. Without an answer nothing may be sent: a PUT would throw away what is there. */
static enum err
ask_offset(struct transfer *c, struct session *s, struct why *why)
{
	static const struct transport_request head = {.method = "HEAD"};
	struct transport_answer answer;

	c->from = 0;
	enum err e = session_once(s, c->path, &head, &answer, why);
	if (!e && session_retryable(answer.status))
		e = err_set(why, ERR_CLOSED, "HEAD was answered with status %ld", answer.status);
	if (!e && answer.status == 204 && answer.has_offset && sane(c->u->entry, answer.offset))
		c->from = answer.offset;
	/* The coordinator forgets it in a restart, this device in its own. */
	if (*answer.began)
		strcpy(c->began, answer.began);
	transport_answer_deinit(&answer);
	FAULT("client.offset");
	return e;
}

/* What is about to go, and again each time it has to. */
static enum err
count(struct transfer *c, const struct transport_request *request, struct why *why)
{
	return c->r->eligibility
	    ? eligibility_charge(c->r->eligibility, QUOTA_UP, request->body_bytes, why)
	    : ERR_OK;
}

static enum err
ready(void *context, struct session *s, struct transport_request *request, struct why *why)
{
	struct transfer *c = context;
	bool asks = c->ask && !c->whole;

	if (c->begins)
		strcpy(c->began, session_request(s));
	c->begins = false;
	c->ask = c->u->entry->manifest.payload_bytes > MANIFEST_CHUNK;
	c->from = 0;
	c->headers[c->last] = NULL;
	enum err e = asks ? ask_offset(c, s, why) : ERR_OK;
	if (e)
		return e;
	c->begins = c->from == 0;
	if (c->begins)
		return count(c, request, why);
	if (c->from > c->best) {
		c->best = c->from;
		backoff_reset(session_backoff(s));
	}
	events_emit(&c->r->events, EVENTS_INFO, "delta.resumed",
	    EVENTS_PAIRS(EVENTS_S("task", c->u->task), EVENTS_U("offset", c->from),
		EVENTS_U("bytes", c->u->entry->body_bytes), EVENTS_S("began", c->began)));
	snprintf(c->offset, sizeof(c->offset), "Upload-Offset: %llu", (unsigned long long)c->from);
	c->headers[c->last] = c->offset;
	snprintf(c->began_line, sizeof(c->began_line), "Rivulet-Began: %s", c->began);
	c->headers[c->last + 1] = *c->began ? c->began_line : NULL;
	request->method = "PATCH";
	request->body_at += c->from;
	request->body_bytes -= c->from;
	return count(c, request, why);
}

/* The request for the whole; `ready` makes less of it. */
static struct session_call
call_of(struct transfer *c)
{
	const struct outbox_entry *entry = c->u->entry;

	bool evaluates = manifest_kind(&entry->manifest) == TASK_EVALUATE;

	snprintf(c->path, sizeof(c->path),
	    evaluates ? "/v1/tasks/%.32s/report" : "/v1/deltas/%.32s", c->u->task);
	header(c->manifest, sizeof(c->manifest), "Rivulet-Manifest", entry->raw, MANIFEST_LEN);
	c->headers[0] = c->manifest;
	c->headers[1] = "Content-Type: application/octet-stream";
	c->last = 2;
	if (entry->report_len > 0) {
		header(c->report, sizeof(c->report), "Rivulet-Report", entry->report,
		    entry->report_len);
		c->headers[c->last++] = c->report;
	}
	if (evaluates)
		return (struct session_call){.path = c->path,
		    .attempts = c->u->attempts,
		    .request = {.method = "POST", .headers = c->headers}};
	return (struct session_call){.path = c->path,
	    .attempts = c->u->attempts,
	    .ready = ready,
	    .context = c,
	    .request = {.method = "PUT",
		.headers = c->headers,
		.body_fd = entry->fd,
		.body_at = entry->body_at,
		.body_bytes = entry->body_bytes}};
}

static bool
disagrees(const struct transport_answer *answer)
{
	enum problem_type type;
	struct why why;

	return answer->status == 409 && session_problem(answer, &type, &why) != ERR_OK &&
	    type == PROBLEM_WRONG_OFFSET;
}

enum err
upload_send(
    struct rivulet *r, const struct upload *u, struct transport_answer *answer, struct why *why)
{
	struct transfer c = {.r = r, .u = u, .headers = {NULL}};
	const struct session_call call = call_of(&c);
	unsigned disagreements = 0;

	c.ask = u->resumes && u->entry->manifest.payload_bytes > MANIFEST_CHUNK;
	for (;;) {
		uint64_t before = c.best;
		enum err e = session_do(r->session, &call, answer, why);
		bool disagree = !e && disagrees(answer);
		strcpy(answer->began, c.begins ? "" : c.began);
		bool more = e == ERR_CLOSED && u->attempts > 1 && c.best > before;
		if (!disagree && !more)
			return e;
		/* A coordinator that says so of a PUT as well is not to be helped. */
		if (disagree && c.whole)
			return err_set(
			    why, ERR_CLOSED, "the coordinator does not take the delta whole");
		disagreements += disagree;
		c.whole = disagreements >= DISAGREEMENTS_MAX;
		transport_answer_deinit(answer);
	}
}
