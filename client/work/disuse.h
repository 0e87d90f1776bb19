#ifndef DISUSE_H
#define DISUSE_H
#include <stdbool.h>
#include <time.h>

/*
 * Is a kept file unused for so long that its job must be over? The file's date and the clock may each have been wrong by years, so no file
 * is removed the first time that it looks too old: the file is marked (executable for its owner, which means nothing otherwise) and from
 * then on counts as half as old. A use writes the file anew, without a mark. So a file is removed only after it looked too old twice, half
 * the days apart.
 */
struct stat;

/* Did the file change within so many days by the wall clock? */
bool disuse_is_within(const struct stat *st, unsigned days);
/* For a file of `dir` for which disuse_is_within is false: should it be removed? If not, the file is marked now; a file that cannot be
 * marked stays. */
bool disuse_is_over(int dir, const char *name, unsigned days);

#endif
