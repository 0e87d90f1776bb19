#include "axis.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Differences below this share of the figures themselves are rounding. */
#define FINEST 1e-12
#define NEAR 1e-9 /* of a step */

/* A range to divide, never empty. */
static double
range_of(double low, double high)
{
	double size = fmax(fabs(low), fabs(high)), range = high - low;

	if (range > size * FINEST && range > 1e-300)
		return range;
	return size > 0 ? fmax(size * 0.1, 1e-300) : 1;
}

struct axis
axis_cover(double low, double high, unsigned intervals)
{
	static const double nice[] = {1, 1.5, 2, 2.5, 3, 4, 5, 6, 8};
	double range = range_of(low, high);
	double power = pow(10, floor(log10(range / intervals)));

	/* One value stands in the middle. */
	if (range > high - low) {
		low -= range / 2;
		high += range / 2;
	}
	for (;; power *= 10)
		for (size_t i = 0; i < sizeof(nice) / sizeof(nice[0]); i++) {
			double step = nice[i] * power;
			double from = floor(low / step + NEAR) * step;
			double to = from + intervals * step;
			if (to >= high - NEAR * step && to > from)
				return (struct axis){from, to, step};
		}
}

struct axis
axis_within(double low, double high, unsigned most, bool whole)
{
	static const double nice[] = {1, 2, 5};
	double range = range_of(low, high);
	double power = pow(10, floor(log10(range / most)));

	if (whole && power < 1)
		power = 1;
	for (;; power *= 10)
		for (size_t i = 0; i < sizeof(nice) / sizeof(nice[0]); i++)
			if (range / (nice[i] * power) < most)
				return (struct axis){low, high, nice[i] * power};
}

size_t
axis_label(char out[AXIS_LABEL_MAX], double v, double step)
{
	double size = fmax(fabs(v), step);
	int decimals = 0, n;

	if (fabs(v) < step * NEAR)
		v = 0;
	if (size >= 1e7 || step < 1e-5) {
		n = snprintf(out, AXIS_LABEL_MAX, "%.4g", v);
		return n > 0 ? (size_t)n : 0;
	}
	for (double s = step; decimals < 6 && fabs(s - round(s)) > NEAR * s; s *= 10)
		decimals++;
	n = snprintf(out, AXIS_LABEL_MAX, "%.*f", decimals, v);
	return n > 0 ? (size_t)n : 0;
}

double
axis_time_unit(double seconds, const char **name)
{
	static const struct {
		double unit;
		const char *name;
	} units[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (seconds >= 2 * units[i].unit) {
			*name = units[i].name;
			return units[i].unit;
		}
	*name = "seconds";
	return 1;
}
