#include "words.h"

#include <string.h>

size_t
words_find(const char *const *table, size_t count, const char *word)
{
	size_t i = 0;

	while (word && i < count && strcmp(table[i], word) != 0)
		i++;
	return word ? i : count;
}
