#ifndef WORDS_H
#define WORDS_H
#include <stddef.h>

/* The place of the word in a table of `count`, none of which is NULL; count if it is not there, or NULL. */
size_t words_find(const char *const *table, size_t count, const char *word);

#endif
