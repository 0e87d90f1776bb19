#include "retention.h"

#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fault.h"
#include "models.h"
#include "store.h"

#define BATCH 64

struct old_models {
	struct engine *engine;
	struct models *files;
	struct {
		uint8_t id[32], job[16];
	} models[BATCH];
	size_t count;
};

static enum err
collect_old(void *ctx, const struct store_model *m)
{
	struct old_models *o = ctx;

	if (o->count < BATCH && engine_lets_go(o->engine, m)) {
		memcpy(o->models[o->count].id, m->id, 32);
		memcpy(o->models[o->count++].job, m->job, 16);
	}
	return ERR_OK;
}

static enum err
forget_old(struct store_db *db, void *arg, struct why *why)
{
	struct old_models *o = arg;

	(void)why;
	o->count = 0;
	enum err e = store_model_each(db, collect_old, o);
	for (size_t i = 0; i < o->count && e == ERR_OK; i++)
		e = store_model_delete(db, o->models[i].id);
	return e;
}

/* On the store thread, as the rows are written: who wrote one again in the meantime keeps the file, and who comes later sees that
 * it is gone. */
static enum err
remove_files(struct store_db *db, void *arg, struct why *why)
{
	struct old_models *o = arg;
	struct store_model row;
	enum err e = ERR_OK;

	(void)why;
	for (size_t i = 0; i < o->count && e == ERR_OK; i++)
		if (store_model_get(db, o->models[i].id, &row) == ERR_NOTFOUND)
			e = models_delete(o->files, o->models[i].id);
	return e;
}

/* Rows first: a crash in between leaves a file without a row, never a row without its file. */
static enum err
remove_batch(const struct services *s, struct old_models *o)
{
	enum err e = store_write(s->store, forget_old, o, NULL);

	FAULT("clean.rows");
	if (e || o->count == 0)
		return e;
	for (size_t i = 0; i < o->count; i++)
		engine_steps_gone(s->engine, o->models[i].job, o->models[i].id);
	return store_write(s->store, remove_files, o, NULL);
}

enum err
retention_pass(const struct services *s)
{
	struct old_models *o = calloc(1, sizeof(*o));
	enum err e;

	if (!o)
		return ERR_NOMEM;
	o->engine = s->engine;
	o->files = s->models;
	do
		e = remove_batch(s, o);
	while (e == ERR_OK && o->count == BATCH);
	free(o);
	return e;
}
