#include "view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "allowance.h"
#include "clock.h"
#include "config.h"
#include "engine.h"
#include "engine_inside.h"
#include "health.h"
#include "log.h"
#include "registry.h"
#include "services.h"
#include "shared.h"

/* Copying, under the lock: no allocation, and nothing that grows. */

static struct open_view
view_open(const struct engine_job *j, uint64_t now_ms)
{
	return (struct open_view){
	    .state = j->work->central.open ? "evaluating" : round_state_name(&j->round),
	    .is_central = j->work->central.open,
	    .evaluates = engine_evaluates(j),
	    .reports = j->round.accepted,
	    .invited = j->round.invited,
	    .goal = j->work->terms.round.goal,
	    .quorum = j->work->terms.round.quorum,
	    .reopened = j->round.reopened,
	    .mode = j->work->spec.round.mode,
	    .early = j->round.next_accepted,
	    .concurrency = j->work->terms.round.concurrency,
	    .max_staleness = j->work->spec.round.max_staleness,
	    .up_bytes = j->bytes_up,
	    .opened_at_seconds = j->row.opened_at,
	    .deadline_seconds = ((double)(j->work->central.open ? j->work->central.until_ms
								: j->round.deadline_ms) -
				    (double)now_ms) /
		1000,
	};
}

struct guard_view
engine_view_guard(const struct engine_job *j)
{
	const struct guard *g = &j->work->schedule.guard;
	const struct guard_point *best = guard_best(g);
	struct guard_view v = {
	    .bad = g->bad, .rollbacks = g->rollbacks, .base_round = j->work->schedule.base_round};

	if (!best)
		return v;
	v.has_best = true;
	v.best_round = best->round;
	v.best_value = best->value;
	memcpy(v.best_model, best->model, sizeof(v.best_model));
	return v;
}

static void
view_job(struct engine *g, const struct engine_job *j, const uint8_t *device, struct job_view *v)
{
	bool is_open = j->work && j->round.state != ROUND_ENDED;

	*v = (struct job_view){
	    .for_device = device != NULL,
	    .state = j->state,
	    .only_evaluates = j->only_evaluates,
	    .priority = j->work ? j->member.priority : j->priority,
	    .share = j->work ? j->member.share : 0,
	    .round = j->row.round,
	    .rounds_committed = j->rounds_committed,
	    .model_bytes = j->model_bytes,
	    .parameters = j->parameters,
	    .metric = j->metric,
	    .metric_round = j->metric_round,
	    .created_at_seconds = j->created_at,
	    .ended_at_seconds = j->ended_at,
	    .is_open = is_open,
	    .is_guarded = j->is_guarded,
	};
	memcpy(v->id, j->id, sizeof(v->id));
	memcpy(v->owner, j->owner, sizeof(v->owner));
	memcpy(v->model, j->model, sizeof(v->model));
	memcpy(v->name, j->name, sizeof(v->name));
	if (!device) {
		registry_owner_name(g->services->registry, j->owner, v->owner_name);
		v->standing = standing_get(g->services->registry, j->place);
	}
	if (!device && j->work) {
		v->stuck = j->work->stuck.said;
		v->stuck_since = j->work->stuck.since;
	}
	memcpy(v->reason, j->reason, sizeof(v->reason));
	if (is_open) {
		v->open = view_open(j, clock_ms());
		const struct config *c = shared_take(g->services->config);
		v->forecast = engine_forecast(c, j);
		shared_give(g->services->config, c);
	}
	v->monitor = j->monitor;
	v->has_best = j->best.count > 0;
	if (v->has_best)
		v->best = j->best.points[0];
	if (v->is_guarded)
		v->guard = j->work ? engine_view_guard(j) : j->guard;
}

/* Has the device work to do for it? */
static bool
concerns(struct engine *g, const struct engine_job *j, const uint8_t device[32])
{
	return !engine_ineligible(g, j, device) || engine_central_of(g, j, device);
}

