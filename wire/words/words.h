#ifndef WORDS_H
#define WORDS_H
#include <stddef.h>

/* The index of the word in a table of `count` words, none of them NULL; `count` if the word is NULL or not in the table. */
size_t words_find(const char *const *table, size_t count, const char *word);

#endif
