#ifndef FINISH_H
#define FINISH_H
#include "rivulet.h"
#include "work.h"

/* The end of a task: from changed weights to an accepted delta; of one that evaluates, the report and how many examples it is about. */
struct finish {
	uint64_t examples, steps;
	double loss, accuracy; /* accuracy NaN if none */
	double normaliser;
	uint16_t optimizer; /* MANIFEST_SGD, ... */
	bool partial;
	const struct report *report; /* NULL without one, which an evaluation cannot do */
};

/* What a program says of its work, as a manifest and a report say it. f->report is `report` if there is something to report; that must
 * live as long as f. ERR_INVALID, ERR_LIMIT or ERR_NUMERIC for what no coordinator would take; why names it. Pure. */
ERR_MUST_USE enum err finish_of(
    struct finish *f, struct report *report, const struct rivulet_result *result, struct why *why);
/* ERR_INVALID for sums that cannot be. */
ERR_MUST_USE enum err finish_check_counted(const struct report_counted *c, struct why *why);
/* Puts what the figures of a training, then of its evaluation are means of into the report; an accuracy becomes right / labels, where these
 * are told, and a loss of nothing 0. */
void finish_count(struct finish *f, struct report *report, const struct report_counted counted[2]);
/* What no coordinator takes: nothing was trained (ERR_INVALID), a figure that is not finite (ERR_NUMERIC), or an accuracy that is none. */
ERR_MUST_USE enum err finish_check(const struct finish *f, struct why *why);
/* As rivulet_submit, with everything a manifest can say. */
int finish_submit(struct rivulet *r, const struct finish *f);

#endif
