#include "play.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "choice.h"
#include "difference.h"
#include "hex.h"
#include "judge.h"
#include "play_inside.h"

#define PATIENCE 10 /* deadlines without a report that end the play */

/* --- asking */

static bool
is_open(const struct simulate_play *p)
{
	return p->round.state == ROUND_OPEN || p->round.state == ROUND_GRACE;
}

static unsigned
happens(struct simulate_play *p, size_t device, enum roster_event_kind kind)
{
	return simulate_crowd_step(&p->crowd, device, &(struct roster_event){.kind = kind}, p->us);
}

/* Where the machine gathers who asks, one who does begins that; the draw looks at all of them. */
static enum err
ask(struct simulate_play *p, size_t device, struct why *why)
{
	if (p->round.state == ROUND_GATHER && p->round.gather_until_ms > 0)
		return ERR_OK;
	(void)happens(p, device, ROSTER_ASK);
	if (!(simulate_play_step(p, ROUND_ASK, 0) & ROUND_DO_INVITE))
		return ERR_OK;
	(void)happens(p, device, ROSTER_GIVE);
	return simulate_play_give(p, device, why);
}

/* Who has a place asks before others, who share in those that are left. */
static enum err
serve_held(struct simulate_play *p, struct why *why)
{
	enum err e = ERR_OK;
	size_t kept = 0;

	for (size_t i = 0; i < p->held_count; i++) {
		const size_t device = p->held[i];
		if (!simulate_crowd_holds(&p->crowd, device))
			continue;
		if (!e && fleet_is_there(p->setup.fleet, device, p->us) &&
		    (happens(p, device, ROSTER_ASK) & ROSTER_DO_HAND))
			e = simulate_play_give(p, device, why);
		else
			p->held[kept++] = device;
	}
	p->held_count = kept;
	p->ask_held = false;
	return e;
}

/* Some are away: who is there changes with the hour. */
static enum err
wait_an_hour(struct simulate_play *p)
{
	const struct simulate_event next = {
	    .us = (p->us / FLEET_PERIOD_US + 1) * FLEET_PERIOD_US, .kind = SIMULATE_HOUR};

	if (p->hour || !p->setup.fleet->comes_and_goes)
		return ERR_OK;
	p->hour = true;
	return simulate_heap_add(&p->heap, &next);
}

/* Gives tasks to devices that wait, as long as there are places and devices. */
static enum err
serve(struct simulate_play *p, struct why *why)
{
	enum err e = p->ask_held ? serve_held(p, why) : ERR_OK;

	while (!e && p->wake) {
		bool gathers = p->round.state == ROUND_GATHER && p->round.gather_until_ms == 0;
		p->wake = false;
		if (!gathers && !(is_open(p) && round_places(&p->round) > 0))
			break;
		size_t device = simulate_crowd_first(&p->crowd, &p->rng, p->us);
		if (device == SIZE_MAX)
			return wait_an_hour(p);
		e = ask(p, device, why);
		p->wake = true;
	}
	return e;
}

/* --- what arrives */

static void
refuse(struct simulate_play *p, const struct simulate_task *t)
{
	p->line.refused++;
	if (!p->line.word)
		p->line.word = t->work.refused;
}

static enum err
accept(struct simulate_play *p, struct simulate_task *t)
{
	const struct roster_event settled = {
	    .kind = ROSTER_SETTLED, .round = t->work.round, .folded = p->number};
	void *grown = bytes_grow(
	    p->accepted, p->accepted_count, &p->accepted_room, sizeof(struct fleet_task *));

	if (!grown)
		return ERR_NOMEM;
	p->accepted = grown;
	p->accepted[p->accepted_count++] = &t->work;
	t->accepted = true;
	p->progress_us = p->us;
	if (!p->evaluating)
		p->line.bytes_up +=
		    manifest_body_bytes(p->o->setup.train ? t->work.len : p->payload);
	fleet_task_accepted(&p->setup, &t->work);
	enum err e = simulate_crowd_time(
	    &p->crowd, t->work.device, t->work.steps, (double)t->paced_us / 1e6);
	(void)simulate_crowd_step(&p->crowd, t->work.device, &settled, p->us);
	(void)simulate_play_step(p, ROUND_ACCEPTED, 0);
	return e;
}

/* Of a task that was forgotten meanwhile nobody is told. */
static void
give_up(struct simulate_play *p, const struct simulate_task *t)
{
	const struct roster_event e = {
	    .kind = ROSTER_GIVE_UP, .passes = abort_reason_passes(t->work.abort)};
	bool blames = p->job->guard.on && p->job->recipe.evaluate_by == EVALUATE_DEVICES &&
	    t->work.abort == ABORT_NOT_FINITE && !t->fails && !p->evaluating &&
	    t->work.round == p->number;

	if (!p->out->first.text[0] && t->work.why.text[0])
		p->out->first = t->work.why;
	if (simulate_crowd_place(&p->crowd, t->work.device).round == t->work.round &&
	    (simulate_crowd_step(&p->crowd, t->work.device, &e, p->us) & ROSTER_DO_GAVE_UP))
		(void)simulate_play_step(p, ROUND_GAVE_UP, blames);
}

