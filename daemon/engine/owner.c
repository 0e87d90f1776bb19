#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "clock.h"
#include "delete_rows.h"
#include "engine_inside.h"

/* What one owner may have and do: [limits] owner_*. Two submissions at one moment may both be the last that fits. */

#define HOUR_MS 3600000u

struct owned {
	uint64_t jobs, bytes, kept;
	double evaluation, folds;
};

uint64_t
engine_owner_bytes(const struct engine_job *j)
{
	const struct engine_work *w = j->work;
	const struct recipe *r = &w->spec.recipe;

	return sizeof(*j) + sizeof(*w) + recipe_text_bytes(r->text) +
	    r->net.layer_count * sizeof(*r->net.layers) +
	    r->net.class_weight_count * sizeof(*r->net.class_weights) +
	    r->rule_count * sizeof(*r->rules) +
	    w->spec.select.device_count * sizeof(*w->spec.select.devices) +
	    w->table.count * sizeof(*w->table.items) +
	    w->spec.aggregate.variates * sizeof(*j->members);
}

/* What [retention] alone keeps is the administrator's choice, and was before there was a "keep". */
static bool
says_keep(const struct engine_job *j)
{
	return j->keep.last != JOB_KEEP_CONFIGURED || j->keep.every != JOB_KEEP_CONFIGURED ||
	    j->keep.best > 1;
}

/* Models that its "keep" promises room, at their most. */
static uint64_t
promised(const struct config *c, const struct engine_job *j)
{
	return c->owner_model_bytes > 0 && says_keep(j)
	    ? engine_forecast_kept(c, j, j->work->terms.stop.rounds)
	    : 0;
}

static void
add(struct owned *o, const struct config *c, const struct engine_job *j)
{
	uint64_t kept = promised(c, j);

	o->kept = kept > UINT64_MAX - o->kept ? UINT64_MAX : o->kept + kept;
	o->jobs++;
	o->bytes += engine_owner_bytes(j);
	o->evaluation += j->work->evaluation;
	o->folds += j->work->cost.work;
}

/* Its jobs that are not over. */
static struct owned
sum(struct engine *g, const struct config *c, const uint8_t owner[32])
{
	struct owned o = {.jobs = 0};
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j; j = engine_next(g, j, &seen))
		if (states_job_lives(j->state) && memcmp(j->owner, owner, sizeof(j->owner)) == 0)
			add(&o, c, j);
	lock_release(&g->lock);
	return o;
}

/* key names the limit. 0 is none. */
static enum err
within(const char *key, const char *what, double have, uint64_t most, struct why *why)
{
	if (most == 0 || have <= (double)most)
		return ERR_OK;
	return err_set(why, ERR_DENIED,
	    "with it your jobs that are not over come to %.0f %s; the coordinator's [limits] %s "
	    "is %llu: stop one, or ask its administrator",
	    have, what, key, (unsigned long long)most);
}

/* Before others' jobs, and beside them. */
static enum err
bound_rank(const struct config *c, const struct job_terms *t, struct why *why)
{
	if (t->priority > c->owner_priority)
		return err_set(why, ERR_DENIED,
		    "priority is %lld; the coordinator's [limits] owner_priority is %u: lower it, "
		    "or ask its administrator",
		    (long long)t->priority, c->owner_priority);
	if (t->share > c->owner_share)
		return err_set(why, ERR_DENIED,
		    "share is %u; the coordinator's [limits] owner_share is %u: lower it, or ask "
		    "its administrator",
		    t->share, c->owner_share);
	return ERR_OK;
}

static enum err
bound(const struct config *c, const struct engine_job *j, const struct owned *o, struct why *why)
{
	enum err e = bound_rank(c, &j->work->terms, why);

	if (!e)
		e = within("owner_jobs", "jobs", (double)o->jobs, c->owner_jobs, why);
	if (!e)
		e = within("owner_document_bytes", "bytes of documents and tables",
		    (double)o->bytes, c->owner_document_bytes, why);
	if (!e)
		e = within("owner_evaluation", "multiply-adds of an evaluation's batches",
		    o->evaluation, c->owner_evaluation, why);
	return e ? e
		 : within("owner_fold_work", "operations of a round's folds", o->folds,
		       c->owner_fold_work, why);
}

static enum err
bound_kept(const struct config *c, uint64_t all, uint64_t kept, struct why *why)
{
	if (kept == UINT64_MAX)
		return err_set(why, ERR_DENIED,
		    "keep.every needs \"stop\": {\"rounds\": N} where [limits] owner_model_bytes "
		    "bounds an owner's models");
	return kept == 0 ? ERR_OK
			 : within("owner_model_bytes", "bytes of models that they keep",
			       (double)all, c->owner_model_bytes, why);
}

enum err
engine_owner_takes(struct engine *g, const struct engine_job *j, struct why *why)
{
	const struct config *c = shared_take(g->services->config);
	struct owned o = sum(g, c, j->owner);
	uint64_t kept = promised(c, j);

	add(&o, c, j);
	enum err e = bound(c, j, &o, why);
	if (!e)
		e = bound_kept(c, o.kept, kept, why);
	shared_give(g->services->config, c);
	return e ? e : engine_owner_models(g, j->owner, kept > 0 ? kept : j->model_bytes, why);
}

