#ifndef AXIS_H
#define AXIS_H
#include <stdbool.h>
#include <stddef.h>

/* Where the axes of a plot begin and end, and where their labels stand: round numbers, as people read them. */
#define AXIS_LABEL_MAX 24

struct axis {
	double low, high;
	double step; /* between two labels */
};

/* The smallest axis that covers low..high with exactly `intervals` steps and begins at a multiple of the step. low and high are within
 * +-AXIS_FAR. */
#define AXIS_FAR 1e300
struct axis axis_cover(double low, double high, unsigned intervals);
/* The axis low..high with a step of 1, 2 or 5 times a power of ten, at most `most` steps; whole: the step is at least 1. */
struct axis axis_within(double low, double high, unsigned most, bool whole);
/* out: v with as many decimals as the step needs. Returns the length of the text. */
size_t axis_label(char out[AXIS_LABEL_MAX], double v, double step);
/* Returns the unit, in seconds, in which a span of seconds is best shown; *name is "seconds", "minutes", "hours" or "days". */
double axis_time_unit(double seconds, const char **name);

#endif
