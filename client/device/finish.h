#ifndef FINISH_H
#define FINISH_H
#include "manifest.h"
#include "work.h"

struct rivulet;

/* The end of a task: from changed weights to an accepted delta. */
struct finish {
	uint64_t examples, steps;
	double loss, accuracy; /* accuracy NaN if none */
	double normaliser;
	uint16_t optimizer; /* MANIFEST_SGD, ... */
	bool partial;
	const struct report *report; /* NULL without one */
};

/* What no coordinator takes: nothing was trained (ERR_INVALID), a figure that is not finite (ERR_NUMERIC), or an accuracy that is none. */
ERR_MUST_USE enum err finish_check(const struct finish *f, struct why *why);
/* As rivulet_submit, with everything a manifest can say. */
int finish_submit(struct rivulet *r, const struct finish *f);

#endif
