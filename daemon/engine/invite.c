#include <assert.h>
#include <string.h>

#include "bytes.h"
#include "engine_inside.h"
#include "hash.h"

void
engine_task_id(const struct engine *g, const struct engine_job *j, uint64_t round,
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
invite_at(const struct engine_job *j, const uint8_t device[32])
{
	return bytes_place(j->invites, j->invite_count, sizeof(*j->invites), device, 32);
}

struct invite *
engine_find_invite(const struct engine_job *j, const uint8_t device[32])
{
	size_t at = invite_at(j, device);

	if (at < j->invite_count && memcmp(j->invites[at].device, device, 32) == 0)
		return &j->invites[at];
	return NULL;
}

bool
engine_has_invite(const struct engine_job *j, const uint8_t device[32])
{
	const struct invite *have = engine_find_invite(j, device);

	return have && have->state < INVITE_STOPPED;
}

struct invite *
engine_hold_invite(struct engine_job *j, const uint8_t device[32])
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
engine_awaits(const struct engine_job *j, const uint8_t device[32])
{
	const struct invite *have = engine_find_invite(j, device);

	return have && have->state == INVITE_OUT;
}

enum err
engine_invite(struct engine_job *j, const uint8_t device[32], enum invite_state state)
{
	struct invite *v = engine_hold_invite(j, device);

	if (!v)
		return ERR_NOMEM;
	if (v->round != j->row.round)
		memset(v->task, 0, sizeof(v->task));
	v->round = j->row.round;
	v->state = state;
	return ERR_OK;
}

const uint8_t *
engine_name_task(struct engine *g, const struct engine_job *j, struct invite *v)
{
	static const uint8_t none[sizeof(v->task)];

	assert(v);
	if (memcmp(v->task, none, sizeof(none)) != 0)
		return v->task;
	engine_task_id(g, j, v->round, v->device, v->task);
	g->report.tasks_total++;
	return v->task;
}
