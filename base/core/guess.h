#ifndef GUESS_H
#define GUESS_H
#include <stdbool.h>
#include <stddef.h>

/*
 * What somebody may have meant who wrote a word that nobody knows: among the known ones, that with the smallest Levenshtein distance,
 * if it is near enough for a typing error.
 */
#define GUESS_NONE 3 /* *best before the first known word: two changes are still a typing error */

/* Is it nearer than *best, which is then its distance? Words of more than 31 bytes never are. */
bool guess_is_nearer(const char *written, const char *known, size_t *best);

#endif