/* A list for a device has what may still give it work: to say more of the others, each document would have to be read. */
static bool
is_listed(struct engine *g, const struct engine_job *j, const uint8_t *device)
{
	return !j->gone && (!device || (states_job_lives(j->state) && concerns(g, j, device)));
}

/* Was it looked at already? */
static bool
is_before(const struct engine_job *j, const struct engine_slice *s)
{
	if (!s->begun || j->priority < s->priority)
		return false;
	return j->priority > s->priority || j->serial <= s->serial;
}

/* Where the walk goes on. The job that it came to is mostly there still: of many jobs none is passed by again. Lock held. */
static struct engine_job *
behind(struct engine *g, const struct engine_slice *s)
{
	struct engine_job *j = s->begun ? engine_find(g, s->id) : NULL;

	if (j)
		return j->next;
	for (j = g->jobs; j && is_before(j, s);)
		j = j->next;
	return j;
}

bool
engine_jobs(struct engine *g, struct engine_slice *s)
{
	s->count = s->looked = 0;
	lock_take(&g->lock);
	struct engine_job *j = behind(g, s);
	for (; j && s->looked < ENGINE_SLICE; j = j->next) {
		if (is_listed(g, j, s->device))
			view_job(g, j, s->device, &s->jobs[s->count++]);
		s->begun = true;
		s->priority = j->priority;
		s->serial = j->serial;
		memcpy(s->id, j->id, sizeof(s->id));
		s->looked++;
	}
	lock_release(&g->lock);
	return s->looked > 0;
}

bool
engine_job(struct engine *g, const uint8_t id[16], const uint8_t *device, struct job_view *out)
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, id);
	bool is_past = j && device && !j->work;
	bool seen = j && (is_past || !device || concerns(g, j, device));
	if (seen)
		view_job(g, j, device, out);
	out->read_bytes = 0;
	lock_release(&g->lock);
	return is_past ? engine_past_selects(g, id, device, &out->read_bytes) : seen;
}

struct reach {
	struct engine *g;
	const struct engine_job *job; /* what is looked at of it does not change */
	struct engine_reach *out;
};

static enum err
reach_device(void *ctx, const struct registry_view *v)
{
	const struct reach *r = ctx;
	struct standing_offer offer;

	if ((v->row.state != DEVICE_ACTIVE && v->row.state != DEVICE_SUSPENDED) ||
	    strcmp(v->row.role, "device") != 0 || engine_ineligible(r->g, r->job, v->row.id))
		return ERR_OK;
	r->out->suspended += v->row.state == DEVICE_SUSPENDED;
	r->out->devices += v->row.state == DEVICE_ACTIVE;
	const struct standing_ask_for what = {r->out->data.name, r->out->trainer};
	if (!standing_heard(r->g->services->registry, v->row.id, &what, &offer))
		return ERR_OK;
	r->out->heard++;
	r->out->lately += offer.lately;
	r->out->with_data += !r->out->data.name[0] ||
	    (offer.has_data &&
		allowance_examples(&r->job->work->spec.recipe.data, offer.examples, offer.tokens) >=
		    r->out->data.min_examples);
	r->out->with_trainer += offer.has_trainer;
	const struct recipe *recipe = &r->job->work->spec.recipe;
	if (offer.has_data && recipe->data.window == 0 &&
	    allowance_cuts(recipe, r->job->only_evaluates, offer.examples, r->out->most))
		++*(offer.draws ? &r->out->drawn : &r->out->too_many);
	r->out->without_figures += offer.lacks_figures && recipe->evaluate_by == EVALUATE_DEVICES &&
	    figure_set_any(&recipe->figures);
	return ERR_OK;
}

