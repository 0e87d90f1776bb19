#ifndef FINISH_H
#define FINISH_H
#include "rivulet.h"
#include "work.h"

/* The end of a task: from changed weights to an accepted delta; of a task that evaluates, the report and its number of examples. */
struct finish {
	uint64_t examples, steps;
	double loss, accuracy; /* accuracy NaN if none */
	double normaliser;
	uint16_t optimizer; /* MANIFEST_SGD, ... */
	bool partial;
	const struct report *report; /* NULL without one, which an evaluation cannot do */
};

/* Converts a program's result to the members of a manifest and a report. f->report is `report` if there is anything to report; `report`
 * must outlive *f. ERR_INVALID, ERR_LIMIT or ERR_NUMERIC for a value that no coordinator accepts; `why` names the value. Pure. */
ERR_MUST_USE enum err finish_of(
    struct finish *f, struct report *report, const struct rivulet_result *result, struct why *why);
/* ERR_INVALID for sums that cannot be. */
ERR_MUST_USE enum err finish_check_counted(const struct report_counted *c, struct why *why);
/* Puts into the report what the figures are means of: counted[0] of the training, counted[1] of its evaluation. An accuracy becomes right /
 * labels, where these are known, and a loss in which nothing counted 0. */
void finish_count(struct finish *f, struct report *report, const struct report_counted counted[2]);
/* Finds what no coordinator accepts: nothing was trained, an accuracy outside 0..1 (ERR_INVALID), a figure that is not finite
 * (ERR_NUMERIC). */
ERR_MUST_USE enum err finish_check(const struct finish *f, struct why *why);
/* rivulet_submit with everything that a manifest can hold. */
int finish_submit(struct rivulet *r, const struct finish *f);

#endif
