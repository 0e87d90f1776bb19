#include "crowd.h"

#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "late.h"
#include "population.h"
#include "prng.h"
#include "round.h"

#define NOWHERE UINT32_MAX
#define TRIES 32 /* at random, before all are looked through */

/* A place takes 0 for never. */
#define CLOCK_BEGINS_MS ROSTER_HEARD_MS

static uint64_t
milliseconds(uint64_t us)
{
	return us / 1000 + CLOCK_BEGINS_MS;
}

enum err
simulate_crowd_init(struct simulate_crowd *c, const struct fleet *fleet,
    const struct roster_round *roster, bool sized)
{
	*c = (struct simulate_crowd){.fleet = fleet,
	    .roster = *roster,
	    .waiting = calloc(fleet->count, sizeof(*c->waiting)),
	    .people = calloc(fleet->count, sizeof(*c->people)),
	    .speeds = sized ? calloc(fleet->count, sizeof(*c->speeds)) : NULL};
	if (!c->waiting || !c->people || (sized && !c->speeds))
		return ERR_NOMEM;
	for (size_t i = 0; i < fleet->count; i++)
		c->people[i].at = NOWHERE;
	return ERR_OK;
}

void
simulate_crowd_deinit(struct simulate_crowd *c)
{
	free(c->waiting);
	free(c->people);
	free(c->speeds);
	throughput_fleet_deinit(&c->fleet_speeds);
	*c = (struct simulate_crowd){.waiting = NULL};
}

/* --- places */

struct roster_place
simulate_crowd_place(const struct simulate_crowd *c, size_t device)
{
	const struct simulate_person *p = &c->people[device];
	struct roster_place place = p->place;

	/* After two turns none does anything more. Places that rest were turned as the round opened, at that time. */
	for (uint64_t n = p->round; n < c->roster.number && n < p->round + 2; n++)
		(void)roster_step(
		    &place, &c->roster, &(struct roster_event){.kind = ROSTER_TURN}, 0);
	if (p->round == c->roster.number && p->opening != c->opening)
		(void)roster_step(
		    &place, &c->roster, &(struct roster_event){.kind = ROSTER_REOPEN}, 0);
	return place;
}

unsigned
simulate_crowd_step(
    struct simulate_crowd *c, size_t device, const struct roster_event *e, uint64_t us)
{
	struct simulate_person *p = &c->people[device];

	p->place = simulate_crowd_place(c, device);
	p->round = c->roster.number;
	p->opening = c->opening;
	return roster_step(&p->place, &c->roster, e, milliseconds(us));
}

bool
simulate_crowd_holds(const struct simulate_crowd *c, size_t device)
{
	return c->people[device].at != NOWHERE &&
	    simulate_crowd_place(c, device).state == ROSTER_OUT;
}

/* Who waits asks over and over while it is there: until now, or until the end of the last hour. */
static void
hear(struct simulate_crowd *c, size_t device, uint64_t us)
{
	const struct roster_event heard = {.kind = ROSTER_HEAR};
	const uint64_t hour = us / FLEET_PERIOD_US * FLEET_PERIOD_US;

	if (c->people[device].at == NOWHERE)
		return;
	if (fleet_is_there(c->fleet, device, us))
		(void)simulate_crowd_step(c, device, &heard, us);
	else if (hour > 0 && fleet_is_there(c->fleet, device, hour - 1))
		(void)simulate_crowd_step(c, device, &heard, hour);
}

/* Of devices that rest all at once: how long they do follows from how many are heard of. */
static void
turn(struct simulate_crowd *c, uint64_t round, uint64_t us)
{
	const struct roster_event over = {.kind = ROSTER_TURN};
	uint64_t heard = 0;

	for (size_t i = 0; i < c->fleet->count; i++) {
		hear(c, i, us);
		heard += (simulate_crowd_step(c, i, &over, us) & ROSTER_DO_HEARD) != 0;
		c->people[i].round = round;
	}
	c->roster.rest = late_rest(heard, c->roster.machine->policy.goal);
}

void
simulate_crowd_open(
    struct simulate_crowd *c, uint64_t round, size_t point_count, bool evaluates, uint64_t us)
{
	if (c->roster.number > 0 && roster_rests(c->roster.machine))
		turn(c, round, us);
	c->roster.number = round;
	c->roster.point_count = point_count;
	c->roster.evaluates = evaluates;
	c->opening = 0;
}