/* What it had before the change may stay, also where it is above a limit of today. */
enum err
engine_owner_changes(struct engine *g, const struct engine_job *j, const struct job_terms *was,
    const struct job_terms *to, struct why *why)
{
	const struct config *c = shared_take(g->services->config);
	struct job_terms rank = *to;
	enum err e = ERR_OK;

	if (to->priority <= was->priority)
		rank.priority = INT64_MIN;
	if (to->share <= was->share)
		rank.share = 0;
	if (bound_rank(c, &rank, why))
		e = ERR_DENIED;
	if (!e && to->stop.rounds != was->stop.rounds && promised(c, j) > 0) {
		const struct owned o = sum(g, c, j->owner);
		const uint64_t kept = engine_forecast_kept(c, j, to->stop.rounds);
		const uint64_t before = promised(c, j),
			       others = o.kept > before ? o.kept - before : 0;
		e = bound_kept(
		    c, kept > UINT64_MAX - others ? UINT64_MAX : others + kept, kept, why);
	}
	shared_give(g->services->config, c);
	return e;
}

/* --- models */

struct models_of {
	const uint8_t *owner;
	uint64_t bytes;
};

static enum err
read_models(struct store_db *db, void *arg, struct why *why)
{
	struct models_of *m = arg;

	(void)why;
	return store_model_owned(db, m->owner, &m->bytes);
}

enum err
engine_owner_models(struct engine *g, const uint8_t owner[32], uint64_t bytes, struct why *why)
{
	struct models_of m = {.owner = owner};
	const struct config *c = shared_take(g->services->config);
	uint64_t most = c->owner_model_bytes;

	shared_give(g->services->config, c);
	if (most == 0)
		return ERR_OK;
	enum err e = store_read(g->services->store, read_models, &m, why);
	if (e || bytes <= most - (m.bytes < most ? m.bytes : most))
		return e;
	return err_set(why, ERR_DENIED,
	    "your models have %llu bytes, and with this one they have %llu more; the coordinator's "
	    "[limits] owner_model_bytes is %llu: delete some (model delete, job delete), or ask "
	    "its administrator",
	    (unsigned long long)m.bytes, (unsigned long long)bytes, (unsigned long long)most);
}

/* --- in an hour */

/* Lock held; NULL: no memory. */
static struct engine_owner *
find(struct engine *g, const uint8_t owner[32])
{
	size_t at = bytes_place(g->owners, g->owner_count, sizeof(*g->owners), owner, 32);

	if (at < g->owner_count && memcmp(g->owners[at].id, owner, 32) == 0)
		return &g->owners[at];
	struct engine_owner *all =
	    bytes_grow(g->owners, g->owner_count, &g->owner_room, sizeof(*all));
	if (!all)
		return NULL;
	g->owners = all;
	memmove(all + at + 1, all + at, (g->owner_count++ - at) * sizeof(*all));
	memcpy(all[at].id, owner, 32);
	all[at].busy_ms = 0;
	return &all[at];
}

/* Each one keeps the owner busy for its share of an hour; an hour ahead is no more taken. */
static uint32_t
spend(struct engine_owner *o, uint32_t share, uint64_t now)
{
	uint64_t busy = o->busy_ms > now ? o->busy_ms : now;

	if (busy + share > now + HOUR_MS)
		return (uint32_t)((busy + share - now - HOUR_MS + 999) / 1000);
	o->busy_ms = busy + share;
	return 0;
}

uint32_t
engine_owner_spend(struct engine *g, const uint8_t owner[32])
{
	const struct config *c = shared_take(g->services->config);
	uint32_t most = c->owner_changes_per_hour, wait = 1;

	shared_give(g->services->config, c);
	if (most == 0)
		return 0;
	lock_take(&g->lock);
	struct engine_owner *o = find(g, owner);
	if (o)
		wait = spend(o, HOUR_MS / most, clock_ms());
	lock_release(&g->lock);
	return wait;
}

/* --- documents that somebody else submitted */

bool
engine_is_foreign(struct engine *g, const uint8_t id[16], const uint8_t owner[32])
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, id);
	bool foreign = j && memcmp(j->owner, owner, sizeof(j->owner)) != 0;
	lock_release(&g->lock);
	return foreign;
}

static enum err
refuse_foreign(struct why *why)
{
	return err_set(why, ERR_EXISTS,
	    "somebody else submitted this very document before: any changed word, its name or "
	    "seed, "
	    "makes another job");
}

enum err
engine_owner_find(struct engine *g, const struct engine_document *document, const uint8_t id[16],
    size_t *count, struct why *why)
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, id);
	bool foreign = j && document->bounded &&
	    memcmp(j->owner, document->owner, sizeof(document->owner)) != 0;
	*count = g->report.jobs[JOB_RUNNING] + g->report.jobs[JOB_PAUSED];
	lock_release(&g->lock);
	return foreign ? refuse_foreign(why) : j ? ERR_OK : ERR_NOTFOUND;
}

enum err
engine_owner_deleted(
    struct store_db *db, const uint8_t id[16], const uint8_t owner[32], struct why *why)
{
	enum err e = store_delete_known(db, id);

	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	e = store_delete_foreign(db, id, owner);
	if (e != ERR_NOTFOUND)
		return e ? e : refuse_foreign(why);
	return err_set(why, ERR_STATE,
	    "this job was deleted, and its document may not come again: change its name or seed");
}