/* May a delta of this task go into the open round? One of an earlier opening may. */
static bool
is_wanted(const struct simulate_play *p, const struct simulate_task *t)
{
	const struct roster_place place = simulate_crowd_place(&p->crowd, t->work.device);
	const struct roster_head head = {.round = t->work.round,
	    .base = t->work.base->id,
	    .open_base = p->coordinator.base->base.id,
	    .is_its_task = true,
	    .evaluates = t->work.kind == TASK_EVALUATE};

	return roster_judge(&place, &p->crowd.roster, &head).refusal == ROSTER_ACCEPTS;
}

/* A device does one task after the other, and no round is closed for longer than a moment: none is for the next one. */
static bool
take(struct simulate_play *p, const struct simulate_task *t)
{
	const struct roster_event e = {.kind = ROSTER_TAKE, .round = t->work.round};
	const unsigned actions = simulate_crowd_step(&p->crowd, t->work.device, &e, p->us);
	const unsigned how = actions & ROSTER_DO_FRESH ? ROUND_TAKE_FRESH : 0;

	assert(!(actions & ROSTER_DO_NEXT));
	if (!(actions & ROSTER_DO_TAKE))
		return false;
	const unsigned taken = simulate_play_step(p, ROUND_TAKE, how);
	assert(taken & ROUND_DO_TAKE);
	(void)taken;
	return true;
}

static enum err
deliver(struct simulate_play *p, struct simulate_task *t, struct why *why)
{
	if (!is_wanted(p, t)) {
		p->line.late++;
		return ERR_OK;
	}
	enum err e = simulate_play_compute(p, t, why);
	if (e)
		return e;
	if (t->work.outcome == FLEET_GAVE_UP)
		give_up(p, t);
	else if (t->work.outcome == FLEET_REFUSED)
		refuse(p, t);
	else if (take(p, t))
		return accept(p, t);
	else
		p->line.late++;
	return ERR_OK;
}

/* Its delta was not taken, and the task is out all the same. A device whose delta came too late asks at once, and has a newer task in that
 * place; one whose delta was refused lets the job rest. */
static enum err
keep_place(struct simulate_play *p, size_t device, uint64_t given_us, bool refused, struct why *why)
{
	if (!refused && (happens(p, device, ROSTER_ASK) & ROSTER_DO_HAND))
		return simulate_play_give(p, device, why);
	void *grown = bytes_grow(p->held, p->held_count, &p->held_room, sizeof(*p->held));
	if (!grown)
		return ERR_NOMEM;
	p->held = grown;
	p->held[p->held_count++] = device;
	return simulate_play_watch(p, device, given_us);
}

static enum err
arrive(struct simulate_play *p, const struct simulate_event *event, struct why *why)
{
	struct simulate_task *t = event->subject;
	size_t device = event->device;
	enum err e = ERR_OK;

	simulate_crowd_wait(&p->crowd, device);
	p->line.device_us += t->worked_us;
	if (event->kind == SIMULATE_GIVES_UP)
		give_up(p, t);
	else
		e = deliver(p, t, why);
	const bool refused = t->work.outcome == FLEET_REFUSED, accepted = t->accepted;
	const uint64_t given_us = t->given_us;
	if (!accepted) {
		p->line.wasted_us += t->worked_us;
		simulate_play_drop(p, t);
	}
	p->wake = true;
	return !e && !accepted && simulate_crowd_holds(&p->crowd, device)
	    ? keep_place(p, device, given_us, refused, why)
	    : e;
}

static void
expire(struct simulate_play *p, size_t device)
{
	if (!(happens(p, device, ROSTER_EXPIRE) & ROSTER_DO_FREE))
		return;
	(void)simulate_play_step(p, ROUND_EXPIRED, 0);
	p->wake = true;
}

/* --- the loop */

static enum err
happen(struct simulate_play *p, struct why *why)
{
	struct simulate_event event;
	uint64_t next = round_next_ms(&p->round);
	uint64_t tick = next < UINT64_MAX / 1000 ? next * 1000 : UINT64_MAX;

	if (simulate_heap_next(&p->heap) > tick || p->heap.count == 0) {
		p->us = tick > p->us ? tick : p->us;
		(void)simulate_play_step(p, ROUND_TICK, 0);
		return ERR_OK;
	}
	(void)simulate_heap_take(&p->heap, &event);
	p->us = event.us;
	if (event.kind == SIMULATE_DELIVERS || event.kind == SIMULATE_GIVES_UP)
		return arrive(p, &event, why);
	if (event.kind == SIMULATE_EXPIRES) {
		expire(p, event.device);
		return ERR_OK;
	}
	p->hour = false;
	p->wake = true;
	return ERR_OK;
}

