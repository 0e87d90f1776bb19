#include <string.h>

#include "bytes.h"
#include "clock.h"
#include "engine_inside.h"
#include "late.h"

/* Buffered jobs whose rule bears hostile devices: who asks, and whose turn is over for now. */

#define HEARD_MS 3600000

static bool
rests(const struct engine_job *j)
{
	return j->round.policy.buffered && j->round.policy.hostile > 0;
}

/* NULL: no memory; it is then as if the device had never been in a round. */
static struct engine_regular *
hold(struct engine_work *w, const uint8_t device[32])
{
	size_t at = bytes_place(w->regulars, w->regular_count, sizeof(*w->regulars), device, 32);

	if (at < w->regular_count && memcmp(w->regulars[at].device, device, 32) == 0)
		return &w->regulars[at];
	struct engine_regular *items =
	    bytes_grow(w->regulars, w->regular_count, &w->regular_room, sizeof(*items));
	if (!items)
		return NULL;
	w->regulars = items;
	memmove(items + at + 1, items + at, (w->regular_count++ - at) * sizeof(*items));
	items[at] = (struct engine_regular){.folded = 0};
	memcpy(items[at].device, device, 32);
	return &items[at];
}

static enum err
load_regular(void *ctx, const uint8_t device[32], uint64_t round)
{
	struct engine_job *j = ctx;
	struct engine_regular *r = hold(j->work, device);

	if (!r)
		return ERR_NOMEM;
	r->folded = round;
	r->asked_ms = clock_ms();
	return ERR_OK;
}

enum err
engine_rest_load(struct store_db *db, struct engine_job *j)
{
	if (!rests(j))
		return ERR_OK;
	enum err e = store_accept_last(db, j->id, load_regular, j);
	engine_rest_turn(j);
	return e;
}

bool
engine_rest_asks(struct engine_job *j, const uint8_t device[32])
{
	struct engine_regular *r = rests(j) ? hold(j->work, device) : NULL;

	if (!r)
		return false;
	r->asked_ms = clock_ms();
	return r->folded > 0 && j->row.round <= r->folded + j->work->rest;
}

void
engine_rest_taken(struct engine_job *j, const uint8_t device[32], uint64_t folded)
{
	struct engine_regular *r = rests(j) ? hold(j->work, device) : NULL;

	if (r)
		r->folded = folded;
}

void
engine_rest_turn(struct engine_job *j)
{
	struct engine_work *w = j->work;
	const uint64_t now = clock_ms();
	size_t kept = 0;

	if (!rests(j))
		return;
	for (size_t i = 0; i < w->regular_count; i++)
		if (now - w->regulars[i].asked_ms < HEARD_MS)
			w->regulars[kept++] = w->regulars[i];
	w->regular_count = kept;
	w->rest = late_rest(kept, j->round.policy.goal);
}
