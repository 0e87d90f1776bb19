#ifndef AXIS_H
#define AXIS_H
#include <stdbool.h>
#include <stddef.h>

/* Where a plot's axes begin, end and have their figures: round numbers, as people read them. */
#define AXIS_LABEL_MAX 24

struct axis {
	double low, high;
	double step; /* between figures */
};

/* The smallest axis of exactly `intervals` steps from a multiple of the step that covers low..high. Both within +-AXIS_FAR. */
#define AXIS_FAR 1e300
struct axis axis_cover(double low, double high, unsigned intervals);
/* low..high as it is, with a step of 1, 2 or 5 times a power of ten that comes at most `most` times; whole: of 1 or
 * more. */
struct axis axis_within(double low, double high, unsigned most, bool whole);
/* v, with as many decimals as the step needs. Returns its length. */
size_t axis_label(char out[AXIS_LABEL_MAX], double v, double step);
/* What a span of seconds is best counted in; *name is "seconds", "minutes", "hours" or "days". */
double axis_time_unit(double seconds, const char **name);

#endif
