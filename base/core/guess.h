#ifndef GUESS_H
#define GUESS_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Which known word a person may have meant who wrote an unknown one: the known word with the smallest Levenshtein distance, if that
 * distance is small enough for a typing error.
 */
#define GUESS_NONE 3 /* *best before the first known word: two changes are still a typing error */

/* Is the distance from `written` to `known` below *best? If so, *best becomes that distance. False for words of more than 31 bytes. */
bool guess_is_nearer(const char *written, const char *known, size_t *best);

#endif
