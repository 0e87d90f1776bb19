#ifndef CLOCK_H
#define CLOCK_H
#include <stdint.h>

/*
 * The two clocks, and the only place that reads them: intervals, timeouts and put-offs are of the monotonic one, dates that people,
 * certificates and rows carry of the wall clock, which may jump both ways at any time. Any thread, never blocks.
 *
 * The test hook: in a build with faults (base/os/fault.h) RIVULET_CLOCK_SPEED=n in the environment lets the monotonic clock run n times
 * as fast (1 to 1000). A test moves the wall clock by libfaketime, which moves TLS's dates with it.
 */

/* Monotonic milliseconds and seconds since some moment before the start of the process. */
uint64_t clock_ms(void);
double clock_seconds(void);
/* Unix seconds, to the millisecond; whole ones. Negative before 1970. */
double clock_wall(void);
int64_t clock_unix(void);
/* Monotonic milliseconds in which the wall clock, left alone, goes just as far: the time of a suspended machine counts, and no test's
 * speed does. For judging the wall clock. */
uint64_t clock_elapsed_ms(void);

#endif
