/*
 * A word of /v1/find among things that the input makes up, four bytes each: the digits that its id is of, its name, its owner,
 * whether it lives and how old it is. At most two answers come back, they differ, and each has a name or an id that fits, and
 * how many there are does not hang on the order of the things. These are jobs, or devices, which nobody owns and have no age.
 */
#include "fits.h"
#include "fuzz.h"
#include "hex.h"

#define THINGS_MAX 64

static const char *const names[] = {"a", "abcdef", "0a", "gateway-7"};

static struct fits_thing
thing_of(const uint8_t *things, size_t i)
{
	const uint8_t *p = things + 4 * i;
	struct fits_thing t = {.id_len = 16,
	    .lives = (p[3] & 1) != 0,
	    .ages = (things[3] & 2) != 0,
	    .age = (double)(p[3] >> 2)};

	memset(t.id, p[0], t.id_len);
	t.id[t.id_len - 1] = (uint8_t)i;
	t.owner[0] = t.ages ? p[2] & 3 : 0;
	strcpy(t.name, names[p[1] & 3]);
	return t;
}

static bool
has_id(const struct fits_thing *t, const char *word)
{
	char hex[65];

	hex_encode(hex, t->id, t->id_len);
	return *word && strncmp(hex, word, strlen(word)) == 0;
}

static void
note(struct fits *f, const struct fits_thing *t, const char *word)
{
	if (strcmp(t->name, word) == 0)
		fits_name(f, t);
	if (has_id(t, word))
		fits_id(f, t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *end = len > 0 ? memchr(data, 0, len) : NULL;
	struct fits forward = {.name_count = 0}, backward = {.name_count = 0};
	struct fits_thing found[2], again[2];

	if (!end || (size_t)(end - data) >= FITS_NAME_MAX)
		return 0;
	const char *word = (const char *)data;
	const uint8_t *things = end + 1;
	size_t count = (len - (size_t)(things - data)) / 4;
	count = count < THINGS_MAX ? count : THINGS_MAX;
	bool any = false;
	for (size_t i = 0; i < count; i++) {
		struct fits_thing t = thing_of(things, i);
		struct fits_thing u = thing_of(things, count - 1 - i);
		any |= strcmp(t.name, word) == 0 || has_id(&t, word);
		note(&forward, &t, word);
		note(&backward, &u, word);
	}
	size_t n = fits_found(&forward, found), m = fits_found(&backward, again);
	require(n <= 2 && (n > 0) == any && n == m);
	for (size_t i = 0; i < n; i++)
		require(strcmp(found[i].name, word) == 0 || has_id(&found[i], word));
	require(n < 2 || memcmp(found[0].id, found[1].id, found[0].id_len) != 0);
	return 0;
}
