#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "download.h"
#include "fault.h"
#include "fetch.h"
#include "hash.h"
#include "hex.h"
#include "patch.h"

struct difference_fetch {
	struct download d; /* first: check() has no other context */
	struct patch patch;
	char base[PATH_MAX];
};

static enum err
check(struct download *d, struct why *why)
{
	struct difference_fetch *f = (struct difference_fetch *)d;
	const struct task *t = &d->r->work.task;
	uint8_t from[32], to[32];

	if (!hex_decode(from, sizeof(from), t->from, strlen(t->from)) ||
	    !hex_decode(to, sizeof(to), t->model, strlen(t->model)))
		return err_set(why, ERR_INVALID, "the task names no model");
	return patch_open(&f->patch, d->sink.fd, d->bytes, from, to, why);
}

/* Is it worth it: the model that it begins with is here, both fit the cache, and no more is missing of a whole model that was begun? */
static bool
is_useful(struct rivulet *r, char base[PATH_MAX])
{
	const struct task *t = &r->work.task;
	uint64_t held, begun;

	if (!t->from[0] || t->from_bytes >= t->model_bytes ||
	    cache_held(&r->cache, t->from, &held, base))
		return false;
	begun = cache_begun(&r->cache, t->model);
	if (begun < t->model_bytes && t->model_bytes - begun <= t->from_bytes)
		return false;
	uint64_t most = r->cache.max_bytes;
	return held < most && t->from_bytes < most - held &&
	    t->model_bytes <= most - held - t->from_bytes;
}

static enum err
apply(struct difference_fetch *f, int out, struct why *why)
{
	struct rivulet *r = f->d.r;
	const struct task *t = &r->work.task;
	struct patch_files files = {
	    .out = out, .rules = t->recipe.rules, .rule_count = t->recipe.rule_count};
	uint8_t hash[HASH_LEN];
	char id[2 * HASH_LEN + 1] = "";
	uint64_t bytes = 0;

	files.base = open(f->base, O_RDONLY | O_CLOEXEC);
	if (files.base < 0)
		return err_errno(why, "open %s", f->base);
	enum err e = ftruncate(out, 0) == 0 ? patch_apply(&f->patch, &files, &bytes, why)
					    : err_errno(why, "truncate a model");
	close(files.base);
	FAULT("client.patched");
	if (!e)
		e = hash_file(out, hash);
	if (!e)
		hex_encode(id, hash, HASH_LEN);
	if (!e && (bytes != t->model_bytes || strcmp(id, t->model) != 0))
		e = err_set(why, ERR_CORRUPT, "what the difference makes is not the model");
	return e;
}

/* The difference is complete and sound. A base that is not what its name says is found now, and gone. */
static enum err
make_model(struct difference_fetch *f, struct why *why)
{
	struct rivulet *r = f->d.r;
	const struct task *t = &r->work.task;
	struct why ignored;
	int out;

	enum err e = cache_part(&r->cache, t->model, &out, why);
	if (e)
		return e;
	e = apply(f, out, why);
	if (!e)
		e = cache_commit(&r->cache, t->model, out, r->work.path, why);
	else if (ftruncate(out, 0) == 0 && cache_check(&r->cache, t->from, &ignored))
		err_set(why, e, "the model that the difference begins with was damaged");
	close(out);
	return e;
}

enum err
fetch_difference(struct rivulet *r, struct why *why)
{
	const struct task *t = &r->work.task;
	struct difference_fetch f = {.d = {.r = r,
					 .what = "difference",
					 .bytes = t->from_bytes,
					 .once = true,
					 .check = check,
					 .sink = {.max = t->from_bytes}}};

	if (!is_useful(r, f.base))
		return ERR_NOTFOUND;
	snprintf(f.d.path, sizeof(f.d.path), "/v1/models/%.64s/from/%.64s", t->model, t->from);
	enum err e = cache_make_room(&r->cache, t->model, t->model_bytes + t->from_bytes, why);
	if (!e)
		e = cache_difference(&r->cache, t->model, &f.d.sink.fd, why);
	if (e)
		return e;
	e = download_run(&f.d, why);
	if (!e)
		e = make_model(&f, why);
	close(f.d.sink.fd);
	/* What a broken connection left is gone on with if the same task comes again; all else is of no more use. */
	if (e != ERR_AGAIN)
		cache_drop_difference(&r->cache, t->model);
	return e;
}
