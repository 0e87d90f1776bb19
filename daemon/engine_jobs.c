#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "clock.h"
#include "engine.h"
#include "engine_job.h"
#include "evalset.h"
#include "hex.h"
#include "log.h"
#include "modelfile.h"
#include "models.h"
#include "net.h"
#include "rule.h"
#include "server.h"
#include "server_opt.h"
#include "spool.h"

/* --- submitting */

static void
open_row(struct store_round *r, const uint8_t job[16], uint64_t round, const uint8_t base[32],
    uint32_t goal)
{
	*r = (struct store_round){.round = round,
	    .goal = goal,
	    .loss = NAN,
	    .accuracy = NAN,
	    .norm = NAN,
	    .opened_at = clock_wall()};
	memcpy(r->job, job, 16);
	memcpy(r->base, base, 32);
	snprintf(r->state, sizeof(r->state), "open");
}

struct submission {
	struct store_job job;
	struct store_round first;
	struct store_model model;
};

static enum err
write_submission(struct store_db *db, void *arg, struct why *why)
{
	struct submission *s = arg;

	(void)why;
	enum err e = store_job_insert(db, &s->job);
	if (e == ERR_OK)
		e = store_model_put(db, &s->model);
	if (e == ERR_OK)
		e = store_round_put(db, &s->first);
	return e;
}

static enum err
check_evaluation(const struct services *s, const struct engine_job *j, struct why *why)
{
	if (j->spec.recipe.evaluate_by != EVALUATE_COORDINATOR)
		return ERR_OK;
	struct evalset *set = NULL;
	enum err e = evalset_new(&set, s->config);
	if (e == ERR_OK)
		e = evalset_check(set, &j->spec.recipe, why);
	evalset_free(set);
	return e == ERR_NOTFOUND ? ERR_INVALID : e;
}

static enum err
check_aggregate(const struct aggregate_spec *a, struct why *why)
{
	if (!rule_find(a->rule))
		return err_set(why, ERR_INVALID,
		    "aggregate.rule: \"%s\" is not a rule of this build", a->rule);
	if (!server_opt_find(a->optimizer))
		return err_set(why, ERR_INVALID,
		    "aggregate.server_optimizer: \"%s\" is not an optimizer of this build",
		    a->optimizer);
	return ERR_OK;
}

/* Everything about a new job that can be wrong or slow; on success it is durable. */
static enum err
prepare(struct engine *g, struct engine_job *j, const char *text, size_t len, struct why *why)
{
	struct submission s = {.job = {.document = (char *)(uintptr_t)text,
				   .document_len = len,
				   .created_at = clock_wall()}};
	uint8_t model[32];

	enum err e = check_aggregate(&j->spec.aggregate, why);
	if (e == ERR_OK)
		e = check_evaluation(g->services, j, why);
	if (e == ERR_OK)
		e = engine_first_model(g->services, j, model, why);
	if (e == ERR_OK)
		e = engine_take_table(g->services, j, model, why);
	if (e == ERR_NOTFOUND)
		e = err_set(
		    why, ERR_INVALID, "model.init: there is no such model; upload it first");
	if (e)
		return e;
	memcpy(s.job.id, j->id, 16);
	snprintf(s.job.state, sizeof(s.job.state), "running");
	open_row(&s.first, j->id, 1, model, j->spec.round.goal);
	s.model = (struct store_model){.bytes = j->model_bytes, .created_at = s.job.created_at};
	memcpy(s.model.id, model, 32);
	memcpy(s.model.job, j->id, 16);
	e = store_write(g->services->store, write_submission, &s, why);
	if (e)
		return e;
	j->row = s.first;
	j->created_at = s.job.created_at;
	memcpy(j->model, model, 32);
	snprintf(j->state, sizeof(j->state), "running");
	return ERR_OK;
}

static bool
exists(struct engine *g, const uint8_t id[16], size_t *count)
{
	pthread_mutex_lock(&g->lock);
	bool found = engine_find(g, id) != NULL;
	*count = g->job_count;
	pthread_mutex_unlock(&g->lock);
	return found;
}

