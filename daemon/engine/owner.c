#include <string.h>
#include <time.h>

#include "config.h"
#include "engine_inside.h"
#include "err.h"
#include "override.h"
#include "past_rows.h"
#include "report.h"
#include "shared.h"
#include "spent.h"
#include "store.h"

/* What one owner may have and do: [limits] owner_*. What is on its way counts from before it begins (struct engine_reservation). */

#define SETTLE_MS 5000 /* to wait at most for what becomes of what others have begun */
#define LOOK_MS 5
#define TEXT_COPIES 2 /* in a row of its own and in the audit log */
#define ENTRY_BYTES 1024 /* of the audit log with its detail, or of what it is about */

struct owned {
	uint64_t jobs, bytes, kept;
	double evaluation, folds;
};

/* What [retention] alone keeps is the administrator's choice, and was before there was a "keep". */
static bool
says_keep(const struct job *j)
{
	const struct job_facts *facts = job_facts(j);

	return facts->keep.last != JOB_KEEP_CONFIGURED ||
	    facts->keep.every != JOB_KEEP_CONFIGURED || facts->keep.best > 1;
}

/* Models that its "keep" promises room, at their most. */
static uint64_t
promised(const struct config *c, const struct job *j)
{
	return c->owner_model_bytes > 0 && says_keep(j)
	    ? jobs_forecast_kept(c, j, job_facts(j)->work->terms.stop.rounds)
	    : 0;
}

static uint64_t
plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void
add(struct owned *o, const struct config *c, const struct job *j)
{
	o->kept = plus(o->kept, promised(c, j));
	o->jobs++;
	o->bytes += job_memory(j);
	o->evaluation += job_facts(j)->work->evaluation;
	o->folds += job_facts(j)->work->cost.work;
}

/* Its jobs that are not over, and those on their way but for `own`; the same job that is submitted twice is one. Lock held, all the
 * while: what is decided by the sum is reserved under it. */
static struct owned
sum(struct engine *g, const struct config *c, const uint8_t owner[32],
    const struct engine_reservation *own)
{
	struct owned o = {.jobs = 0};
	const struct job *j;

	for (size_t i = 0; (j = jobs_share_at(g, i)); i++) {
		if (memcmp(job_facts(j)->owner, owner, sizeof(job_facts(j)->owner)) == 0)
			add(&o, c, j);
	}
	for (const struct engine_reservation *r = *jobs_reserved(g); r; r = r->next) {
		if (r == own || memcmp(r->owner, owner, sizeof(r->owner)) != 0 ||
		    (own->jobs > 0 && memcmp(r->job, own->job, sizeof(r->job)) == 0))
			continue;
		o.jobs += r->jobs;
		o.bytes += r->bytes;
		o.kept = plus(o.kept, r->kept);
		o.evaluation += r->evaluation;
		o.folds += r->folds;
	}
	return o;
}

/* --- what is on its way */

/* Behind those that came before. Lock held. */
static void
hold(struct engine *g, struct engine_reservation *r)
{
	struct engine_reservation **at = jobs_reserved(g);

	if (r->asks)
		return;
	while (*at)
		at = &(*at)->next;
	r->next = NULL;
	r->held = true;
	*at = r;
}

void
engine_owner_end(struct engine *g, struct engine_reservation *r)
{
	struct engine_reservation **at = jobs_reserved(g);

	if (!r->held)
		return;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->held = r->unsettled = false;
}

void
engine_owner_release(struct engine *g, struct engine_reservation *r)
{
	jobs_lock(g);
	engine_owner_end(g, r);
	jobs_unlock(g);
}

