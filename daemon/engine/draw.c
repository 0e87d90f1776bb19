#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "clock.h"
#include "engine_inside.h"

void
engine_draw_note(struct engine_job *j, const uint8_t device[32])
{
	size_t at = 0;

	while (at < j->candidate_count && memcmp(j->candidates[at], device, 32) < 0)
		at++;
	if (at < j->candidate_count && memcmp(j->candidates[at], device, 32) == 0)
		return;
	if (j->candidate_count == j->candidate_room) {
		size_t room = j->candidate_room ? j->candidate_room * 2 : 64;
		uint8_t(*items)[32] = realloc(j->candidates, room * sizeof(*items));
		if (!items)
			return;
		j->candidates = items;
		j->candidate_room = room;
	}
	memmove(&j->candidates[at + 1], &j->candidates[at],
	    (j->candidate_count - at) * sizeof(*j->candidates));
	memcpy(j->candidates[at], device, 32);
	j->candidate_count++;
}

struct ticket {
	uint8_t draw[HASH_LEN];
	uint8_t device[32];
};

static int
compare_tickets(const void *a, const void *b)
{
	return memcmp(a, b, HASH_LEN);
}

static void
make_ticket(const struct engine_job *j, const uint8_t device[32], struct ticket *t)
{
	uint8_t text[48];
	struct bytes_writer w = bytes_writer(text, sizeof(text));

	bytes_put_u64(&w, j->spec.seed);
	bytes_put_u64(&w, j->row.round);
	bytes_put(&w, device, 32);
	hash_sha256(t->draw, text, sizeof(text));
	memcpy(t->device, device, 32);
}

void
engine_draw(struct engine *g, struct engine_job *j)
{
	size_t n = j->candidate_count;
	uint32_t drawn = 0;
	uint32_t room = j->round.policy.invite_max > j->round.invited
	    ? j->round.policy.invite_max - j->round.invited
	    : 0;
	struct ticket *tickets = calloc(n ? n : 1, sizeof(*tickets));

	for (size_t i = 0; tickets && i < n; i++)
		make_ticket(j, j->candidates[i], &tickets[i]);
	if (tickets)
		qsort(tickets, n, sizeof(*tickets), compare_tickets);
	for (size_t i = 0; tickets && i < n && drawn < room; i++)
		if (!engine_has_invite(j, tickets[i].device) &&
		    engine_invite(j, tickets[i].device, INVITE_OUT) == ERR_OK)
			drawn++;
	free(tickets);
	j->candidate_count = 0;
	engine_act(g, j, round_step(&j->round, ROUND_DRAWN, drawn, clock_ms()));
	wake_ring(&g->services->wake);
}
