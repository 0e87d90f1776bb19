#ifndef CLOCK_H
#define CLOCK_H
#include <stdint.h>

/*
 * The two clocks, and the only place that reads them. The monotonic clock measures intervals, timeouts and delays; the wall clock, which
 * may jump both ways at any time, gives the dates of people, certificates and database rows. Any thread, never blocks.
 *
 * The test hook: in a build with faults (base/os/fault.h) RIVULET_CLOCK_SPEED=n in the environment lets the monotonic clock run n times
 * as fast (1 to 1000). A test moves the wall clock by libfaketime, which moves TLS's dates with it.
 */

/* Monotonic milliseconds and seconds since some moment before the start of the process. */
uint64_t clock_ms(void);
double clock_seconds(void);
/* The wall clock: clock_wall in Unix seconds to the millisecond, clock_unix in whole Unix seconds. Negative before 1970. */
double clock_wall(void);
int64_t clock_unix(void);
/* Milliseconds of CLOCK_BOOTTIME, to judge the wall clock by: a wall clock that nobody sets advances by as much. The time in which the
 * machine was suspended counts; RIVULET_CLOCK_SPEED does not. */
uint64_t clock_elapsed_ms(void);

#endif
