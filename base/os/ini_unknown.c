#include "ini_unknown.h"

#include <stdio.h>
#include <string.h>

#include "guess.h"

/* In which file it belongs; NULL: in none that is known. */
static const char *
elsewhere(const struct ini *ini, const char *name)
{
	for (const struct ini_elsewhere *e = ini->elsewhere; e && e->name; e++)
		if (strcmp(e->name, name) == 0)
			return e->where;
	return NULL;
}

/* Another section of this file that has the key; NULL: none. */
static const struct ini_section *
other_section(const struct ini *ini, const struct ini_section *own, const char *name)
{
	for (const struct ini_section *s = ini->sections; s->name; s++)
		for (const struct ini_key *k = s->keys; k->name; k++)
			if (s != own && k->set && !k->now && strcmp(k->name, name) == 0)
				return s;
	return NULL;
}

void
ini_unknown_key(char out[INI_UNKNOWN_MAX], const struct ini *ini, const struct ini_section *section,
    const char *name)
{
	const char *guess = NULL, *where = elsewhere(ini, name);
	const struct ini_section *other = other_section(ini, section, name);
	size_t best = GUESS_NONE;

	for (const struct ini_key *k = section->keys; k->name; k++)
		if (k->set && !k->now && guess_is_nearer(name, k->name, &best))
			guess = k->name;
	if (other)
		snprintf(out, INI_UNKNOWN_MAX, "unknown key: it belongs in [%s%s]", other->name,
		    other->open ? " NAME" : "");
	else if (where)
		snprintf(out, INI_UNKNOWN_MAX, "unknown key: it belongs in %s", where);
	else if (guess)
		snprintf(out, INI_UNKNOWN_MAX, "unknown key (did you mean %s?)", guess);
	else
		snprintf(out, INI_UNKNOWN_MAX, "unknown key");
}

void
ini_unknown_section(char out[INI_UNKNOWN_MAX], const struct ini *ini, const char *head)
{
	const struct ini_section *guess = NULL;
	size_t best = GUESS_NONE;
	char word[64], bracketed[sizeof(word) + 2];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(head, " "), head);
	snprintf(bracketed, sizeof(bracketed), "[%s]", word);
	const char *where = elsewhere(ini, bracketed);
	for (const struct ini_section *s = ini->sections; s->name; s++)
		if (guess_is_nearer(word, s->name, &best))
			guess = s;
	if (where)
		snprintf(out, INI_UNKNOWN_MAX, "unknown section: it belongs in %s", where);
	else if (guess)
		snprintf(out, INI_UNKNOWN_MAX, "unknown section (did you mean [%s%s]?)",
		    guess->name, guess->open ? " NAME" : "");
	else
		snprintf(out, INI_UNKNOWN_MAX, "unknown section");
}
