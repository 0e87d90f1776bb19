#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "hash.h"
#include "job_struct.h"

void
roster_task_id(const struct engine *g, const struct job *j, uint64_t round,
    const uint8_t device[32], uint8_t out[16])
{
	uint8_t text[56], mac[HASH_LEN];
	struct bytes_writer w = bytes_writer(text, sizeof(text));

	bytes_put(&w, j->id, 16);
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
	if (v->round != j->row.round) {
		memset(v->task, 0, sizeof(v->task));
		v->stored = false;
	}
	v->round = j->row.round;
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

/* --- who is drawn, and who evaluates */

void
roster_note(struct job *j, const uint8_t device[32])
{
	struct choice_ticket t;

	choice_ticket(&t, device, j->work->spec.seed, j->row.round);
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
	uint32_t places = round_places(&j->round), drawn = 0;

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
	return j->evaluator_count >= j->work->terms.round.quorum || !j->asked || j->loaded > 0;
}
