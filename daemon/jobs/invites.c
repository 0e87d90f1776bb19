#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "clock.h"
#include "hash.h"
#include "hex.h"
#include "jobs_inside.h"
#include "messages.h"
#include "rng.h"
#include "store.h"

void
invites_task_id(const struct engine *g, const struct job *j, uint64_t round,
    const uint8_t device[32], uint8_t out[16])
{
	uint8_t text[56], mac[HASH_LEN];
	struct bytes_writer w = bytes_writer(text, sizeof(text));

	bytes_put(&w, j->facts.id, 16);
	bytes_put_u64(&w, round);
	bytes_put(&w, device, 32);
	hash_hmac(mac, g->task_key, sizeof(g->task_key), text, sizeof(text));
	memcpy(out, mac, 16);
}

/* --- invitations: an array, and a table of their places with open addressing */

#define SLOT_BITS_LEAST 5

static size_t
slot_count(const struct job *j)
{
	return j->slots ? (size_t)1 << j->slot_bits : 0;
}

/* Ids are hashes of keys, among which a device may have chosen: a factor that nobody knows spreads them (multiply-shift; Dietzfelbinger and
 * others, A reliable randomized algorithm for the closest-pair problem, 1997). */
static size_t
first_slot(const struct job *j, const uint8_t device[32])
{
	uint64_t key;

	memcpy(&key, device, sizeof(key));
	return (size_t)((key * j->slot_factor) >> (64 - j->slot_bits));
}

/* Where the device is, or would be. */
static size_t
slot_of(const struct job *j, const uint8_t device[32])
{
	size_t at = first_slot(j, device);

	while (j->slots[at] > 0 && memcmp(j->invites[j->slots[at] - 1].device, device, 32) != 0)
		at = (at + 1) & (slot_count(j) - 1);
	return at;
}

static void
fill_slots(struct job *j)
{
	memset(j->slots, 0, slot_count(j) * sizeof(*j->slots));
	for (size_t i = 0; i < j->invite_count; i++)
		j->slots[slot_of(j, j->invites[i].device)] = (uint32_t)i + 1;
}

/* For one more. */
static enum err
grow_slots(struct job *j)
{
	if (2 * (j->invite_count + 1) < slot_count(j))
		return ERR_OK;
	if (!j->slots && rng_bytes(&j->slot_factor, sizeof(j->slot_factor)))
		return ERR_IO;
	j->slot_factor |= 1;
	const unsigned bits = j->slots ? j->slot_bits + 1 : SLOT_BITS_LEAST;
	uint32_t *slots = realloc(j->slots, sizeof(*slots) << bits);
	if (!slots)
		return ERR_NOMEM;
	j->slots = slots;
	j->slot_bits = bits;
	fill_slots(j);
	return ERR_OK;
}

struct invite *
invites_find(const struct job *j, const uint8_t device[32])
{
	const uint32_t at = j->slots ? j->slots[slot_of(j, device)] : 0;

	return at > 0 ? &j->invites[at - 1] : NULL;
}

struct invite *
invites_hold(struct job *j, const uint8_t device[32])
{
	struct invite *v = invites_find(j, device);

	if (v)
		return v;
	struct invite *items =
	    bytes_grow(j->invites, j->invite_count, &j->invite_room, sizeof(*items));
	if (!items)
		return NULL;
	j->invites = items;
	if (grow_slots(j))
		return NULL;
	v = &items[j->invite_count++];
	*v = (struct invite){.stored = false};
	memcpy(v->device, device, 32);
	j->slots[slot_of(j, device)] = (uint32_t)j->invite_count;
	return v;
}

struct roster_round
invites_round(const struct job *j)
{
	const struct job_work *w = j->work;
	struct roster_round r = {.number = 0};

	if (w)
		r = roster_round_of(&w->spec, w->terms.round.task_timeout_s);
	r.machine = &j->facts.round;
	r.number = j->facts.row.round;
	r.lives = states_job_lives(j->facts.state);
	r.evaluates = job_evaluates(j);
	if (!w)
		return r;
	r.points = j->points;
	r.point_count = j->point_count;
	r.rest = j->rest;
	return r;
}

unsigned
invites_happens(struct job *j, struct invite *v, const struct roster_event *e)
{
	const struct roster_round round = invites_round(j);
	const unsigned actions = roster_step(&v->place, &round, e, clock_ms());

	if (actions & ROSTER_DO_RENAME) {
		memset(v->task, 0, sizeof(v->task));
		v->stored = false;
		v->given_ms = v->began_ms = 0;
	}
	return actions;
}

