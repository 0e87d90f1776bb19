#include "fetch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault.h"
#include "file.h"
#include "hash.h"
#include "hex.h"

#define ATTEMPTS 6
#define BLOCK (64u << 10)

struct download {
	struct rivulet *r;
	const struct task *task;
	struct transport_sink sink;
	char path[128], range[64];
	const char *headers[2];
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
	return ERR_OK;
}

static void
set_range(struct download *d)
{
	d->headers[0] = NULL;
	if (d->sink.at == 0)
		return;
	snprintf(d->range, sizeof(d->range), "Range: bytes=%llu-", (unsigned long long)d->sink.at);
	d->headers[0] = d->range;
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

static enum err
from_mirror(struct download *d, struct why *why)
{
	struct transport_answer answer;
	char url[ADDRESS_MAX + 128];

	snprintf(url, sizeof(url), "%s%s", d->r->settings->mirror, d->path);
	set_range(d);
	const struct transport_request request = {.method = "GET",
	    .url = url,
	    .headers = d->headers,
	    .sink = &d->sink,
	    .answer_max = BLOCK};
	enum err e = transport_do(d->r->mirror, &request, &answer, why);
	if (!e && answer.status != 200 && answer.status != 206)
		e = err_set(why, ERR_NOTFOUND, "%s: status %ld", url, answer.status);
	transport_answer_deinit(&answer);
	return e ? e : check(d, why);
}

static enum err
one_attempt(struct download *d, struct why *why)
{
	struct transport_answer answer;

	set_range(d);
	d->sink.restarted = false;
	const struct session_call call = {.path = d->path,
	    .attempts = 1,
	    .request = {
		.method = "GET", .headers = d->headers, .sink = &d->sink, .answer_max = BLOCK}};
	enum err e = session_do(d->r->session, &call, &answer, why);
	if (!e && answer.status == 416)
		e = start_over(d) ? ERR_IO : ERR_CLOSED;
	else if (!e)
		e = session_problem(&answer, NULL, why);
	transport_answer_deinit(&answer);
	return e ? e : check(d, why);
}

static enum err
from_coordinator(struct download *d, struct why *why)
{
	struct rivulet *r = d->r;
	enum err e = ERR_CLOSED;

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		e = one_attempt(d, why);
		if (e != ERR_CLOSED && e != ERR_TIMEOUT && e != ERR_CORRUPT)
			return e;
		double pause = backoff_next(session_backoff(r->session));
		if (i + 1 < ATTEMPTS && !backoff_sleep(pause, handle_cancelled, r))
			return err_set(why, ERR_AGAIN, "cancelled");
	}
	return e;
}

static enum err
download(struct download *d, struct why *why)
{
	struct rivulet *r = d->r;
	enum err e = take_up(d, why);

	if (e)
		return e;
	if (r->mirror) {
		e = from_mirror(d, why);
		if (!e || e == ERR_AGAIN)
			return e;
		events_emit(&r->events, EVENTS_WARN, "mirror.failed",
		    EVENTS_PAIRS(EVENTS_S("reason", why->text)));
		if ((e = start_over(d)))
			return err_set(why, e, "a download cannot be truncated");
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
