#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "hash.h"
#include "hex.h"
#include "jobs_inside.h"
#include "messages.h"
#include "store.h"

void
roster_task_id(const struct engine *g, const struct job *j, uint64_t round,
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

static size_t
invite_at(const struct job *j, const uint8_t device[32])
{
	return bytes_place(j->invites, j->invite_count, sizeof(*j->invites), device, 32);
}

struct invite *
roster_find(const struct job *j, const uint8_t device[32])
{
	size_t at = invite_at(j, device);

	if (at < j->invite_count && memcmp(j->invites[at].device, device, 32) == 0)
		return &j->invites[at];
	return NULL;
}

bool
roster_has(const struct job *j, const uint8_t device[32])
{
	const struct invite *have = roster_find(j, device);

	return have && have->state < INVITE_STOPPED;
}

struct invite *
roster_hold(struct job *j, const uint8_t device[32])
{
	size_t at = invite_at(j, device);

	if (at < j->invite_count && memcmp(j->invites[at].device, device, 32) == 0)
		return &j->invites[at];
	struct invite *items =
	    bytes_grow(j->invites, j->invite_count, &j->invite_room, sizeof(*items));
	if (!items)
		return NULL;
	j->invites = items;
	memmove(&j->invites[at + 1], &j->invites[at], (j->invite_count - at) * sizeof(*j->invites));
	j->invites[at] = (struct invite){.state = INVITE_NONE};
	memcpy(j->invites[at].device, device, 32);
	j->invite_count++;
	return &j->invites[at];
}

bool
roster_awaits(const struct job *j, const uint8_t device[32])
{
	const struct invite *have = roster_find(j, device);

	return have && have->state == INVITE_OUT;
}

enum err
roster_invite(struct job *j, const uint8_t device[32], enum invite_state state)
{
	struct invite *v = roster_hold(j, device);

	if (!v)
		return ERR_NOMEM;
	if (v->round != j->facts.row.round) {
		memset(v->task, 0, sizeof(v->task));
		v->stored = false;
	}
	v->round = j->facts.row.round;
	v->state = state;
	return ERR_OK;
}

const uint8_t *
roster_name_task(struct engine *g, const struct job *j, struct invite *v)
{
	static const uint8_t none[sizeof(v->task)];

	assert(v);
	if (memcmp(v->task, none, sizeof(none)) != 0)
		return v->task;
	roster_task_id(g, j, v->round, v->device, v->task);
	g->report.tasks_total++;
	return v->task;
}

struct invite *
roster_items(const struct job *j, size_t *count)
{
	*count = j->invite_count;
	return j->invites;
}

void
roster_clear(struct job *j)
{
	j->invite_count = j->candidate_count = 0;
}

void
roster_keep_accepted(struct job *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->invite_count; i++)
		if (j->invites[i].state == INVITE_ACCEPTED)
			j->invites[kept++] = j->invites[i];
	j->invite_count = kept;
	j->candidate_count = 0;
}

void
roster_note_usable(struct job *j)
{
	j->asked = true;
}

/* --- who is drawn, and who evaluates */

void
roster_note(struct job *j, const uint8_t device[32])
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
roster_forget(struct job *j, const uint8_t device[32])
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
		if (!roster_has(j, j->candidates[i].device))
			j->candidates[kept++] = j->candidates[i];
	return kept;
}

static int
compare_devices(const void *a, const void *b)
{
	const struct choice_ticket *s = a, *t = b;

	return memcmp(s->device, t->device, sizeof(s->device));
}

uint32_t
roster_draw(struct job *j)
{
	size_t count = drop_invited(j);
	uint32_t places = round_places(&j->facts.round), drawn = 0;

	if (count > places)
		count = places;
	/* In the order of invitations, so that none has to make way for another: the lock is held. (Without memory for one its
	 * place stays empty.) */
	if (count > 0)
		qsort(j->candidates, count, sizeof(*j->candidates), compare_devices);
	for (size_t i = 0; i < count; i++)
		drawn += roster_invite(j, j->candidates[i].device, INVITE_OUT) == ERR_OK;
	j->candidate_count = 0;
	return drawn;
}

bool
roster_wants_evaluator(const struct job *j)
{
	return j->work->spec.recipe.evaluate_by == EVALUATE_DEVICES &&
	    j->evaluator_count < j->work->terms.round.quorum;
}

void
roster_note_evaluator(struct job *j, const uint8_t device[32])
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
roster_evaluates(const struct job *j)
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
		if (j->invites[i].state == INVITE_ACCEPTED)
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
		if (v->state >= INVITE_ABORTED || find_member(j, v->device))
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
	for (size_t i = 0; i < j->invite_count; i++)
		if (j->invites[i].state == INVITE_ACCEPTED &&
		    memcmp(j->invites[i].device, device, 32) == 0)
			return true;
	return find_member(j, device) != NULL;
}
