#include "option.h"

#include <string.h>

/* The entry that argument `text` (with its dashes) names; *value points behind an '=' or is NULL. */
static const struct option_entry *
find(const struct option_entry *table, const char *text, const char **value)
{
	*value = NULL;
	if (text[1] != '-') {
		for (const struct option_entry *o = table; o->name; o++)
			if (o->letter && o->letter == text[1] && text[2] == '\0')
				return o;
		return NULL;
	}
	size_t len = strcspn(text + 2, "=");
	for (const struct option_entry *o = table; o->name; o++)
		if (strncmp(o->name, text + 2, len) == 0 && o->name[len] == '\0') {
			*value = text[2 + len] == '=' ? text + 3 + len : NULL;
			return o;
		}
	return NULL;
}

/* Takes the option at *i, and leaves *i at its last argument. */
static enum err
take(const struct option_entry *table, int *i, int argc, char **argv, struct why *why)
{
	const char *value;
	const struct option_entry *o = find(table, argv[*i], &value);

	if (!o)
		return err_set(why, ERR_INVALID, "unknown option %.60s", argv[*i]);
	if (o->flag) {
		if (value)
			return err_set(why, ERR_INVALID, "--%s takes no value", o->name);
		*o->flag = true;
		return ERR_OK;
	}
	if (!value && ++*i == argc)
		return err_set(why, ERR_INVALID, "--%s wants a value", o->name);
	*o->value = value ? value : argv[*i];
	return ERR_OK;
}

static bool
is_word(const char *text)
{
	return text[0] != '-' || text[1] == '\0';
}

enum err
option_parse(struct option_words *words, const struct option_entry *table, int argc, char **argv,
    struct why *why)
{
	bool only_words = false;
	enum err e = ERR_OK;

	words->count = 0;
	for (int i = 1; i < argc && !e; i++) {
		if (!only_words && strcmp(argv[i], "--") == 0) {
			only_words = true;
		} else if (!only_words && !is_word(argv[i])) {
			e = take(table, &i, argc, argv, why);
		} else {
			if (words->count == OPTION_WORDS_MAX)
				return err_set(why, ERR_INVALID, "too many words");
			words->words[words->count++] = argv[i];
		}
	}
	return e;
}

enum err
option_parse_head(
    int *first, const struct option_entry *table, int argc, char **argv, struct why *why)
{
	enum err e = ERR_OK;
	int i;

	for (i = 1; i < argc && !e && !is_word(argv[i]); i++)
		e = take(table, &i, argc, argv, why);
	*first = i;
	return e;
}

enum err
option_all(struct option_words *values, const struct option_entry *table, const char *name,
    int argc, char **argv, struct why *why)
{
	const char *value;

	values->count = 0;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (is_word(argv[i]))
			continue;
		const struct option_entry *o = find(table, argv[i], &value);
		if (!o || o->flag)
			continue;
		value = value ? value : argv[++i];
		if (strcmp(o->name, name) != 0)
			continue;
		if (values->count == OPTION_WORDS_MAX)
			return err_set(why, ERR_INVALID, "too many --%s", name);
		values->words[values->count++] = value;
	}
	return ERR_OK;
}