void
engine_owner_settle(struct engine *g, struct engine_reservation *r)
{
	jobs_lock(g);
	r->unsettled = r->held;
	jobs_unlock(g);
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

/* r: what is to come on top of o. */
static enum err
bound(const struct config *c, const struct engine_reservation *r, const struct owned *o,
    struct why *why)
{
	enum err e = within("owner_jobs", "jobs", (double)(o->jobs + r->jobs), c->owner_jobs, why);

	if (!e)
		e = within("owner_document_bytes", "bytes of documents and tables",
		    (double)(o->bytes + r->bytes), c->owner_document_bytes, why);
	if (!e)
		e = within("owner_evaluation", "multiply-adds of an evaluation's batches",
		    o->evaluation + r->evaluation, c->owner_evaluation, why);
	if (!e)
		e = within("owner_fold_work", "operations of a round's folds", o->folds + r->folds,
		    c->owner_fold_work, why);
	return e ? e : bound_kept(c, plus(o->kept, r->kept), r->kept, why);
}

/* Jobs of everybody. Lock held. */
static size_t
count_jobs(struct engine *g)
{
	size_t count = jobs_counts(g)->jobs[JOB_RUNNING] + jobs_counts(g)->jobs[JOB_PAUSED];

	for (const struct engine_reservation *r = *jobs_reserved(g); r; r = r->next)
		count += r->jobs;
	return count;
}

/* Lock held. */
static enum err
reserve_job(struct engine *g, const struct config *c, struct engine_reservation *r, bool bounded,
    struct why *why)
{
	size_t count = count_jobs(g);

	if (count >= ENGINE_JOBS_MAX)
		return err_set(why, ERR_INVALID, "%zu jobs are not over yet; stop some", count);
	if (bounded) {
		const struct owned o = sum(g, c, r->owner, r);
		enum err e = bound(c, r, &o, why);
		if (e)
			return e;
	}
	hold(g, r);
	return ERR_OK;
}

enum err
engine_owner_takes(struct engine *g, const struct job *j, bool bounded,
    struct engine_reservation *r, struct why *why)
{
	const struct job_facts *facts = job_facts(j);
	const struct config *c = shared_take(jobs_uses(g).config);
	enum err e = bounded ? bound_rank(c, &facts->work->terms, why) : ERR_OK;

	*r = (struct engine_reservation){.asks = r->asks,
	    .jobs = 1,
	    .bytes = job_memory(j),
	    .kept = promised(c, j),
	    .evaluation = facts->work->evaluation,
	    .folds = facts->work->cost.work};
	memcpy(r->owner, facts->owner, sizeof(r->owner));
	memcpy(r->job, facts->id, sizeof(r->job));
	jobs_lock(g);
	if (!e)
		e = reserve_job(g, c, r, bounded, why);
	jobs_unlock(g);
	shared_give(jobs_uses(g).config, c);
	if (!e && bounded)
		e = engine_owner_models(
		    g, facts->owner, r->kept > 0 ? r->kept : facts->model_bytes, r, why);
	return e;
}

/* What it had before the change may stay, also where it is above a limit of today. */
enum err
engine_owner_changes(struct engine *g, const struct job *j, const struct job_terms *was,
    const struct job_terms *to, struct engine_reservation *r, struct why *why)
{
	const struct config *c = shared_take(jobs_uses(g).config);
	struct job_terms rank = *to;

	if (to->priority <= was->priority)
		rank.priority = INT64_MIN;
	if (to->share <= was->share)
		rank.share = 0;
	*r = (struct engine_reservation){.held = false};
	memcpy(r->owner, job_facts(j)->owner, sizeof(r->owner));
	enum err e = bound_rank(c, &rank, why);
	jobs_lock(g);
	if (!e && to->stop.rounds != was->stop.rounds && promised(c, j) > 0) {
		const struct owned o = sum(g, c, job_facts(j)->owner, r);
		const uint64_t kept = jobs_forecast_kept(c, j, to->stop.rounds);
		const uint64_t before = promised(c, j),
			       others = o.kept > before ? o.kept - before : 0;
		e = bound_kept(c, plus(others, kept), kept, why);
		r->kept = kept > before ? kept - before : 0;
		if (!e)
			hold(g, r);
	}
	jobs_unlock(g);
	shared_give(jobs_uses(g).config, c);
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

/* What this owner reserved before r did. */
struct ahead {
	uint64_t bytes, unsettled; /* all, and what is decided about, or has its rows, perhaps */
};

static struct ahead
look_ahead(struct engine *g, const struct engine_reservation *r)
{
	struct ahead a = {.bytes = 0};

	jobs_lock(g);
	for (const struct engine_reservation *o = *jobs_reserved(g); o && o != r; o = o->next) {
		if (memcmp(o->owner, r->owner, sizeof(o->owner)) != 0)
			continue;
		a.bytes = plus(a.bytes, o->models);
		if (o->unsettled)
			a.unsettled = plus(a.unsettled, o->models);
	}
	jobs_unlock(g);
	return a;
}

static bool
fits(uint64_t most, uint64_t has, uint64_t ahead, uint64_t more)
{
	return plus(plus(has, ahead), more) <= most;
}

/* First what is on its way is looked at, then the rows: what comes to rest in between counts twice, never not at all. */
static enum err
wait_for_room(struct engine *g, struct engine_reservation *r, uint64_t most, struct models_of *m,
    struct why *why)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	struct ahead a = {.bytes = 0};
	enum err e = ERR_OK;

	for (unsigned waited = 0; !e; waited += LOOK_MS) {
		a = look_ahead(g, r);
		e = store_read(jobs_uses(g).store, read_models, m, why);
		bool perhaps = !fits(most, m->bytes, a.bytes, r->models) && a.unsettled > 0 &&
		    fits(most, m->bytes, a.bytes - a.unsettled, r->models);
		if (e || !perhaps || waited >= SETTLE_MS)
			break;
		nanosleep(&pause, NULL);
	}
	m->bytes = plus(m->bytes, a.bytes);
	return e;
}

enum err
engine_owner_models(struct engine *g, const uint8_t owner[32], uint64_t bytes,
    struct engine_reservation *r, struct why *why)
{
	struct models_of m = {.owner = owner};
	const struct config *c = shared_take(jobs_uses(g).config);
	uint64_t most = c->owner_model_bytes;

	shared_give(jobs_uses(g).config, c);
	if (most == 0)
		return ERR_OK;
	/* From now on it counts with these, so it stands behind whoever has looked before. */
	jobs_lock(g);
	engine_owner_end(g, r);
	memcpy(r->owner, owner, sizeof(r->owner));
	r->models = bytes;
	hold(g, r);
	r->unsettled = true;
	jobs_unlock(g);
	enum err e = wait_for_room(g, r, most, &m, why);
	bool taken = !e && fits(most, m.bytes, 0, bytes);
	jobs_lock(g);
	r->unsettled = false;
	if (!taken)
		engine_owner_end(g, r);
	jobs_unlock(g);
	if (e || taken)
		return e;
	return err_set(why, ERR_DENIED,
	    "your models have %llu bytes, and with this one they have %llu more; the coordinator's "
	    "[limits] owner_model_bytes is %llu: delete some (model delete, job delete), or ask "
	    "its administrator",
	    (unsigned long long)m.bytes, (unsigned long long)bytes, (unsigned long long)most);
}

/* --- in an hour, and in a day */

static uint64_t
cost(const struct engine_spending *s)
{
	return s->entries > 0 ? TEXT_COPIES * s->text + s->entries * (uint64_t)ENTRY_BYTES : 0;
}

/* Refused, it has cost nothing. */
static enum err
spend_bytes(struct engine *g, struct engine_spending *s, uint64_t most, struct why *why)
{
	const struct spent_bytes b = {SPENT_ROWS, cost(s), most};

	s->wait_s = spent_take(jobs_uses(g).spent, s->owner, &b);
	if (s->wait_s == 0)
		return ERR_OK;
	return err_set(why, ERR_AGAIN,
	    "with this your documents and changes of a day come to more than the coordinator's "
	    "[limits] owner_bytes_per_day allows: try again in %u s, or ask its administrator",
	    s->wait_s);
}

enum err
engine_owner_spend(struct engine *g, struct engine_spending *s, struct why *why)
{
	const struct config *c = shared_take(jobs_uses(g).config);
	enum err e = spend_bytes(g, s, c->owner_bytes_per_day, why);

	if (!e)
		s->wait_s = spent_change(jobs_uses(g).spent, s->owner, c->owner_changes_per_hour);
	shared_give(jobs_uses(g).config, c);
	if (!e && s->wait_s > 0) {
		engine_owner_unspend(g, s);
		e = err_set(why, ERR_AGAIN,
		    "as many changes as the coordinator's [limits] owner_changes_per_hour allows: "
		    "try again in %u s, or ask its administrator",
		    s->wait_s);
	}
	return e;
}

void
engine_owner_unspend(struct engine *g, const struct engine_spending *s)
{
	spent_give(jobs_uses(g).spent, s->owner, SPENT_ROWS, cost(s));
}

enum err
engine_owner_written(struct spent *spent, struct store_db *db, const struct engine_spending *s)
{
	return s ? spent_store(spent, db, s->owner, cost(s)) : ERR_OK;
}

/* --- documents that somebody else submitted */

bool
engine_is_foreign(struct engine *g, const uint8_t id[16], const uint8_t owner[32])
{
	jobs_lock(g);
	const struct job *j = jobs_find(g, id);
	bool foreign = j && memcmp(job_facts(j)->owner, owner, sizeof(job_facts(j)->owner)) != 0;
	jobs_unlock(g);
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
engine_owner_find(
    struct engine *g, const struct engine_document *document, const uint8_t id[16], struct why *why)
{
	jobs_lock(g);
	const struct job *j = jobs_find(g, id);
	bool foreign = j && document->bounded &&
	    memcmp(job_facts(j)->owner, document->owner, sizeof(document->owner)) != 0;
	jobs_unlock(g);
	return foreign ? refuse_foreign(why) : j ? ERR_OK : ERR_NOTFOUND;
}

bool
engine_has(struct engine *g, const char *text, size_t len)
{
	const struct engine_document document = {.text = text, .len = len};
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, text, len);
	return engine_owner_find(g, &document, digest, NULL) == ERR_OK;
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