void
engine_reach_of(struct engine *g, const struct engine_job *j, struct engine_reach *out)
{
	struct reach r = {g, j, out};

	*out = (struct engine_reach){.round = j->work->terms.round,
	    .most = j->work->spec.aggregate.max_examples,
	    .data.min_examples = recipe_min_examples(&j->work->spec.recipe, j->only_evaluates)};
	memcpy(out->data.name, j->work->spec.recipe.data.name, sizeof(out->data.name));
	memcpy(out->trainer, j->work->spec.recipe.trainer, sizeof(out->trainer));
	engine_central_count(g, &j->work->spec, &out->evaluators);
	out->warning = recipe_warning(&j->work->spec.recipe);
	(void)!registry_each(g->services->registry, NULL, reach_device, &r);
}

bool
engine_reach(struct engine *g, const uint8_t id[16], struct engine_reach *out)
{
	lock_take(&g->lock);
	struct engine_job *j = engine_find(g, id);
	bool lives = j && states_job_lives(j->state);
	if (lives) {
		j->users++;
		j->readers++;
	}
	lock_release(&g->lock);
	if (!lives)
		return false;
	engine_reach_of(g, j, out);
	lock_take(&g->lock);
	j->users--;
	j->readers--;
	engine_job_shrink(g, j);
	lock_release(&g->lock);
	return true;
}

/* --- who works on a round */

static void
list_works(const struct engine_job *j, uint64_t now_ms, struct engine_hands *out)
{
	for (size_t i = 0; i < j->invite_count && out->working < ENGINE_DEVICES_SHOWN; i++) {
		const struct invite *v = &j->invites[i];
		if (v->state != INVITE_OUT)
			continue;
		memcpy(out->works[out->working].device, v->device, 32);
		out->works[out->working++].seconds =
		    v->given_ms > 0 ? (double)(now_ms - v->given_ms) / 1000 : NAN;
	}
}

static void
list_silent(const struct engine_job *j, struct engine_hands *out)
{
	const struct engine_work *w = j->work;

	for (size_t i = 0; w->silent_round == j->row.round && i < w->silent_count; i++) {
		const struct invite *v = engine_find_invite(j, w->silent[i]);
		if (!v || v->state == INVITE_OUT)
			memcpy(out->silents[out->silent++], w->silent[i], 32);
	}
}

void
engine_hands(struct engine *g, const uint8_t job[16], struct engine_hands *out)
{
	*out = (struct engine_hands){.working = 0};
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, job);
	if (j && j->work && j->round.state != ROUND_ENDED) {
		list_works(j, clock_ms(), out);
		list_silent(j, out);
	}
	lock_release(&g->lock);
}

/* --- whether jobs move */

#define LOOK_MS 1000
/* Who is reached is looked at device by device: so many jobs in a look, and each of those that want it as seldom as that takes. */
#define REACHES 4
#define REACH_MS 3000

/* What one look at all jobs goes by. */
struct stuck_look {
	uint64_t now_ms, reach_ms; /* reaches of before that are too old */
	struct health_report health;
	size_t wanted, left; /* reaches */
	uint64_t tasks; /* that are out */
};

/* Lock held. */
static struct stuck_facts
facts_of(struct engine *g, const struct engine_job *j, const struct stuck_look *l)
{
	const struct engine_work *w = j->work;
	const struct round *r = &j->round;

	return (struct stuck_facts){.state = j->state,
	    .reason = j->reason,
	    .by_hand = engine_paused_by_hand(j),
	    .aside = r->state == ROUND_ENDED || j->lack.kind != LACKS_NOTHING,
	    .unready = l->health.reason,
	    .detail = l->health.detail,
	    .evaluates = engine_evaluates(j),
	    .evaluation = w->unmeasured,
	    .fold_failures = r->state == ROUND_FOLDING ? j->fold_failures : 0,
	    .is_open = r->state == ROUND_GATHER || r->state == ROUND_OPEN,
	    .round = j->row.round,
	    .quorum = r->policy.quorum,
	    .per_device = r->policy.buffered ? w->spec.round.per_device : 1,
	    .accepted = r->accepted + r->committing,
	    .out = round_out(r),
	    .deadline_s = (double)r->policy.deadline_ms / 1000,
	    .reopened = &w->reopened,
	    .standing = standing_get(g->services->registry, j->place),
	    .elsewhere = g->tasks_out > round_out(r) ? g->tasks_out - round_out(r) : 0,
	    .knows_reach = w->reach_ms > 0,
	    .reach = w->reach};
}

