#include "download.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "hash.h"

#define ATTEMPTS 6 /* in a row that bring nothing new */
#define BLOCK (64u << 10)
/* A mirror stands in the device's own site: one that is slower than this is worse than none. */
#define MIRROR_CONNECT_S 5.0
#define MIRROR_RATE (32L << 10)
#define MIRROR_REST_S 300.0

/* Takes up a part from earlier: hashes what is there. Anything wrong with it means starting over. */
static enum err
take_up(struct download *d, struct why *why)
{
	uint8_t block[4096];
	struct stat st;

	if (d->sink.hash)
		hash_start(d->sink.hash);
	d->sink.at = 0;
	if (fstat(d->sink.fd, &st) != 0)
		return err_errno(why, "stat of a download");
	if ((uint64_t)st.st_size >= d->bytes) {
		if (ftruncate(d->sink.fd, 0) != 0)
			return err_errno(why, "truncate a download");
		return ERR_OK;
	}
	for (uint64_t left = (uint64_t)st.st_size; left > 0;) {
		size_t n = left < sizeof(block) ? (size_t)left : sizeof(block);
		if (file_pread(d->sink.fd, block, n, d->sink.at))
			return err_set(why, ERR_IO, "a download cannot be read");
		if (d->sink.hash)
			hash_update(d->sink.hash, block, n);
		d->sink.at += n;
		left -= n;
	}
	d->best = d->sink.at;
	return ERR_OK;
}

static enum err
start_over(struct download *d)
{
	if (d->sink.hash)
		hash_start(d->sink.hash);
	d->sink.at = 0;
	return ftruncate(d->sink.fd, 0) == 0 ? ERR_OK : ERR_IO;
}

static enum err
check(struct download *d, struct why *why)
{
	if (d->sink.at != d->bytes)
		return err_set(why, ERR_CLOSED, "the %s came incomplete", d->what);
	enum err e = d->check(d, why);
	if (e == ERR_CORRUPT)
		(void)!start_over(d);
	return e;
}

/* What one request brought, for whoever pays by the byte. request: its name; NULL: a mirror names none. */
static void
tell(const struct download *d, const char *from, const char *request, const char *reason)
{
	uint64_t at = d->sink.restarted ? 0 : d->began_at;
	char event[32];
	const struct line_pair pairs[] = {EVENTS_S("model", d->r->work.task.model),
	    EVENTS_S("from", from), EVENTS_U("at", at),
	    EVENTS_U("bytes", d->sink.at > at ? d->sink.at - at : 0),
	    request ? EVENTS_S("request", request) : EVENTS_END,
	    reason ? EVENTS_S("reason", reason) : EVENTS_END, EVENTS_END};

	snprintf(event, sizeof(event), "%s.%s", d->what, reason ? "broken" : "fetched");
	events_emit(&d->r->events, reason ? EVENTS_WARN : EVENTS_INFO, event, pairs);
}

/* A part that a broken connection leaves is kept: the coordinator goes on from there. */
static enum err
from_mirror(struct download *d, struct why *why)
{
	struct transport_answer answer;
	char url[ADDRESS_MAX + sizeof(d->path)];

	snprintf(url, sizeof(url), "%s%s", d->r->settings->mirror, d->path);
	const struct transport_request request = {.method = "GET",
	    .url = url,
	    .sink = &d->sink,
	    .answer_max = BLOCK,
	    .connect_s = MIRROR_CONNECT_S,
	    .idle_s = d->r->settings->mirror_timeout,
	    .least_rate = MIRROR_RATE};
	d->began_at = d->sink.at;
	enum err e = transport_do(d->r->mirror, &request, &answer, why);
	session_count(d->r->session, &answer);
	bool model = answer.status == 200 || answer.status == 206;
	bool whole = model && (!e || e == ERR_LIMIT);
	if (!e && !model)
		e = err_set(why, ERR_NOTFOUND, "%s: status %ld", url, answer.status);
	else if (!e)
		e = check(d, why);
	/* What it calls a whole file and is none is of no use to go on from. */
	if (e && whole && start_over(d))
		e = err_set(why, ERR_IO, "a download cannot be truncated");
	transport_answer_deinit(&answer);
	return e;
}

/* What may come of it, before it does; what did not, after. */
static enum err
count(const struct download *d, uint64_t *counted, struct why *why)
{
	*counted = d->bytes - d->sink.at;
	return d->r->eligibility ? eligibility_charge(d->r->eligibility, QUOTA_DOWN, *counted, why)
				 : ERR_OK;
}

static void
count_back(const struct download *d, uint64_t counted)
{
	uint64_t at = d->sink.restarted ? 0 : d->began_at;
	uint64_t came = d->sink.at > at ? d->sink.at - at : 0;

	if (d->r->eligibility && came < counted)
		eligibility_refund(d->r->eligibility, QUOTA_DOWN, counted - came);
}

static enum err
one_attempt(struct download *d, struct why *why)
{
	struct transport_answer answer;
	uint64_t counted;

	d->sink.restarted = false;
	d->began_at = d->sink.at;
	enum err e = count(d, &counted, why);
	if (e)
		return e;
	const struct session_call call = {.path = d->path,
	    .attempts = 1,
	    .request = {.method = "GET", .sink = &d->sink, .answer_max = BLOCK}};
	e = session_do(d->r->session, &call, &answer, why);
	count_back(d, counted);
	if (!e && answer.status == 416)
		e = start_over(d) ? ERR_IO : err_set(why, ERR_CLOSED, "the part was too long");
	else if (!e)
		e = session_problem(&answer, NULL, why);
	transport_answer_deinit(&answer);
	d->r->denied = e == ERR_DENIED;
	if (!e)
		e = check(d, why);
	tell(d, "coordinator", session_request(d->r->session), e ? why->text : NULL);
	return e;
}

/* A part that does not fit (ERR_CORRUPT) may be a mirror's; what came again from the start may be wrong once. */
static enum err
from_coordinator(struct download *d, struct why *why)
{
	struct rivulet *r = d->r;
	struct backoff *b = session_backoff(r->session);

	for (unsigned left = ATTEMPTS;;) {
		enum err e = one_attempt(d, why);
		if (e != ERR_CLOSED && (e != ERR_CORRUPT || d->once))
			return e;
		left--;
		if (d->sink.at > d->best) {
			left = ATTEMPTS;
			backoff_reset(b);
			d->best = d->sink.at;
		}
		if (left == 0)
			return e;
		if (!backoff_sleep(backoff_next(b), handle_cancelled, r))
			return err_set(why, ERR_AGAIN, "cancelled");
	}
}

enum err
download_run(struct download *d, struct why *why)
{
	enum err e = take_up(d, why);

	if (e)
		return e;
	if (d->r->mirror && backoff_now() >= d->r->mirror_at) {
		e = from_mirror(d, why);
		if (!e)
			tell(d, "mirror", NULL, NULL);
		if (!e || e == ERR_AGAIN || e == ERR_IO)
			return e;
		/* It may be right in not having what is not needed. */
		if (!d->once)
			d->r->mirror_at = backoff_now() + MIRROR_REST_S;
		events_emit(&d->r->events, EVENTS_WARN, "mirror.failed",
		    EVENTS_PAIRS(EVENTS_S("reason", why->text)));
	}
	return from_coordinator(d, why);
}