/* Why a round got too few reports: what the first device that gave up said, or that some are away, or were refused. */
static struct why
lack(const struct simulate_play *p)
{
	const struct fleet *f = p->setup.fleet;
	struct why why = p->out->first;
	char gone[96] = "", refused[96] = "";
	size_t away = 0;

	for (size_t i = 0; f->comes_and_goes && i < f->count; i++)
		away += !fleet_is_there(f, i, p->us);
	if (away > 0)
		snprintf(gone, sizeof(gone),
		    "%zu of %zu devices are away in this hour, as their \"available\" was drawn",
		    away, f->count);
	if (p->line.refused > 0)
		snprintf(refused, sizeof(refused),
		    "%" PRIu64 " deltas were refused, the first as %s", p->line.refused,
		    p->line.word);
	if (!why.text[0] && (gone[0] || refused[0]))
		err_set(&why, ERR_OK, "%s%s%s", gone, gone[0] && refused[0] ? "; " : "", refused);
	return why;
}

static void
look(struct simulate_play *p)
{
	uint64_t patience = p->round.policy.deadline_ms * 1000 * PATIENCE;

	if (p->o->stop && p->o->stop(p->o->context)) {
		simulate_play_end(p, SIMULATE_BROKEN_OFF, "broken off");
		return;
	}
	if (p->us <= p->progress_us || p->us - p->progress_us <= patience)
		return;
	const struct why why = lack(p);
	simulate_play_abandon(p);
	simulate_play_end(p, SIMULATE_STUCK, "round %llu never got its %u reports%s%s",
	    (unsigned long long)p->number, p->round.policy.quorum, why.text[0] ? ": " : "",
	    why.text);
}

static enum err
run(struct simulate_play *p, struct why *why)
{
	enum err e = ERR_OK;

	simulate_play_begin(p);
	while (!e && !p->ended) {
		e = serve(p, why);
		if (!e && !p->pending)
			e = happen(p, why);
		if (!e)
			e = simulate_play_settle(p, why);
		if (!e && !p->ended)
			look(p);
	}
	return e;
}

/* --- before and after */

static bool
names_device(const struct select_spec *s, const struct fleet *f, size_t device)
{
	const struct fleet_profile *p = fleet_profile_of(f, device);
	char hex[65];

	hex_encode(hex, f->devices[device].id, 32);
	return job_names_device(s, hex, p->count == 1 ? p->name : "");
}

/* May the job's tasks go to it at all? */
static enum err
admits(const struct simulate_play *p, size_t device, bool *out, struct why *why)
{
	const struct select_spec *s = &p->job->select;
	uint64_t least = recipe_min_examples(&p->job->recipe, p->evaluating), examples = 0;
	double place = choice_percent(p->coordinator.job, p->setup.fleet->devices[device].id);
	enum err e = ERR_OK;

	const bool evaluates = p->job->evaluators.device_count > 0 &&
	    names_device(&p->job->evaluators, p->setup.fleet, device);

	*out = place >= s->percent[0] && place < s->percent[1] && !evaluates &&
	    names_device(s, p->setup.fleet, device);
	if (*out && least > 1) {
		e = simulate_play_examples(p, device, &examples, why);
		*out = examples >= least;
	}
	return e;
}

static enum err
fill_crowd(struct simulate_play *p, struct why *why)
{
	struct roster_round roster = roster_round_of(p->job, p->job->round.task_timeout_s);
	bool in = false;

	roster.machine = &p->round;
	roster.lives = true;
	roster.points = p->points;
	enum err e = simulate_crowd_init(
	    &p->crowd, p->setup.fleet, &roster, p->job->recipe.local.unit == LOCAL_SIZED);
	for (size_t i = 0; !e && i < p->setup.fleet->count; i++) {
		e = admits(p, i, &in, why);
		if (!e && in)
			simulate_crowd_wait(&p->crowd, i);
	}
	return e;
}

/* What is repeated was possible: a goal may have been lowered meanwhile. */
static enum err
check_crowd(const struct simulate_play *p, struct why *why)
{
	if (p->crowd.waiting_count >= job_round_devices(&p->job->round))
		return ERR_OK;
	return err_set(why, ERR_INVALID,
	    "the job needs %u reports a round, and %zu devices may have its tasks",
	    p->job->round.quorum, p->crowd.waiting_count);
}

