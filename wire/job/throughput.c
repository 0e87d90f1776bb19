#include "throughput.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

#define SECONDS_MIN 0.001

void
throughput_note(struct throughput *s, uint64_t steps, double seconds)
{
	if (steps == 0)
		return;
	if (!(seconds > SECONDS_MIN))
		seconds = SECONDS_MIN;
	s->recent[s->count++ % THROUGHPUT_RECENT] = (double)steps / seconds;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* 0: of none. */
static double
middle(const double *sorted, size_t n)
{
	if (n == 0)
		return 0;
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double
throughput_median(const struct throughput *s)
{
	size_t n = s->count < THROUGHPUT_RECENT ? (size_t)s->count : THROUGHPUT_RECENT;
	double sorted[THROUGHPUT_RECENT];

	memcpy(sorted, s->recent, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	return middle(sorted, n);
}

/* --- a fleet */

void
throughput_fleet_deinit(struct throughput_fleet *f)
{
	free(f->sorted);
	*f = (struct throughput_fleet){.count = 0};
}

/* How many are slower. */
static size_t
place_of(const struct throughput_fleet *f, double speed)
{
	size_t low = 0, high = f->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (f->sorted[mid] < speed)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Where the device's speed is; f->count if it has none there. */
static size_t
place_now(const struct throughput_fleet *f, const struct throughput *s)
{
	const double speed = throughput_median(s);
	const size_t at = place_of(f, speed);

	return s->count > 0 && at < f->count && f->sorted[at] <= speed ? at : f->count;
}

/* Room for one more; false: no memory. */
static bool
grow(struct throughput_fleet *f)
{
	double *all = bytes_grow(f->sorted, f->count, &f->room, sizeof(*all));

	if (all)
		f->sorted = all;
	return all;
}

void
throughput_fleet_drop(struct throughput_fleet *f, const struct throughput *s)
{
	const size_t at = place_now(f, s);

	if (at < f->count)
		memmove(&f->sorted[at], &f->sorted[at + 1], (--f->count - at) * sizeof(*f->sorted));
}

/* Only what lies between the old speed and the new one moves: of a large fleet little, as a rule. */
enum err
throughput_fleet_note(
    struct throughput_fleet *f, struct throughput *s, uint64_t steps, double seconds)
{
	if (!grow(f))
		return ERR_NOMEM;
	const size_t at = place_now(f, s);
	throughput_note(s, steps, seconds);
	if (s->count == 0)
		return ERR_OK;
	const double speed = throughput_median(s);
	size_t to = place_of(f, speed);
	f->count += at == f->count;
	to -= to > at;
	if (to > at)
		memmove(&f->sorted[at], &f->sorted[at + 1], (to - at) * sizeof(*f->sorted));
	else
		memmove(&f->sorted[to + 1], &f->sorted[to], (at - to) * sizeof(*f->sorted));
	f->sorted[to] = speed;
	return ERR_OK;
}

enum err
throughput_fleet_add(struct throughput_fleet *f, const struct throughput *s)
{
	if (s->count == 0)
		return ERR_OK;
	if (!grow(f))
		return ERR_NOMEM;
	f->sorted[f->count++] = throughput_median(s);
	return ERR_OK;
}

void
throughput_fleet_order(struct throughput_fleet *f)
{
	if (f->count > 0)
		qsort(f->sorted, f->count, sizeof(*f->sorted), compare);
}

double
throughput_fleet_speed(struct throughput_fleet *f, uint64_t round)
{
	if (round > f->round) {
		f->round = round;
		f->speed = middle(f->sorted, f->count);
	}
	return f->speed;
}

uint64_t
throughput_steps(struct throughput_fleet *f, uint64_t round, const struct local_spec *local,
    const struct throughput *s)
{
	const double others = throughput_fleet_speed(f, round);
	const double steps = local->target_s * (s->count > 0 ? throughput_median(s) : others);

	/* Compared as it is: what is past max_steps need not fit an integer. */
	if (steps >= (double)local->max_steps)
		return local->max_steps;
	return steps > (double)local->min_steps ? (uint64_t)steps : local->min_steps;
}
