#include "throughput.h"

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

void
throughput_fleet_drop(struct throughput_fleet *f, const struct throughput *s)
{
	double speed = throughput_median(s);
	size_t at = place_of(f, speed);

	if (s->count == 0 || at == f->count || f->sorted[at] > speed)
		return;
	memmove(&f->sorted[at], &f->sorted[at + 1], (--f->count - at) * sizeof(*f->sorted));
}

enum err
throughput_fleet_note(
    struct throughput_fleet *f, struct throughput *s, uint64_t steps, double seconds)
{
	double *all = bytes_grow(f->sorted, f->count, &f->room, sizeof(*all));

	if (!all)
		return ERR_NOMEM;
	f->sorted = all;
	throughput_fleet_drop(f, s);
	throughput_note(s, steps, seconds);
	if (s->count == 0)
		return ERR_OK;
	size_t at = place_of(f, throughput_median(s));
	memmove(&all[at + 1], &all[at], (f->count++ - at) * sizeof(*all));
	all[at] = throughput_median(s);
	return ERR_OK;
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
throughput_steps(const struct local_spec *local, const struct throughput *s, double others)
{
	double steps = local->target_s * (s->count > 0 ? throughput_median(s) : others);

	/* Compared as it is: what is past max_steps need not fit an integer. */
	if (steps >= (double)local->max_steps)
		return local->max_steps;
	return steps > (double)local->min_steps ? (uint64_t)steps : local->min_steps;
}
