#include "fetch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault.h"
#include "file.h"
#include "hash.h"
#include "hex.h"

#define ATTEMPTS 6 /* in a row that bring nothing new */
#define BLOCK (64u << 10)
/* A mirror stands in the device's own site: one that is slower than this is worse than none. */
#define MIRROR_CONNECT_S 5.0
#define MIRROR_RATE (32L << 10)
#define MIRROR_REST_S 300.0

struct download {
	struct rivulet *r;
	const struct task *task;
	struct transport_sink sink;
	char path[128];
	uint64_t began_at; /* the sink before the request in hand */
	uint64_t best; /* the farthest it ever came */
};

/* Takes up a part from earlier: hashes what is there. Anything wrong with it means starting over. */
static enum err
take_up(struct download *d, struct why *why)
{
	uint8_t block[4096];
	struct stat st;

	hash_start(d->sink.hash);
	d->sink.at = 0;
	if (fstat(d->sink.fd, &st) != 0)
		return err_errno(why, "stat of a download");
	if ((uint64_t)st.st_size >= d->task->model_bytes) {
		if (ftruncate(d->sink.fd, 0) != 0)
			return err_errno(why, "truncate a download");
		return ERR_OK;
	}
	for (uint64_t left = (uint64_t)st.st_size; left > 0;) {
		size_t n = left < sizeof(block) ? (size_t)left : sizeof(block);
		if (file_pread(d->sink.fd, block, n, d->sink.at))
			return err_set(why, ERR_IO, "a download cannot be read");
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
	hash_start(d->sink.hash);
	d->sink.at = 0;
	return ftruncate(d->sink.fd, 0) == 0 ? ERR_OK : ERR_IO;
}

static enum err
check(struct download *d, struct why *why)
{
	uint8_t hash[HASH_LEN];
	char id[2 * HASH_LEN + 1];

	if (d->sink.at != d->task->model_bytes)
		return err_set(why, ERR_CLOSED, "the model came incomplete");
	hash_finish(d->sink.hash, hash);
	hex_encode(id, hash, HASH_LEN);
	if (strcmp(id, d->task->model) == 0)
		return ERR_OK;
	(void)!start_over(d);
	return err_set(why, ERR_CORRUPT, "the model's hash does not match its id");
}

/* What one request brought, for whoever pays by the byte. */
static void
tell(const struct download *d, const char *from, const char *reason)
{
	uint64_t at = d->sink.restarted ? 0 : d->began_at;
	const struct events_pair pairs[] = {EVENTS_S("model", d->task->model),
	    EVENTS_S("from", from), EVENTS_U("at", at),
	    EVENTS_U("bytes", d->sink.at > at ? d->sink.at - at : 0),
	    reason ? EVENTS_S("reason", reason) : EVENTS_END, EVENTS_END};

	events_emit(&d->r->events, reason ? EVENTS_WARN : EVENTS_INFO,
	    reason ? "model.broken" : "model.fetched", pairs);
}

/* A part that a broken connection leaves is kept: the coordinator goes on from there. */
static enum err
from_mirror(struct download *d, struct why *why)
{
	struct transport_answer answer;
	char url[ADDRESS_MAX + 128];

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

static enum err
one_attempt(struct download *d, struct why *why)
{
	struct transport_answer answer;

	d->sink.restarted = false;
	d->began_at = d->sink.at;
	const struct session_call call = {.path = d->path,
	    .attempts = 1,
	    .request = {.method = "GET", .sink = &d->sink, .answer_max = BLOCK}};
	enum err e = session_do(d->r->session, &call, &answer, why);
	if (!e && answer.status == 416)
		e = start_over(d) ? ERR_IO : err_set(why, ERR_CLOSED, "the part was too long");
	else if (!e)
		e = session_problem(&answer, NULL, why);
	transport_answer_deinit(&answer);
	if (!e)
		e = check(d, why);
	tell(d, "coordinator", e ? why->text : NULL);
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
		if (e != ERR_CLOSED && e != ERR_CORRUPT)
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

static enum err
download(struct download *d, struct why *why)
{
	enum err e = take_up(d, why);

	if (e)
		return e;
	if (d->r->mirror && backoff_now() >= d->r->mirror_at) {
		e = from_mirror(d, why);
		if (!e)
			tell(d, "mirror", NULL);
		if (!e || e == ERR_AGAIN || e == ERR_IO)
			return e;
		d->r->mirror_at = backoff_now() + MIRROR_REST_S;
		events_emit(&d->r->events, EVENTS_WARN, "mirror.failed",
		    EVENTS_PAIRS(EVENTS_S("reason", why->text)));
	}
	return from_coordinator(d, why);
}

/* A model kept from earlier may have changed on the disk since; then it is fetched again. */
static enum err
from_cache(struct rivulet *r, struct why *why)
{
	const struct task *t = &r->work.task;
	enum err e = cache_find(&r->cache, t->model, t->model_bytes, r->work.path);
	struct why local;

	if (e)
		return ERR_NOTFOUND;
	e = cache_check(&r->cache, t->model, &local);
	if (!e)
		return ERR_OK;
	if (e == ERR_NOMEM)
		return err_set(why, e, "%s", local.text);
	events_emit(
	    &r->events, EVENTS_WARN, "model.damaged", EVENTS_PAIRS(EVENTS_S("reason", local.text)));
	return ERR_NOTFOUND;
}

enum err
fetch_model(struct rivulet *r, struct why *why)
{
	const struct task *t = &r->work.task;
	struct why local;
	struct download d = {.r = r, .task = t, .sink = {.max = t->model_bytes}};

	enum err e = from_cache(r, why);
	if (e != ERR_NOTFOUND)
		return e;
	snprintf(d.path, sizeof(d.path), "/v1/models/%.64s", t->model);
	e = cache_make_room(&r->cache, t->model, t->model_bytes, why);
	if (!e)
		e = cache_part(&r->cache, t->model, &d.sink.fd, why);
	if (e)
		return e;
	d.sink.hash = hash_new();
	e = d.sink.hash ? download(&d, why ? why : &local) : err_set(why, ERR_NOMEM, "no memory");
	hash_free(d.sink.hash);
	FAULT("client.fetched");
	if (!e)
		e = cache_commit(&r->cache, t->model, d.sink.fd, r->work.path, why);
	close(d.sink.fd);
	return e;
}
