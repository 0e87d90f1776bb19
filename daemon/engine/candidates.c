#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "choice.h"
#include "engine_inside.h"

void
engine_draw_note(struct engine_job *j, const uint8_t device[32])
{
	size_t at = 0;

	while (at < j->candidate_count && memcmp(j->candidates[at], device, 32) < 0)
		at++;
	if (at < j->candidate_count && memcmp(j->candidates[at], device, 32) == 0)
		return;
	uint8_t(*items)[32] =
	    bytes_grow(j->candidates, j->candidate_count, &j->candidate_room, sizeof(*items));
	if (!items)
		return;
	j->candidates = items;
	memmove(&j->candidates[at + 1], &j->candidates[at],
	    (j->candidate_count - at) * sizeof(*j->candidates));
	memcpy(j->candidates[at], device, 32);
	j->candidate_count++;
}

void
engine_draw_forget(struct engine_job *j, const uint8_t device[32])
{
	size_t kept = 0;

	for (size_t i = 0; i < j->candidate_count; i++)
		if (memcmp(j->candidates[i], device, 32) != 0)
			memmove(j->candidates[kept++], j->candidates[i], sizeof(*j->candidates));
	j->candidate_count = kept;
}

/* A delta of an earlier opening may have come since they asked. */
static size_t
drop_invited(struct engine_job *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->candidate_count; i++)
		if (!engine_has_invite(j, j->candidates[i]))
			memmove(j->candidates[kept++], j->candidates[i], sizeof(*j->candidates));
	return kept;
}

void
engine_draw(struct engine *g, struct engine_job *j)
{
	size_t count = drop_invited(j);
	uint32_t places = round_places(&j->round), drawn = 0;

	if (choice_draw(j->candidates, count, j->work->spec.seed, j->row.round))
		count = 0;
	for (size_t i = 0; i < count && drawn < places; i++)
		drawn += engine_invite(j, j->candidates[i], INVITE_OUT) == ERR_OK;
	j->candidate_count = 0;
	engine_step(g, j, ROUND_DRAWN, drawn);
	wake_ring(&g->services->wake);
}