void
simulate_crowd_reopen(struct simulate_crowd *c)
{
	c->opening++;
}

/* --- waiting */

void
simulate_crowd_wait(struct simulate_crowd *c, size_t device)
{
	if (c->people[device].at != NOWHERE)
		return;
	c->people[device].at = (uint32_t)c->waiting_count;
	c->waiting[c->waiting_count++] = (uint32_t)device;
}

void
simulate_crowd_leave(struct simulate_crowd *c, size_t device)
{
	uint32_t at = c->people[device].at;

	if (at == NOWHERE)
		return;
	uint32_t last = c->waiting[--c->waiting_count];
	c->waiting[at] = last;
	c->people[last].at = at;
	c->people[device].at = NOWHERE;
}

enum err
simulate_crowd_time(struct simulate_crowd *c, size_t device, uint64_t steps, double seconds)
{
	return c->speeds
	    ? throughput_fleet_note(&c->fleet_speeds, &c->speeds[device], steps, seconds)
	    : ERR_OK;
}

uint64_t
simulate_crowd_steps(struct simulate_crowd *c, size_t device, const struct local_spec *local)
{
	return throughput_steps(&c->fleet_speeds, c->roster.number, local, &c->speeds[device]);
}

bool
simulate_crowd_asks(const struct simulate_crowd *c, size_t device, uint64_t us)
{
	const struct roster_event ask = {.kind = ROSTER_ASK};

	if (c->people[device].at == NOWHERE)
		return false;
	struct roster_place place = simulate_crowd_place(c, device);
	const unsigned actions = roster_step(&place, &c->roster, &ask, milliseconds(us));
	return (actions & ROSTER_DO_ENTER) && fleet_is_there(c->fleet, device, us);
}

size_t
simulate_crowd_first(const struct simulate_crowd *c, struct prng *rng, uint64_t us)
{
	size_t n = c->waiting_count;

	if (n == 0)
		return SIZE_MAX;
	for (int i = 0; i < TRIES; i++) {
		size_t device = c->waiting[prng_below(rng, n)];
		if (simulate_crowd_asks(c, device, us))
			return device;
	}
	size_t from = (size_t)prng_below(rng, n);
	for (size_t i = 0; i < n; i++) {
		size_t device = c->waiting[(from + i) % n];
		if (simulate_crowd_asks(c, device, us))
			return device;
	}
	return SIZE_MAX;
}

/* --- a draw: the `most` least tickets, of which a heap has the largest on top */

struct drawn {
	struct choice_ticket ticket;
	size_t device;
};

static bool
above(const struct drawn *a, const struct drawn *b)
{
	return memcmp(a->ticket.number, b->ticket.number, sizeof(a->ticket.number)) > 0;
}

static void
sink(struct drawn *heap, size_t n, size_t at)
{
	const struct drawn moved = heap[at];

	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && above(&heap[child + 1], &heap[child]))
			child++;
		if (!above(&heap[child], &moved))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

static size_t
push(struct drawn *heap, size_t n, size_t most, const struct drawn *d)
{
	if (n < most) {
		heap[n++] = *d;
		for (size_t i = n == most ? n / 2 : 0; i-- > 0;)
			sink(heap, n, i);
		return n;
	}
	if (above(&heap[0], d)) {
		heap[0] = *d;
		sink(heap, n, 0);
	}
	return n;
}

static int
compare_places(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

size_t
simulate_crowd_draw(
    const struct simulate_crowd *c, size_t *out, size_t most, uint64_t seed, uint64_t us)
{
	struct drawn *heap = calloc(most + 1, sizeof(*heap));
	size_t n = 0;

	if (!heap)
		return SIZE_MAX;
	for (size_t i = 0; most > 0 && i < c->waiting_count; i++) {
		struct drawn d = {.device = c->waiting[i]};
		if (!simulate_crowd_asks(c, d.device, us))
			continue;
		choice_ticket(&d.ticket, c->fleet->devices[d.device].id, seed, c->roster.number);
		n = push(heap, n, most, &d);
	}
	for (size_t i = 0; i < n; i++)
		out[i] = heap[i].device;
	qsort(out, n, sizeof(*out), compare_places);
	free(heap);
	return n;
}
