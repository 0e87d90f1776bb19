#ifndef SCHEDULE_H
#define SCHEDULE_H
#include "recipe.h"

/* The rate of a round (from 1; of a training alone: of an epoch): linear warm-up, then constant, in steps, along half a
 * cosine or a line, or (wsd) constant for a while and then along a line. The same bits on every machine: no libm. */
double schedule_rate(const struct schedule_spec *s, double rate, uint64_t round);

#endif
