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

/* As rivulet_submit, with everything a manifest can say. */
int finish_submit(struct rivulet *r, const struct finish *f);

#endif