void
invites_happens_all(struct job *j, enum roster_event_kind kind)
{
	const struct roster_event e = {.kind = kind};
	const struct roster_round round = invites_round(j);
	const uint64_t now = clock_ms();
	size_t kept = 0;
	uint64_t heard = 0;

	for (size_t i = 0; i < j->invite_count; i++) {
		struct invite *v = &j->invites[i];
		const unsigned actions = roster_step(&v->place, &round, &e, now);
		heard += (actions & ROSTER_DO_HEARD) != 0;
		if (!(actions & ROSTER_DO_FORGET))
			j->invites[kept++] = *v;
	}
	j->invite_count = kept;
	j->candidate_count = 0;
	if (j->slots)
		fill_slots(j);
	if (kind == ROSTER_TURN && roster_rests(&j->facts.round))
		j->rest = late_rest(heard, j->facts.round.policy.goal);
}

size_t
invites_first_out(const struct job *j, const struct invite **out, size_t most)
{
	size_t count = 0;

	for (size_t i = 0; i < j->invite_count; i++) {
		const struct invite *v = &j->invites[i];
		size_t at = count;
		if (v->place.state != ROSTER_OUT)
			continue;
		while (at > 0 && memcmp(v->device, out[at - 1]->device, 32) < 0)
			at--;
		if (at == most)
			continue;
		count += count < most;
		for (size_t k = count - 1; k > at; k--)
			out[k] = out[k - 1];
		out[at] = v;
	}
	return count;
}

bool
invites_has(const struct job *j, const uint8_t device[32])
{
	const struct invite *have = invites_find(j, device);

	return have && roster_is_invited(&have->place);
}

bool
invites_awaits(const struct job *j, const uint8_t device[32])
{
	const struct invite *have = invites_find(j, device);

	return have && have->place.state == ROSTER_OUT;
}

const uint8_t *
invites_name_task(struct engine *g, const struct job *j, struct invite *v)
{
	static const uint8_t none[sizeof(v->task)];

	assert(v);
	if (memcmp(v->task, none, sizeof(none)) != 0)
		return v->task;
	invites_task_id(g, j, v->place.round, v->device, v->task);
	g->report.tasks_total++;
	return v->task;
}

struct invite *
invites_items(const struct job *j, size_t *count)
{
	*count = j->invite_count;
	return j->invites;
}

void
invites_clear(struct job *j)
{
	j->invite_count = j->candidate_count = 0;
	if (j->slots)
		fill_slots(j);
}

void
invites_note_usable(struct job *j)
{
	j->asked = true;
}

/* --- who is drawn, and who evaluates */

void
invites_note(struct job *j, const uint8_t device[32])
{
	struct choice_ticket t;

	choice_ticket(&t, device, j->work->spec.seed, j->facts.row.round);
	size_t at = bytes_place(j->candidates, j->candidate_count, sizeof(t), t.number, 32);
	if (at < j->candidate_count && memcmp(j->candidates[at].device, device, 32) == 0)
		return;
	struct choice_ticket *items =
	    bytes_grow(j->candidates, j->candidate_count, &j->candidate_room, sizeof(t));
	if (!items)
		return;
	j->candidates = items;
	memmove(&items[at + 1], &items[at], (j->candidate_count - at) * sizeof(t));
	items[at] = t;
	j->candidate_count++;
}

void
invites_forget(struct job *j, const uint8_t device[32])
{
	size_t kept = 0;

	for (size_t i = 0; i < j->candidate_count; i++)
		if (memcmp(j->candidates[i].device, device, 32) != 0)
			j->candidates[kept++] = j->candidates[i];
	j->candidate_count = kept;
	size_t at = bytes_place(j->evaluators, j->evaluator_count, 32, device, 32);
	if (at < j->evaluator_count && memcmp(j->evaluators[at], device, 32) == 0)
		memmove(
		    j->evaluators + at, j->evaluators + at + 1, (--j->evaluator_count - at) * 32);
}

/* A delta of an earlier opening may have come since they asked. */
static size_t
drop_invited(struct job *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->candidate_count; i++)
		if (!invites_has(j, j->candidates[i].device))
			j->candidates[kept++] = j->candidates[i];
	return kept;
}

uint32_t
invites_draw(struct job *j)
{
	size_t count = drop_invited(j);
	uint32_t places = round_places(&j->facts.round), drawn = 0;

	if (count > places)
		count = places;
	/* Without memory for one its place stays empty. */
	for (size_t i = 0; i < count; i++) {
		struct invite *v = invites_hold(j, j->candidates[i].device);
		if (v)
			(void)invites_happens(j, v, &(struct roster_event){.kind = ROSTER_GIVE});
		drawn += v != NULL;
	}
	j->candidate_count = 0;
	return drawn;
}

bool
invites_wants_evaluator(const struct job *j)
{
	return j->work->spec.recipe.evaluate_by == EVALUATE_DEVICES &&
	    j->evaluator_count < j->work->terms.round.quorum;
}

