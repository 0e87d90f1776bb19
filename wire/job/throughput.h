#ifndef THROUGHPUT_H
#define THROUGHPUT_H
#include <stdint.h>

#include "recipe.h"

/*
 * Work by measured speed: how fast a device was with its last tasks of a job, and how many steps its next one gets. The median of a few
 * forgives a device that slept once.
 */
#define THROUGHPUT_RECENT 5

/* All zero: nothing is known. */
struct throughput {
	double recent[THROUGHPUT_RECENT]; /* steps a second */
	uint64_t count; /* noted ever; the newest is at (count - 1) % THROUGHPUT_RECENT */
};

/* A task of so many steps took so long, from being handed out until its delta began to come. Nothing is noted of 0 steps, and less
 * than a millisecond counts as one. */
void throughput_note(struct throughput *s, uint64_t steps, double seconds);
/* Of an even number the mean of the middle two; 0: nothing is known. */
double throughput_median(const struct throughput *s);
/* Steps of the device's next task in a job of LOCAL_SIZED: target_s x speed, rounded down, within min_steps and max_steps; without a speed
 * min_steps. */
uint64_t throughput_steps(const struct local_spec *local, const struct throughput *s);

#endif
