#include "retention.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "engine_inside.h"
#include "fault.h"
#include "hex.h"
#include "log.h"
#include "models.h"
#include "shared.h"
#include "stop.h"
#include "store.h"

#define BATCH 64

struct old_models {
	struct engine *engine;
	struct models *files;
	struct store_model models[BATCH];
	size_t count, at;
};

static bool
holds_model(struct engine *g, const uint8_t model[32])
{
	unsigned seen = 0;

	for (struct job *j = jobs_first(g); j; j = jobs_next(g, j, &seen))
		if (memcmp(job_facts(j)->row.base, model, 32) == 0 ||
		    memcmp(job_facts(j)->model, model, 32) == 0 ||
		    jobs_guard_holds_model(j, model) || jobs_late_holds(j, model) ||
		    (job_facts(j)->work && job_facts(j)->work->central.open &&
			memcmp(job_facts(j)->work->central.model, model, 32) == 0))
			return true;
	return false;
}

static bool
lets_go(struct engine *g, const struct store_model *m)
{
	const struct config *c = shared_take(jobs_uses(g).config);

	jobs_lock(g);
	const struct job *j = jobs_find(g, m->job);
	struct keep_spec k = {0, 0, 0};
	if (j)
		k = jobs_forecast_keep(c, j);
	bool goes = j && !job_facts(j)->aside && m->round > 0 &&
	    m->round + k.last <= job_facts(j)->rounds_committed &&
	    !(k.every > 0 && m->round % k.every == 0) && !holds_model(g, m->id);
	jobs_unlock(g);
	shared_give(jobs_uses(g).config, c);
	return goes;
}

static enum err
collect_old(void *ctx, const struct store_model *m)
{
	struct old_models *o = ctx;

	if (o->count < BATCH && lets_go(o->engine, m))
		o->models[o->count++] = *m;
	return ERR_OK;
}

static enum err
forget_old(struct store_db *db, void *arg, struct why *why)
{
	struct old_models *o = arg;

	(void)why;
	o->count = 0;
	enum err e = store_model_each(db, collect_old, o);
	for (size_t i = 0; i < o->count && !e; i++)
		e = store_model_delete(db, o->models[i].id);
	return e;
}

/* On the store thread, as the rows are written: whoever wants it again has said so, in a row or to the engine, or sees that it is
 * gone. */
static enum err
remove_one(struct store_db *db, void *arg, struct why *why)
{
	const struct old_models *o = arg;
	const struct store_model *m = &o->models[o->at];
	struct store_model row;

	(void)why;
	enum err e = store_model_get(db, m->id, &row);
	if (e != ERR_NOTFOUND)
		return e;
	return lets_go(o->engine, m) ? models_delete(o->files, m->id) : store_model_put(db, m);
}

/* Of which job each is says the log at debug: one line a round is enough. */
static void
tell(const struct old_models *o)
{
	char job[33], model[65];
	uint64_t bytes = 0;

	for (size_t i = 0; i < o->count; i++) {
		const struct store_model *m = &o->models[i];
		hex_encode(job, m->job, sizeof(m->job));
		hex_encode(model, m->id, sizeof(m->id));
		bytes += m->bytes;
		log_event(LOG_LEVEL_DEBUG, "model.deleted", LOG_S("model", model),
		    LOG_S("job", job), LOG_U("round", m->round));
	}
	hex_encode(job, o->models[0].job, sizeof(o->models[0].job));
	log_event(LOG_LEVEL_INFO, "models.deleted", LOG_U("models", o->count),
	    LOG_U("bytes", bytes), LOG_S("job", job),
	    LOG_S("why", "[retention] keep_last and keep_every, or the job's keep"));
}

/* Rows first: a crash in between leaves a file without a row, never a row without its file. */
static enum err
remove_batch(const struct engine_uses *u, struct old_models *o)
{
	enum err e = store_write_reserved(u->store, forget_old, NULL, o, NULL);

	FAULT("clean.rows");
	if (!e && o->count > 0)
		tell(o);
	/* A stop waits for these few: no file is left without its row. */
	for (o->at = 0; o->at < o->count && !e; o->at++) {
		jobs_difference_gone(o->engine, o->models[o->at].job, o->models[o->at].id);
		e = store_write(u->store, remove_one, o, NULL);
	}
	return e;
}

enum err
retention_pass(struct engine *g)
{
	const struct engine_uses u = jobs_uses(g);
	struct old_models *o = calloc(1, sizeof(*o));
	enum err e;

	if (!o)
		return ERR_NOMEM;
	o->engine = g;
	o->files = u.models;
	do
		e = remove_batch(&u, o);
	while (!e && o->count == BATCH && !stop_asked(u.stop));
	free(o);
	return e;
}

/* --- what is in use */

bool
engine_uses_model(struct engine *g, const uint8_t model[32])
{
	jobs_lock(g);
	bool used = holds_model(g, model);
	jobs_unlock(g);
	return used;
}

bool
engine_uses_state(struct engine *g, const uint8_t hash[32])
{
	bool used = false;
	unsigned seen = 0;

	jobs_lock(g);
	for (struct job *j = jobs_first(g); j && !used; j = jobs_next(g, j, &seen))
		used = states_job_lives(job_facts(j)->state) &&
		    (memcmp(job_facts(j)->row.optimizer_state, hash, 32) == 0 ||
			jobs_guard_holds_state(j, hash));
	jobs_unlock(g);
	return used;
}
