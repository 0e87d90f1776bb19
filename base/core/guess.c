#include "guess.h"

#include <stdint.h>
#include <string.h>

static size_t
distance(const char *a, const char *b)
{
	size_t row[32], m = strlen(a), n = strlen(b);

	if (m > 31 || n > 31)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; i <= m; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[n];
}

bool
guess_is_nearer(const char *written, const char *known, size_t *best)
{
	size_t d = distance(written, known);

	if (d >= *best)
		return false;
	*best = d;
	return true;
}