static enum err
open_setup(struct simulate_play *p, struct why *why)
{
	const struct simulate_setup *s = &p->o->setup;
	const struct fleet_deal_options deal = {
	    p->o->data, &p->job->recipe, p->job->seed, p->o->fleet};

	p->setup.job = p->job;
	p->setup.settings = s->settings;
	p->setup.stop = p->o->stop;
	p->setup.context = p->o->context;
	p->setup.table = &p->coordinator.table;
	memcpy(p->setup.job_hex, p->coordinator.job_hex, sizeof(p->setup.job_hex));
	p->setup.memories = fleet_memories_new(p->o->fleet->count);
	if (!p->setup.memories)
		return ERR_NOMEM;
	return p->o->data ? fleet_deal_open(&p->setup.deal, &deal, why) : ERR_OK;
}

static void
note_sizes(struct simulate_play *p)
{
	const struct codec *down = codec_find_name(p->job->download.codec);
	uint64_t n = p->coordinator.table.elements;

	p->payload = fleet_task_payload(p->job, n);
	p->step_bytes = down ? DIFFERENCE_HEAD + difference_payload_bytes(down, n) : 0;
	for (size_t i = 0; i < p->o->fleet->profiles.count; i++)
		p->agreed |= fleet_attack_agreed(p->o->fleet->profiles.items[i].attack);
}

enum err
simulate_play_open(struct simulate_play *p, struct why *why)
{
	struct simulate_setup setup = p->o->setup;
	const struct trainer *trainer = trainer_find(setup.settings, &p->job->recipe);
	bool programs = setup.train && trainer && trainer->run == trainer_external_run;
	unsigned slots = programs ? p->o->jobs : setup.threads;
	enum err e = fleet_slots_new(&p->setup.slots, setup.settings, slots, programs, why);

	if (e)
		return e;
	p->setup.fleet = p->o->fleet;
	p->setup.programs = programs;
	setup.scratch = fleet_slots_scratch(p->setup.slots);
	e = simulate_coordinator_init(&p->coordinator, &setup, why);
	if (!e)
		e = open_setup(p, why);
	if (e)
		return e;
	note_sizes(p);
	if (p->job->round.max_staleness > 0 || p->job->round.mode == ROUND_MODE_BUFFERED)
		p->points = calloc((size_t)p->job->round.max_staleness + 1, sizeof(*p->points));
	prng_seed2(&p->rng, p->o->seed, p->o->fleet->count);
	return fill_crowd(p, why);
}

/* What devices still do when the job ends is for nothing. */
enum err
simulate_play_books(struct simulate_play *p, struct why *why)
{
	struct simulate_result *r = p->out;

	for (size_t i = 0; i < p->task_count; i++) {
		const struct simulate_task *t = p->tasks[i];
		uint64_t worked = p->us - t->given_us;
		worked = worked < t->worked_us ? worked : t->worked_us;
		r->device_us += t->accepted ? 0 : worked;
		r->wasted_us += t->accepted ? 0 : worked;
	}
	r->us = p->us;
	memcpy(r->model, p->coordinator.base->base.id, 32);
	r->folded = calloc(p->o->fleet->count, sizeof(*r->folded));
	if (!r->folded)
		return err_set(why, ERR_NOMEM, "no memory for %zu devices", p->o->fleet->count);
	for (size_t i = 0; i < p->o->fleet->count; i++)
		r->folded[i] = p->crowd.people[i].folded;
	return ERR_OK;
}

void
simulate_play_close(struct simulate_play *p)
{
	while (p->task_count > 0)
		simulate_play_drop(p, p->tasks[p->task_count - 1]);
	free(p->tasks);
	free(p->accepted);
	free(p->points);
	free(p->held);
	simulate_heap_deinit(&p->heap);
	simulate_crowd_deinit(&p->crowd);
	fleet_memories_free(p->setup.memories, p->o->fleet->count);
	fleet_deal_close(p->setup.deal);
	simulate_coordinator_deinit(&p->coordinator);
	fleet_slots_free(p->setup.slots);
}

enum err
simulate_play(struct simulate_result *out, const struct simulate_options *options, const char *save,
    struct why *why)
{
	struct simulate_play p = {.o = options, .job = options->setup.job, .out = out};

	simulate_result_init(out);
	enum err e = simulate_play_open(&p, why);
	if (!e)
		e = check_crowd(&p, why);
	if (!e)
		e = run(&p, why);
	if (!e)
		e = simulate_play_books(&p, why);
	if (!e && save)
		e = simulate_coordinator_save(&p.coordinator, save, why);
	simulate_play_close(&p);
	return e;
}

void
simulate_result_init(struct simulate_result *r)
{
	*r = (struct simulate_result){
	    .best_accuracy = NAN, .best_loss = NAN, .last_accuracy = NAN, .last_loss = NAN};
}

void
simulate_result_deinit(struct simulate_result *r)
{
	free(r->staleness);
	free(r->folded);
	*r = (struct simulate_result){.staleness = NULL};
}