/* Lock held, and given away: the job is in use. */
static void
look_whom(struct engine *g, struct engine_job *j, struct stuck_look *l)
{
	struct engine_reach reach;

	l->wanted++;
	if (l->left == 0 || (j->work->reach_ms > l->reach_ms && j->work->reach_ms > 0))
		return;
	l->left--;
	j->readers++;
	lock_release(&g->lock);
	engine_reach_of(g, j, &reach);
	lock_take(&g->lock);
	j->readers--;
	j->work->reach = (struct stuck_reach){reach.devices, reach.lately, reach.suspended};
	j->work->reach_ms = l->now_ms > 0 ? l->now_ms : 1;
}

static void
say_stuck(struct engine *g, struct engine_job *j, enum stuck_kind was)
{
	const struct stuck *s = &j->work->stuck.said;

	if (was)
		g->stuck[was]--;
	if (s->kind)
		g->stuck[s->kind]++;
	j->work->stuck.since = clock_wall();
	if (s->kind)
		log_event(LOG_LEVEL_WARN, "job.stuck", LOG_S("job", j->hex), LOG_S("name", j->name),
		    LOG_S("kind", stuck_name(s->kind)), LOG_S("why", s->reason),
		    LOG_S("advice", stuck_advice(s->kind)));
	else
		log_event(LOG_LEVEL_INFO, "job.moves", LOG_S("job", j->hex), LOG_S("name", j->name),
		    LOG_S("was", stuck_name(was)));
}

/* Lock held, and given away now and then: the job is in use. */
static void
look_stuck(struct engine *g, struct engine_job *j, struct stuck_look *l)
{
	struct stuck_facts f = facts_of(g, j, l);

	if (stuck_wants_reach(&f)) {
		look_whom(g, j, l);
		f = facts_of(g, j, l);
	} else {
		j->work->reach_ms = 0;
	}
	const enum stuck_kind was = j->work->stuck.said.kind;
	if (states_job_lives(j->state) && stuck_watch_step(&j->work->stuck, &f, l->now_ms))
		say_stuck(g, j, was);
}

void
engine_view_reopened(struct engine_job *j)
{
	struct engine_work *w = j->work;
	uint32_t tasks[STUCK_KINDS] = {0};

	w->silent_count = 0;
	w->silent_round = j->row.round;
	for (size_t i = 0; i < j->invite_count; i++) {
		const struct invite *v = &j->invites[i];
		const bool given_back = v->state == INVITE_ABORTED || v->state == INVITE_STOPPED;
		if (given_back)
			tasks[stuck_of_abort(v->gave_up)]++;
		if (v->state != INVITE_OUT)
			continue;
		tasks[STUCK_TOO_SLOW]++;
		if (w->silent_count < ENGINE_DEVICES_SHOWN)
			memcpy(w->silent[w->silent_count++], v->device, 32);
	}
	stuck_reopen(&w->reopened, j->row.round, j->round.accepted, tasks);
}

void
engine_view_unstuck(struct engine *g, struct engine_job *j)
{
	if (!j->work)
		return;
	if (j->work->stuck.said.kind)
		g->stuck[j->work->stuck.said.kind]--;
	j->work->stuck = (struct stuck_watch){.since = 0};
	j->work->reopened = (struct stuck_reopened){.round = 0};
	g->stuck_ms = 0;
}

