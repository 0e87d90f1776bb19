#include "round_rest.h"

#include <string.h>

#include "archive.h"
#include "drive.h"
#include "engine.h"
#include "fault.h"
#include "log.h"
#include "models.h"
#include "registry.h"
#include "retention.h"
#include "shared.h"
#include "spool.h"
#include "store.h"

/* Of a device that was erased since the commit: its other kept deltas were looked for too early to find these. */
static void
forget_erased(const struct services *s, const struct fold *w)
{
	struct registry_view view;

	for (size_t i = 0; i < w->count; i++)
		if (registry_get(s->registry, w->inputs[i].device, &view) == ERR_OK &&
		    registry_is_erased(&view.row))
			(void)!archive_remove(s->archive, w->inputs[i].task);
}

/* What cannot be kept is logged and goes: the round is committed, and its room is needed. */
static void
leave_spool(const struct services *s, const struct fold *w)
{
	const struct config *c = shared_take(s->config);
	struct why why = {""};
	enum err e = ERR_OK;

	for (size_t i = 0; i < w->count; i++) {
		if (c->keep_deltas && !e)
			e = archive_add(s->archive, w->inputs[i].task, c->keep_deltas_bytes, &why);
		spool_remove(s->spool, w->inputs[i].task);
	}
	if (c->keep_deltas)
		forget_erased(s, w);
	if (c->keep_deltas && !e)
		e = archive_sync(s->archive, &why);
	shared_give(s->config, c);
	if (e)
		log_event(LOG_LEVEL_ERROR, "delta.not-kept", LOG_S("job", w->f->job_hex),
		    LOG_U("round", w->f->row.round), LOG_S("why", why.text));
}

/* What the guard could go back to before this round, and now cannot. */
static enum err
forget_states(const struct fold *w)
{
	static const uint8_t none[32];
	struct schedule_state before = w->f->schedule;
	const uint8_t *state;
	enum err e = ERR_OK;

	for (uint32_t i = 0; !e && (state = schedule_state_held(&before, i)); i++)
		if (memcmp(state, none, 32) != 0 && !engine_uses_state(w->services->engine, state))
			e = models_state_delete(w->services->models, state);
	return e;
}

/* Those of jobs that were stopped, in whatever round they were. */
static enum err
forget_stopped(const struct services *s)
{
	uint8_t hash[32];
	enum err e = ERR_OK;

	while (!e && rounds_forgotten_state(s->engine, hash))
		if (!engine_uses_state(s->engine, hash))
			e = models_state_delete(s->models, hash);
	return e;
}

static enum err
remove_early(void *ctx, const struct store_accept *a)
{
	const struct fold *w = ctx;

	spool_remove(w->services->spool, a->task);
	return ERR_OK;
}

static enum err
remove_all_early(struct store_db *db, void *arg, struct why *why)
{
	const struct fold *w = arg;

	(void)why;
	return store_accept_waiting(db, w->f->job_id, w->f->row.round + 1, remove_early, arg);
}

/* Uploads of tasks that are too old now; and of a job that makes no more models all of them, with what was taken for its next round. */
static void
forget_parts(struct fold *w)
{
	const struct services *s = w->services;
	const uint64_t oldest = w->f->spec->round.max_staleness, round = w->f->row.round;

	if (w->out.after.begin_next && round > oldest)
		spool_forget(s->spool, w->f->job_id, round - oldest);
	if (w->out.after.begin_next)
		return;
	spool_forget(s->spool, w->f->job_id, round);
	if (oldest > 0)
		(void)!store_write(s->store, remove_all_early, w, NULL);
}

void
round_rest_clear(struct fold *w)
{
	const struct services *s = w->services;
	static const uint8_t none[32];
	enum err e = ERR_OK;

	if (w->out.row.state != OUTCOME_EVALUATED)
		leave_spool(s, w);
	forget_parts(w);
	FAULT("clean.spool");
	if (memcmp(w->f->row.optimizer_state, none, 32) != 0 &&
	    !engine_uses_state(s->engine, w->f->row.optimizer_state))
		e = models_state_delete(s->models, w->f->row.optimizer_state);
	/* Of a job that has ended with this round. */
	if (memcmp(w->out.row.optimizer_state, none, 32) != 0 &&
	    !engine_uses_state(s->engine, w->out.row.optimizer_state))
		e = models_state_delete(s->models, w->out.row.optimizer_state);
	if (!e)
		e = forget_states(w);
	if (!e)
		e = forget_stopped(s);
	if (!e)
		e = retention_pass(s);
	if (e)
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", err_name(e)));
}

void
round_rest_forget(const struct services *s)
{
	if (forget_stopped(s))
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", "states"));
}
