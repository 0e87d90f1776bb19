#include "fetch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "download.h"
#include "fault.h"
#include "hash.h"
#include "hex.h"

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

static enum err
check_hash(struct download *d, struct why *why)
{
	uint8_t hash[HASH_LEN];
	char id[2 * HASH_LEN + 1];

	hash_finish(d->sink.hash, hash);
	hex_encode(id, hash, HASH_LEN);
	return strcmp(id, d->r->work.task.model) == 0
	    ? ERR_OK
	    : err_set(why, ERR_CORRUPT, "the model's hash does not match its id");
}

static enum err
fetch_whole(struct rivulet *r, struct why *why)
{
	const struct task *t = &r->work.task;
	struct download d = {.r = r,
	    .what = "model",
	    .bytes = t->model_bytes,
	    .check = check_hash,
	    .sink = {.max = t->model_bytes}};
	struct why local;

	snprintf(d.path, sizeof(d.path), "/v1/models/%.64s", t->model);
	enum err e = cache_make_room(&r->cache, t->model, t->model_bytes, why);
	if (!e)
		e = cache_part(&r->cache, t->model, &d.sink.fd, why);
	if (e)
		return e;
	d.sink.hash = hash_new();
	e = d.sink.hash ? download_run(&d, why ? why : &local)
			: err_set(why, ERR_NOMEM, "no memory");
	hash_free(d.sink.hash);
	FAULT("client.fetched");
	if (!e)
		e = cache_commit(&r->cache, t->model, d.sink.fd, r->work.path, why);
	close(d.sink.fd);
	return e;
}

enum err
fetch_model(struct rivulet *r, struct why *why)
{
	struct why local = {""};
	enum err e = from_cache(r, why);

	if (e != ERR_NOTFOUND)
		return e;
	e = fetch_difference(r, &local);
	if (!e || e == ERR_AGAIN)
		return e ? err_set(why, e, "%s", local.text) : ERR_OK;
	if (local.text[0])
		events_emit(&r->events, EVENTS_WARN, "difference.failed",
		    EVENTS_PAIRS(EVENTS_S("reason", local.text)));
	return fetch_whole(r, why);
}
