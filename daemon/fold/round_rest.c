#include "round_rest.h"

#include <string.h>

#include "archive.h"
#include "config.h"
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
forget_erased(const struct fold *w)
{
	struct registry_view view;

	for (size_t i = 0; i < w->count; i++)
		if (registry_get(w->uses.registry, w->inputs[i].device, &view) == ERR_OK &&
		    registry_is_erased(&view.row))
			(void)!archive_remove(w->uses.archive, w->inputs[i].task);
}

/* What cannot be kept is logged and goes: the round is committed, and its room is needed. */
static void
leave_spool(const struct fold *w)
{
	const struct config *c = shared_take(w->uses.config);
	struct why why = {""};
	enum err e = ERR_OK;

	for (size_t i = 0; i < w->count; i++) {
		if (c->keep_deltas && !e)
			e = archive_add(
			    w->uses.archive, w->inputs[i].task, c->keep_deltas_bytes, &why);
		spool_remove(w->uses.spool, w->inputs[i].task);
	}
	if (c->keep_deltas)
		forget_erased(w);
	if (c->keep_deltas && !e)
		e = archive_sync(w->uses.archive, &why);
	shared_give(w->uses.config, c);
	if (e)
		log_event(LOG_LEVEL_ERROR, "delta.not-kept", LOG_S("job", w->f->job_hex),
		    LOG_U("round", w->f->row.round), LOG_S("why", why.text));
}

/* What the guard could go back to before this round, and now cannot. */
static enum err
forget_states(const struct fold *w)
{
	static const uint8_t none[32];
	struct rate_control before = w->f->schedule;
	const uint8_t *state;
	enum err e = ERR_OK;

	for (uint32_t i = 0; !e && (state = rate_control_held(&before, i)); i++)
		if (memcmp(state, none, 32) != 0 && !engine_uses_state(w->engine, state))
			e = models_state_delete(w->uses.models, state);
	return e;
}

/* Those of jobs that were stopped, in whatever round they were. */
static enum err
forget_stopped(struct engine *g)
{
	uint8_t hash[32];
	enum err e = ERR_OK;

	while (!e && rounds_forgotten_state(g, hash))
		if (!engine_uses_state(g, hash))
			e = models_state_delete(jobs_uses(g).models, hash);
	return e;
}

static enum err
remove_early(void *ctx, const struct store_accept *a)
{
	const struct fold *w = ctx;

	spool_remove(w->uses.spool, a->task);
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
	const uint64_t oldest = w->f->spec->round.max_staleness, round = w->f->row.round;

	if (w->out.after.begin_next && round > oldest)
		spool_forget(w->uses.spool, w->f->job_id, round - oldest);
	if (w->out.after.begin_next)
		return;
	spool_forget(w->uses.spool, w->f->job_id, round);
	if (oldest > 0)
		(void)!store_write(w->uses.store, remove_all_early, w, NULL);
}

void
round_rest_clear(struct fold *w)
{
	static const uint8_t none[32];
	enum err e = ERR_OK;

	if (w->out.row.state != OUTCOME_EVALUATED)
		leave_spool(w);
	forget_parts(w);
	FAULT("clean.spool");
	if (memcmp(w->f->row.optimizer_state, none, 32) != 0 &&
	    !engine_uses_state(w->engine, w->f->row.optimizer_state))
		e = models_state_delete(w->uses.models, w->f->row.optimizer_state);
	/* Of a job that has ended with this round. */
	if (memcmp(w->out.row.optimizer_state, none, 32) != 0 &&
	    !engine_uses_state(w->engine, w->out.row.optimizer_state))
		e = models_state_delete(w->uses.models, w->out.row.optimizer_state);
	if (!e)
		e = forget_states(w);
	if (!e)
		e = forget_stopped(w->engine);
	if (!e)
		e = retention_pass(w->engine);
	if (e)
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", err_name(e)));
}

void
round_rest_forget(struct engine *g)
{
	if (forget_stopped(g))
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", "states"));
}
