#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ini.h"
#include "num.h"

enum err
ini_text(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	size_t len = strlen(value);

	if (len == 0 || len >= k->size)
		return err_set(why, ERR_INVALID, len ? "is longer than %zu bytes" : "has no value",
		    k->size - 1);
	memcpy(field, value, len + 1);
	return ERR_OK;
}

/* In a uint64_t, or a uint32_t. */
static void
put(const struct ini_key *k, void *field, uint64_t v)
{
	uint32_t small = (uint32_t)v;

	memcpy(field, k->size == sizeof(v) ? (void *)&v : (void *)&small, k->size);
}

enum err
ini_number(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	const char *zero = k->words ? k->words[0] : NULL;
	uint64_t v = 0;

	if ((!zero || strcmp(value, zero) != 0) && (!num_u64(value, k->max, &v) || v < k->min))
		return err_set(why, ERR_INVALID,
		    "\"%.40s\" is not %s%sa whole number from %" PRIu64 " to %" PRIu64, value,
		    zero ? zero : "", zero ? " or " : "", k->min, k->max);
	put(k, field, v);
	return ERR_OK;
}

enum err
ini_bytes(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	uint64_t v;

	if (!num_bytes(value, &v) || v < k->min || v > k->max)
		return err_set(why, ERR_INVALID,
		    "\"%.40s\" is not a size from %" PRIu64 " to %" PRIu64
		    " bytes (K, M or G may follow the number)",
		    value, k->min, k->max);
	put(k, field, v);
	return ERR_OK;
}

enum err
ini_choice(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	char list[80] = "";

	for (int i = 0; k->words[i]; i++) {
		size_t len = strlen(list);
		if (strcmp(value, k->words[i]) == 0) {
			bool is = i > 0;
			memcpy(field, k->size == sizeof(bool) ? (void *)&is : (void *)&i, k->size);
			return ERR_OK;
		}
		const char *joint = k->words[i + 1] ? ", " : " or ";
		snprintf(list + len, sizeof(list) - len, "%s%s", i ? joint : "", k->words[i]);
	}
	return err_set(why, ERR_INVALID, "\"%.40s\" is not %s", value, list);
}