void
engine_view_stuck(struct engine *g, uint64_t now_ms)
{
	struct stuck_look l = {.now_ms = now_ms, .left = REACHES};
	struct share_walk walk = {.seen = 0};
	struct engine_job *j;

	lock_take(&g->lock);
	if (now_ms < g->stuck_ms) {
		lock_release(&g->lock);
		return;
	}
	uint64_t age = g->reach_wanted * LOOK_MS / REACHES;
	age = age > REACH_MS ? age : REACH_MS;
	l.reach_ms = now_ms > age ? now_ms - age : 0;
	if (health_reason(g->services->health))
		health_report(g->services->health, &l.health);
	g->stuck_ms = now_ms + LOOK_MS;
	/* One that is passed over, or seen twice, is seen again in a second. */
	while ((j = engine_share_next(g, &walk))) {
		if (!j->work)
			continue;
		j->users++;
		l.tasks += j->state == JOB_RUNNING ? round_out(&j->round) : 0;
		look_stuck(g, j, &l);
		j->users--;
		engine_job_shrink(g, j);
	}
	g->reach_wanted = l.wanted;
	g->tasks_out = l.tasks;
	lock_release(&g->lock);
}

void
engine_stuck(struct engine *g, uint64_t out[STUCK_KINDS])
{
	lock_take(&g->lock);
	memcpy(out, g->stuck, sizeof(g->stuck));
	lock_release(&g->lock);
}

void
engine_fill_open(struct engine *g, struct store_round *r)
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, r->job);
	if (j && j->row.round == r->round && j->round.state != ROUND_ENDED) {
		r->reports = j->round.accepted;
		r->invited = j->round.invited;
		r->aborted = j->round.aborted;
		r->reopened = j->round.reopened;
		r->goal = j->round.policy.goal;
		r->bytes_up = j->bytes_up;
		r->bytes_down = j->bytes_down;
	}
	lock_release(&g->lock);
}

/* Jobs that are over and start from or end in one model. */
#define PAST_MAX 16
struct past_jobs {
	uint8_t ids[PAST_MAX][16];
	size_t count;
};

/* Lock held. */
static bool
may_read(
    struct engine *g, const struct engine_job *j, const uint8_t device[32], struct past_jobs *past)
{
	if (j->work)
		return engine_has_invite(j, device) || concerns(g, j, device);
	if (!j->gone && past->count < PAST_MAX)
		memcpy(past->ids[past->count++], j->id, 16);
	return false;
}

bool
engine_may_read(struct engine *g, const uint8_t device[32], const uint8_t model[32], uint64_t *read)
{
	struct past_jobs past = {.count = 0};
	bool may = false;
	unsigned seen = 0;

	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j && !may; j = engine_next(g, j, &seen))
		if (memcmp(j->row.base, model, 32) == 0 || memcmp(j->model, model, 32) == 0 ||
		    engine_late_reads(j, model))
			may = may_read(g, j, device, &past);
		else
			may = engine_central_reads(g, j, device, model);
	lock_release(&g->lock);
	for (size_t i = 0; i < past.count && !may; i++)
		may = engine_past_selects(g, past.ids[i], device, read);
	return may;
}

bool
engine_may_work(struct engine *g, const uint8_t device[32], const uint8_t job[16], uint64_t *read)
{
	lock_take(&g->lock);
	const struct engine_job *j = engine_find(g, job);
	bool is_past = j && !j->work;
	bool may = j && concerns(g, j, device);
	lock_release(&g->lock);
	return is_past ? engine_past_selects(g, job, device, read) : may;
}

void
engine_report(struct engine *g, struct engine_report *out)
{
	lock_take(&g->lock);
	*out = g->report;
	lock_report(&g->lock, &out->lock);
	lock_release(&g->lock);
}

size_t
engine_tails(struct engine *g, const uint8_t job[16], struct tail out[TAILS_OF_JOB])
{
	return tails_of(&g->tails, job, out);
}

void
engine_forget(struct engine *g, const uint8_t device[32])
{
	unsigned seen = 0;

	tails_forget_device(&g->tails, device);
	lock_take(&g->lock);
	for (struct engine_job *j = g->jobs; j; j = engine_next(g, j, &seen)) {
		engine_refusal_forget(j, device);
		if (j->work)
			tempo_forget(&j->work->tempo, device);
	}
	lock_release(&g->lock);
}
