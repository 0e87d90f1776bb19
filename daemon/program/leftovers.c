#include "leftovers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "engine.h"
#include "hex.h"
#include "log.h"
#include "lost.h"
#include "models.h"
#include "past_rows.h"
#include "services.h"
#include "spool.h"
#include "store.h"

/* A model without a row, and what its header says. */
struct question {
	const struct services *s;
	const uint8_t *id;
	uint8_t job[16];
	uint64_t round;
	enum models_fate fate;
};

struct reports {
	struct spool *spool;
	uint64_t there, gone;
};

static enum err
see_report(void *ctx, const struct store_accept *a)
{
	struct reports *r = ctx;
	struct delta_file file;

	enum err e = spool_read(r->spool, a->task, NULL, &file, NULL);
	r->there += !e;
	r->gone += e != ERR_OK;
	if (!e)
		delta_file_close(&file);
	return ERR_OK;
}

static bool
is_live(struct store_db *db, const uint8_t id[16])
{
	struct store_job job = {.document = NULL};

	enum err e = store_job_get(db, id, &job);
	free(job.document);
	return e || states_job_lives(job.state);
}

/* Judges a model of the open round. After a crash before the commit, the deltas that the model was made from are there; after a commit that
 * this database does not know of, they are gone. A job that was stopped had no commit any more. */
static enum models_fate
judge_open(struct store_db *db, const struct question *q)
{
	struct reports r = {.spool = q->s->spool};

	if (!is_live(db, q->job))
		return MODELS_LEFTOVER;
	enum err e = store_accept_each(db, q->job, q->round, see_report, &r);
	return !e && r.there > 0 && r.gone == 0 ? MODELS_LEFTOVER : MODELS_LOST;
}

/* Reads the row of the model's round: the row of an ended round names its model. */
static enum err
ask_round(struct store_db *db, struct question *q)
{
	struct store_round r;

	enum err e = store_round_get(db, q->job, q->round, &r);
	/* A job that was deleted took its rows along first. */
	if (e == ERR_NOTFOUND && store_delete_known(db, q->job) == ERR_OK) {
		q->fate = MODELS_GOES;
		return ERR_OK;
	}
	if (e)
		return e;
	if (r.state == OUTCOME_OPEN)
		q->fate = judge_open(db, q);
	else if (memcmp(r.model, q->id, sizeof(r.model)) == 0)
		q->fate = MODELS_GOES;
	return ERR_OK;
}

static enum err
ask(struct store_db *db, void *arg, struct why *why)
{
	struct question *q = arg;

	(void)why;
	/* A job's first model comes from its document, which draws the same bytes again. */
	if (q->round > 0)
		return ask_round(db, q);
	q->fate = MODELS_LEFTOVER;
	return ERR_OK;
}

static bool
has_origin(const struct services *s, struct question *q)
{
	struct modelfile_meta meta;

	if (models_meta(s->models, q->id, &meta, NULL))
		return false;
	q->round = meta.round;
	return hex_decode(q->job, sizeof(q->job), meta.job, strlen(meta.job));
}

/* Judges a model or a state. An optimizer state does not say its origin: if it is not in use, it is set aside only when a model is lost. */
static enum models_fate
judge(void *ctx, const uint8_t id[32], bool state)
{
	const struct services *s = ctx;
	struct question q = {.s = s, .id = id, .fate = MODELS_LOST};
	struct store_model row;

	if (state)
		return engine_uses_state(s->engine, id) ? MODELS_STAYS : MODELS_LEFTOVER;
	if (store_model_find(s->store, id, &row) != ERR_NOTFOUND)
		return MODELS_STAYS;
	if (has_origin(s, &q) && store_read(s->store, ask, &q, NULL))
		q.fate = MODELS_LOST;
	return q.fate;
}

enum err
leftovers_settle(const struct services *s, struct why *why)
{
	char aside[CONFIG_PATH_MAX + 16];
	uint64_t found = spool_lost_found(s->spool), lost = found;

	snprintf(aside, sizeof(aside), "%s/lost", s->fixed->state_dir);
	enum err e = models_recover(s->models, judge, (void *)(uintptr_t)s, aside, &lost, why);
	if (lost > found)
		log_event(LOG_LEVEL_ERROR, "files.lost", LOG_U("models", lost - found),
		    LOG_S("why", "no row explains them; they are in lost/"));
	return e;
}
