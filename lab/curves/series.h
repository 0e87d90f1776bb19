#ifndef SERIES_H
#define SERIES_H
#include "err.h"
#include "scalars.h"

/*
 * One curve of one job: values of a tag over its rounds. A round without the value is passed over, so that a figure of every tenth
 * round is a line; one that failed breaks the line (NaN). The owner calls series_deinit.
 */
#define SERIES_MAX (1u << 20) /* points */

enum series_axis {
	SERIES_ROUND, /* the round's number */
	SERIES_REPORTS, /* deltas in all rounds up to it */
	SERIES_TIME, /* seconds from the first round's opening to its end */
};
/* By name: "round", "reports", "time"; false if it is none. */
bool series_axis_find(const char *name, enum series_axis *out);
const char *series_axis_name(enum series_axis axis);

struct series {
	char tag[SCALARS_TAG_MAX];
	enum series_axis axis;
	size_t count, room;
	double *x, *y; /* y NaN: a gap */
	double *round; /* its number */
	double reports, opened; /* so far; of the first round */
};

void series_init(struct series *s, const char *tag, enum series_axis axis);
void series_deinit(struct series *s);
/* Rounds come in ascending order; one that is open is passed over. ERR_LIMIT past SERIES_MAX. */
ERR_MUST_USE enum err series_add(struct series *s, const struct json *round, struct why *why);
/* The newest value that stands at x or before it; false if there is none. */
bool series_at(const struct series *s, double x, double *y);
/* The largest or smallest value, of equal ones the first: its index, or -1 without any. */
ptrdiff_t series_best(const struct series *s, bool largest);

#endif
