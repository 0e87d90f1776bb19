#ifndef GATE_H
#define GATE_H
#include <stdbool.h>

/*
 * Whose jobs may use a data set or a trainer: lists of patterns of job names or ids, separated by commas or spaces,
 * '*' matching any run of characters. Deny wins; an empty allow list admits all.
 */
#define GATE_TEXT_MAX 1024

struct gate {
	char allow[GATE_TEXT_MAX];
	char deny[GATE_TEXT_MAX];
};

/* Does the gate look at jobs at all? Then their name must be found out. */
bool gate_used(const struct gate *g);
/* job is the id in hex; name may be "" if unknown. */
bool gate_admits(const struct gate *g, const char *job, const char *name);

#endif
