#include "crowd.h"

#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "late.h"
#include "population.h"
#include "prng.h"

#define NOWHERE UINT32_MAX
#define TRIES 32 /* at random, before all are looked through */

enum err
simulate_crowd_init(
    struct simulate_crowd *c, const struct fleet *fleet, uint32_t per_device, bool sized)
{
	*c = (struct simulate_crowd){.fleet = fleet,
	    .per_device = per_device,
	    .waiting = calloc(fleet->count, sizeof(*c->waiting)),
	    .people = calloc(fleet->count, sizeof(*c->people)),
	    .speeds = sized ? calloc(fleet->count, sizeof(*c->speeds)) : NULL};
	if (!c->waiting || !c->people || (sized && !c->speeds))
		return ERR_NOMEM;
	for (size_t i = 0; i < fleet->count; i++)
		c->people[i].place = NOWHERE;
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

void
simulate_crowd_open(struct simulate_crowd *c, uint64_t round, uint32_t opening)
{
	c->round = round;
	c->opening = opening;
}

void
simulate_crowd_rest(struct simulate_crowd *c, uint32_t goal, uint64_t us)
{
	uint64_t there = c->fleet->comes_and_goes ? 0 : c->fleet->count;

	for (size_t i = 0; c->fleet->comes_and_goes && i < c->fleet->count; i++)
		there += fleet_is_there(c->fleet, i, us);
	c->rest = late_rest(there, goal);
}

static bool
rests(const struct simulate_crowd *c, const struct simulate_person *p)
{
	return p->taken_in > 0 && c->round <= p->taken_in + c->rest;
}

void
simulate_crowd_wait(struct simulate_crowd *c, size_t device)
{
	if (c->people[device].place != NOWHERE)
		return;
	c->people[device].place = (uint32_t)c->waiting_count;
	c->waiting[c->waiting_count++] = (uint32_t)device;
}

void
simulate_crowd_leave(struct simulate_crowd *c, size_t device)
{
	uint32_t place = c->people[device].place;

	if (place == NOWHERE)
		return;
	uint32_t last = c->waiting[--c->waiting_count];
	c->waiting[place] = last;
	c->people[last].place = place;
	c->people[device].place = NOWHERE;
}

void
simulate_crowd_mark(struct simulate_crowd *c, size_t device, enum simulate_mark mark)
{
	struct simulate_person *p = &c->people[device];

	p->round = c->round;
	p->opening = c->opening;
	p->mark = mark;
}

void
simulate_crowd_took(struct simulate_crowd *c, size_t device)
{
	struct simulate_person *p = &c->people[device];

	p->taken = p->taken_in == c->round ? p->taken + 1 : 1;
	p->taken_in = c->round;
}

bool
simulate_crowd_marked(const struct simulate_crowd *c, size_t device)
{
	const struct simulate_person *p = &c->people[device];

	if (p->taken_in == c->round && p->taken >= c->per_device)
		return true;
	return p->round == c->round && (p->mark == SIMULATE_ACCEPTED || p->opening == c->opening);
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
	return throughput_steps(&c->fleet_speeds, c->round, local, &c->speeds[device]);
}

bool
simulate_crowd_asks(const struct simulate_crowd *c, size_t device, uint64_t us)
{
	return c->people[device].place != NOWHERE && !simulate_crowd_marked(c, device) &&
	    !(c->rest > 0 && rests(c, &c->people[device])) && fleet_is_there(c->fleet, device, us);
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
		choice_ticket(&d.ticket, c->fleet->devices[d.device].id, seed, c->round);
		n = push(heap, n, most, &d);
	}
	for (size_t i = 0; i < n; i++)
		out[i] = heap[i].device;
	qsort(out, n, sizeof(*out), compare_places);
	free(heap);
	return n;
}