void
invites_note_evaluator(struct job *j, const uint8_t device[32])
{
	size_t at = bytes_place(j->evaluators, j->evaluator_count, 32, device, 32);
	if (at < j->evaluator_count && memcmp(j->evaluators[at], device, 32) == 0)
		return;
	void *all = bytes_grow(j->evaluators, j->evaluator_count, &j->evaluator_room, 32);
	if (!all)
		return;
	j->evaluators = all;
	memmove(j->evaluators + at + 1, j->evaluators + at, (j->evaluator_count++ - at) * 32);
	memcpy(j->evaluators[at], device, 32);
}

/* Of those who reported before a start nothing is known: they may. */
bool
invites_evaluates(const struct job *j)
{
	return j->evaluator_count >= j->work->terms.round.quorum || !j->asked || j->pace.loaded > 0;
}

/* --- control variates: the devices that count */

enum err
jobs_variate_init(struct job *j)
{
	if (j->work->spec.aggregate.variates == 0)
		return ERR_OK;
	j->members = calloc(j->work->spec.aggregate.variates, sizeof(*j->members));
	return j->members ? ERR_OK : ERR_NOMEM;
}

/* Where the device is, or would be. */
static size_t
member_at(const struct job *j, const uint8_t device[32])
{
	return bytes_place(j->members, j->member_count, sizeof(*j->members), device, 32);
}

static struct engine_member *
find_member(const struct job *j, const uint8_t device[32])
{
	size_t at = member_at(j, device);

	return at < j->member_count && memcmp(j->members[at].device, device, 32) == 0
	    ? &j->members[at]
	    : NULL;
}

/* ERR_CORRUPT if the job has all its devices already. */
static enum err
count_member(void *job, const uint8_t device[32], uint64_t round)
{
	struct job *j = job;
	struct engine_member *have = find_member(j, device);

	if (have) {
		have->round = round;
		return ERR_OK;
	}
	if (j->member_count == j->work->spec.aggregate.variates)
		return ERR_CORRUPT;
	size_t at = member_at(j, device);
	memmove(&j->members[at + 1], &j->members[at], (j->member_count - at) * sizeof(*j->members));
	memcpy(j->members[at].device, device, 32);
	j->members[at].round = round;
	j->member_count++;
	return ERR_OK;
}

enum err
jobs_variate_load(struct store_db *db, struct job *j)
{
	if (!j->members)
		return ERR_OK;
	return store_accept_last(db, j->facts.id, count_member, j);
}

void
jobs_variate_count(struct job *j, uint64_t round)
{
	for (size_t i = 0; j->members && i < j->invite_count; i++)
		if (j->invites[i].place.state == ROSTER_ACCEPTED)
			(void)!count_member(j, j->invites[i].device, round);
}

bool
jobs_variate_full(const struct job *j, const uint8_t device[32])
{
	size_t used = j->member_count;

	if (!j->members || find_member(j, device))
		return false;
	/* With the lock held: what it costs to ask again and again. */
	if (used >= j->work->spec.aggregate.variates)
		return true;
	for (size_t i = 0; i < j->invite_count; i++) {
		const struct invite *v = &j->invites[i];
		if (!roster_is_invited(&v->place) || v->place.state == ROSTER_ABORTED ||
		    find_member(j, v->device))
			continue;
		if (memcmp(v->device, device, 32) == 0)
			return false;
		used++;
	}
	for (size_t i = 0; i < j->candidate_count; i++) {
		if (memcmp(j->candidates[i].device, device, 32) == 0)
			return false;
		used += find_member(j, j->candidates[i].device) == NULL;
	}
	return used >= j->work->spec.aggregate.variates;
}

enum problem_type
jobs_variate_claim(const struct job *j, const uint8_t device[32], struct why *why)
{
	if (!jobs_variate_full(j, device))
		return PROBLEM_NONE;
	err_set(why, ERR_STATE, "the job has all its devices");
	return PROBLEM_WRONG_STATE;
}

void
jobs_variate_fill(const struct job *j, const uint8_t device[32], struct task *out)
{
	static const uint8_t none[32];
	const struct engine_member *have = j->members ? find_member(j, device) : NULL;

	if (!j->members)
		return;
	out->counted = have ? have->round : 0;
	if (memcmp(j->facts.row.optimizer_state, none, 32) == 0)
		return;
	hex_encode(out->state, j->facts.row.optimizer_state, 32);
	out->state_bytes = sizes_state(j);
}

bool
jobs_variate_counts(const struct job *j, const uint8_t device[32])
{
	if (!j->members || !states_job_lives(j->facts.state))
		return false;
	/* Of a round that is being written as well. */
	const struct invite *have = invites_find(j, device);
	return (have && have->place.state == ROSTER_ACCEPTED) || find_member(j, device);
}