enum err
engine_submit(
    struct engine *g, const char *text, size_t len, uint8_t id[16], bool *created, struct why *why)
{
	uint8_t digest[HASH_LEN];
	struct engine_job *j = NULL;
	size_t count;

	hash_sha256(digest, text, len);
	memcpy(id, digest, 16);
	*created = false;
	if (exists(g, id, &count))
		return ERR_OK;
	if (count >= ENGINE_JOBS_MAX)
		return err_set(why, ERR_INVALID, "there are %zu jobs already", count);
	enum err e = engine_job_new(&j, g->services, id, text, len, why);
	if (e == ERR_OK)
		e = prepare(g, j, text, len, why);
	if (e) {
		engine_job_free(j);
		/* Two submissions of one document at once: the other one won. */
		return e == ERR_EXISTS ? ERR_OK : e == ERR_LIMIT ? ERR_INVALID : e;
	}
	log_event(LOG_LEVEL_INFO, "job.submitted", LOG_S("job", j->hex),
	    LOG_S("name", j->spec.name), LOG_U("parameters", j->table.elements));
	pthread_mutex_lock(&g->lock);
	engine_job_link(g, j);
	engine_begin_open(g, j, 0);
	pthread_mutex_unlock(&g->lock);
	server_wake(g->services->server);
	*created = true;
	return ERR_OK;
}

/* --- commands */

static enum err
command_locked(struct engine *g, struct engine_job *j, const char *command, struct why *why)
{
	bool running = strcmp(j->state, "running") == 0, paused = strcmp(j->state, "paused") == 0;

	if (!running && !paused)
		return err_set(why, ERR_STATE, "the job is %s", j->state);
	if (strcmp(command, "stop") == 0) {
		round_step(&j->round, ROUND_STOP, 0, clock_ms());
		engine_set_state(g, j, "stopped", "stopped by an administrator");
	} else if (strcmp(command, "pause") == 0 && running) {
		round_step(&j->round, ROUND_PAUSE, 0, clock_ms());
		engine_set_state(g, j, "paused", "paused by an administrator");
	} else if (strcmp(command, "resume") == 0 && paused) {
		engine_set_state(g, j, "running", "");
		engine_act(g, j, round_step(&j->round, ROUND_RESUME, 0, clock_ms()));
	}
	return ERR_OK;
}

/* The deltas of a stopped job's open round are of no more use. */
struct leftover {
	const struct services *services;
	uint8_t job[16];
	uint64_t round;
	bool stopped;
};

static enum err
remove_delta(void *ctx, const struct store_accept *a)
{
	const struct leftover *l = ctx;
	struct manifest m;

	if (manifest_decode(&m, a->manifest, sizeof(a->manifest), NULL) == ERR_OK)
		spool_remove(l->services->spool, a->task, m.payload_bytes);
	return ERR_OK;
}

/* Queued behind the change of state: when it has run, that change is durable and no delta is on its way. */
static enum err
after_command(struct store_db *db, void *arg, struct why *why)
{
	struct leftover *l = arg;

	(void)why;
	return l->stopped ? store_accept_each(db, l->job, l->round, remove_delta, l) : ERR_OK;
}

enum err
engine_command(struct engine *g, const uint8_t id[16], const char *command, struct why *why)
{
	struct leftover l = {.services = g->services, .stopped = strcmp(command, "stop") == 0};
	enum err e = ERR_NOTFOUND;

	pthread_mutex_lock(&g->lock);
	struct engine_job *j = engine_find(g, id);
	if (j) {
		e = command_locked(g, j, command, why);
		memcpy(l.job, j->id, 16);
		l.round = j->row.round;
	}
	pthread_mutex_unlock(&g->lock);
	if (e)
		return e;
	server_wake(g->services->server);
	return store_write(g->services->store, after_command, &l, why);
}

/* --- after a fold */

static bool
reached_target(const struct stop_spec *stop, const struct store_metric *m)
{
	if (!m->known)
		return false;
	return (stop->has_accuracy && m->accuracy >= stop->accuracy) ||
	    (stop->has_loss && m->loss <= stop->loss);
}

