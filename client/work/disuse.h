#ifndef DISUSE_H
#define DISUSE_H
#include <stdbool.h>
#include <time.h>

/*
 * Is a kept file so long unused that its job must be over? Its date and the clock may each have been wrong by years, so nothing goes the
 * first time that it looks too old: it is marked (executable for its owner, which means nothing otherwise) and counts from then on as
 * half as old. Whoever uses it writes it anew, without a mark. What is gone for its age has so looked old twice, half the days apart.
 */
struct stat;

/* Did the file, or what else is kept with it, change within so many days by the clock? */
bool disuse_is_within(const struct stat *st, unsigned days);
/* For a file of `dir` that did not: is it to go? Otherwise it is marked now; what cannot be marked stays. */
bool disuse_is_over(int dir, const char *name, unsigned days);

#endif
