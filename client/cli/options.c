#include "options.h"

#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "print.h"

/* The entry that argument `text` (with its dashes) names; *value points behind an '=' or is NULL. */
static const struct cmd_option *
find(const struct cmd_option *table, const char *text, const char **value)
{
	*value = NULL;
	if (text[1] != '-') {
		for (const struct cmd_option *o = table; o->name; o++)
			if (o->letter && o->letter == text[1] && text[2] == '\0')
				return o;
		return NULL;
	}
	size_t len = strcspn(text + 2, "=");
	for (const struct cmd_option *o = table; o->name; o++)
		if (strncmp(o->name, text + 2, len) == 0 && o->name[len] == '\0') {
			*value = text[2 + len] == '=' ? text + 3 + len : NULL;
			return o;
		}
	return NULL;
}

enum err
cmd_options_parse(
    struct cmd_words *words, const struct cmd_option *table, int argc, char **argv, struct why *why)
{
	bool only_words = false;
	const char *value;

	words->count = 0;
	for (int i = 1; i < argc; i++) {
		const char *text = argv[i];
		if (!only_words && strcmp(text, "--") == 0) {
			only_words = true;
			continue;
		}
		if (only_words || text[0] != '-' || text[1] == '\0') {
			if (words->count == CMD_OPTIONS_WORDS_MAX)
				return err_set(why, ERR_INVALID, "too many words");
			words->words[words->count++] = text;
			continue;
		}
		const struct cmd_option *o = find(table, text, &value);
		if (!o)
			return err_set(why, ERR_INVALID, "unknown option %.60s", text);
		if (o->flag) {
			if (value)
				return err_set(why, ERR_INVALID, "--%s takes no value", o->name);
			*o->flag = true;
			continue;
		}
		if (!value && ++i == argc)
			return err_set(why, ERR_INVALID, "--%s wants a value", o->name);
		*o->value = value ? value : argv[i];
	}
	return ERR_OK;
}

enum err
cmd_options_all(struct cmd_words *values, const struct cmd_option *table, const char *name,
    int argc, char **argv, struct why *why)
{
	const char *value;

	values->count = 0;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			continue;
		const struct cmd_option *o = find(table, argv[i], &value);
		if (!o || o->flag)
			continue;
		value = value ? value : argv[++i];
		if (strcmp(o->name, name) != 0)
			continue;
		if (values->count == CMD_OPTIONS_WORDS_MAX)
			return err_set(why, ERR_INVALID, "too many --%s", name);
		values->words[values->count++] = value;
	}
	return ERR_OK;
}

static void
print_help(FILE *to, const struct cmd_option *table, const struct cmd_usage *usage)
{
	char left[64];

	fprintf(to, "usage: rivulet %s\n\n%s\n", usage->usage, usage->about);
	for (const struct cmd_option *o = table; o->name; o++) {
		char letter[8] = "    ";
		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name,
		    o->value_name ? " " : "", o->value_name ? o->value_name : "");
		fprintf(to, "  %-26s %s\n", left, o->help);
	}
}

bool
cmd_options_take(struct cmd_words *words, const struct cmd_option *table,
    const struct cmd_usage *usage, int argc, char **argv, int *rc)
{
	struct why why;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help(stdout, table, usage);
			*rc = CMD_OK;
			return false;
		}
	enum err e = cmd_options_parse(words, table, argc, argv, &why);
	if (!e && words->count < usage->least)
		e = err_set(&why, ERR_INVALID, "something is missing");
	if (!e && words->count > usage->most)
		e = err_set(&why, ERR_INVALID, "\"%.60s\" is too much", words->words[usage->most]);
	if (!e)
		return true;
	fprintf(stderr, "rivulet: %s\nusage: rivulet %s\n", why.text, usage->usage);
	*rc = CMD_USAGE;
	return false;
}

static int
exit_code(enum err e)
{
	switch (e) {
	case ERR_OK:
		return CMD_OK;
	case ERR_NOTFOUND:
		return CMD_NOT_FOUND;
	case ERR_DENIED:
	case ERR_EXISTS:
	case ERR_STATE:
		return CMD_DENIED;
	case ERR_CLOSED:
	case ERR_TIMEOUT:
		return CMD_UNREACHABLE;
	case ERR_INVALID:
	case ERR_UNSUPPORTED:
		return CMD_SETTINGS;
	case ERR_CORRUPT:
		return CMD_CORRUPT;
	default:
		return CMD_FAILED;
	}
}

int
cmd_options_fail(enum err e, const struct why *why)
{
	cmd_print_error("%s", why && *why->text ? why->text : err_name(e));
	return exit_code(e);
}