void
engine_plan(struct engine *g, const struct engine_fold *f, struct engine_outcome *o)
{
	const struct stop_spec *stop = &f->spec->stop;

	pthread_mutex_lock(&g->lock);
	struct round r = f->job->round;
	pthread_mutex_unlock(&g->lock);
	bool finite = strcmp(o->row.state, "committed") == 0;
	unsigned act = round_step(&r, finite ? ROUND_FOLDED : ROUND_NOT_FINITE, 0, clock_ms());
	o->begin_next = act & ROUND_DO_BEGIN;
	o->job_state[0] = o->job_reason[0] = '\0';
	if (act & ROUND_DO_PAUSE) {
		snprintf(o->job_state, sizeof(o->job_state), "paused");
		snprintf(o->job_reason, sizeof(o->job_reason), "%d rounds in a row were not finite",
		    ENGINE_FAILURES);
	}
	bool target = reached_target(stop, &o->row.evaluate);
	if (target || (stop->rounds > 0 && o->row.round >= stop->rounds)) {
		o->begin_next = false;
		snprintf(o->job_state, sizeof(o->job_state), "done");
		snprintf(o->job_reason, sizeof(o->job_reason), "%s",
		    target ? "target reached" : "all rounds done");
	}
	if (o->begin_next) {
		open_row(&o->next, f->job_id, o->row.round + 1, o->row.model, f->spec->round.goal);
		memcpy(o->next.optimizer_state, o->row.optimizer_state, 32);
	}
}

static void
log_round(const struct engine_fold *f, const struct engine_outcome *o)
{
	log_event(LOG_LEVEL_INFO, "round.committed", LOG_S("job", f->job_hex),
	    LOG_U("round", o->row.round), LOG_S("state", o->row.state),
	    LOG_U("reports", o->row.reports), LOG_D("loss", o->row.loss),
	    LOG_D("accuracy", o->row.evaluate.known ? o->row.evaluate.accuracy : o->row.accuracy),
	    LOG_U("bytes_up", o->row.bytes_up),
	    LOG_D("seconds", o->row.closed_at - o->row.opened_at));
}

void
engine_folded(struct engine *g, const struct engine_fold *f, const struct engine_outcome *o)
{
	struct engine_job *j = f->job;
	uint64_t now = clock_ms();

	log_round(f, o);
	pthread_mutex_lock(&g->lock);
	memcpy(j->model, o->row.model, 32);
	j->model_bytes = o->model_bytes;
	j->rounds_committed = o->row.round;
	if (o->row.evaluate.known) {
		j->metric = o->row.evaluate;
		j->metric_round =
		    o->row.round - (f->spec->recipe.evaluate_by == EVALUATE_DEVICES ? 1 : 0);
	}
	j->bytes_up = j->bytes_down = 0;
	j->invite_count = j->candidate_count = 0;
	bool finite = strcmp(o->row.state, "committed") == 0;
	unsigned act = round_step(&j->round, finite ? ROUND_FOLDED : ROUND_NOT_FINITE, 0, now);
	bool over = strcmp(j->state, "stopped") == 0;
	if (o->begin_next)
		j->row = o->next;
	if (o->job_state[0] && !over)
		engine_set_state(g, j, o->job_state, o->job_reason);
	if (!o->begin_next)
		round_step(&j->round, ROUND_STOP, 0, now);
	else if (act & ROUND_DO_BEGIN)
		engine_act(g, j, round_step(&j->round, ROUND_BEGIN, 0, now));
	pthread_mutex_unlock(&g->lock);
	server_wake(g->services->server);
}

void
engine_fold_failed(struct engine *g, const struct engine_fold *f, const struct why *why)
{
	log_event(LOG_LEVEL_ERROR, "round.failed", LOG_S("job", f->job_hex),
	    LOG_U("round", f->row.round), LOG_S("why", why->text));
	pthread_mutex_lock(&g->lock);
	if (f->job->round.state == ROUND_FOLDING) {
		/* Back to an open, paused round that has what it had: resuming folds it again. */
		uint32_t accepted = f->job->round.accepted;
		round_step(&f->job->round, ROUND_PAUSE, 0, clock_ms());
		round_step(&f->job->round, ROUND_BEGIN, accepted, clock_ms());
		engine_set_state(g, f->job, "paused", why->text);
	}
	pthread_mutex_unlock(&g->lock);
}
