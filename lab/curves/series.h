#ifndef SERIES_H
#define SERIES_H
#include "err.h"
#include "scalars.h"

/*
 * One curve of one job: the values of a tag over the job's rounds. A round without the value is skipped, so that values of every tenth
 * round make a line; a failed round breaks the line (NaN). The owner calls series_deinit.
 */
#define SERIES_MAX (1u << 20) /* points */

enum series_axis {
	SERIES_ROUND, /* the round's number */
	SERIES_REPORTS, /* deltas in all rounds up to this one */
	SERIES_TIME, /* seconds from the first round's opening to this round's end */
};
/* *out: the axis of this name, "round", "reports" or "time"; false for any other name. */
bool series_axis_find(const char *name, enum series_axis *out);
const char *series_axis_name(enum series_axis axis);

struct series {
	char tag[SCALARS_TAG_MAX];
	enum series_axis axis;
	size_t count, room;
	double *x, *y; /* y NaN: a gap */
	double *round; /* number of the round of each point */
	double reports, opened; /* deltas so far; opening of the first round, Unix seconds */
};

void series_init(struct series *s, const char *tag, enum series_axis axis);
void series_deinit(struct series *s);
/* Adds a round; rounds come in ascending order, and an open round is skipped. ERR_LIMIT past SERIES_MAX. */
ERR_MUST_USE enum err series_add(struct series *s, const struct json *round, struct why *why);
/* *y: the last value at x or before; false if there is none. */
bool series_at(const struct series *s, double x, double *y);
/* The index of the largest or smallest value, the first of equal ones; -1 if there are no values. */
ptrdiff_t series_best(const struct series *s, bool largest);

#endif
