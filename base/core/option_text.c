#include <stdio.h>
#include <string.h>

#include "option.h"

static enum err
put_help(struct buf *out, const char *program, const struct option_entry *table,
    const struct option_usage *usage)
{
	char left[64], letter[8];

	enum err e = buf_printf(out, "usage: %s %s\n\n%s\n", program, usage->usage, usage->about);
	for (const struct option_entry *o = table; o->name && !e; o++) {
		snprintf(letter, sizeof(letter), o->letter ? "-%c, " : "    ", o->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name,
		    o->value_name ? " " : "", o->value_name ? o->value_name : "");
		e = buf_printf(out, "  %-26s %s\n", left, o->help);
	}
	return e;
}

static const char *
or_empty(const char *text)
{
	return text ? text : "";
}

enum err
option_put_line(struct buf *out, const struct option_line *line)
{
	char letter[2] = {line->letter, '\0'};

	return buf_printf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", line->kind, or_empty(line->path),
	    or_empty(line->name), letter, or_empty(line->value), or_empty(line->help));
}

enum err
option_put_table(struct buf *out, const char *path, const struct option_entry *table)
{
	enum err e = ERR_OK;

	for (const struct option_entry *o = table; o->name && !e; o++)
		e = option_put_line(out,
		    &(struct option_line){
			"option", path, o->name, o->value_name, o->help, o->letter});
	return e;
}

/* Each line of text by itself, without the blanks and the word `before` at its beginning. */
static enum err
put_lines(struct buf *out, const char *kind, const char *path, const char *text, const char *before)
{
	char line[1024];
	size_t skip = strlen(before);
	enum err e = ERR_OK;

	while (*text && !e) {
		text += strspn(text, " \n");
		if (skip > 0 && strncmp(text, before, skip) == 0 && text[skip] == ' ')
			text += skip + 1;
		size_t len = strcspn(text, "\n");
		if (len >= sizeof(line))
			return ERR_LIMIT;
		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		if (len > 0)
			e = option_put_line(
			    out, &(struct option_line){kind, path, NULL, NULL, line, '\0'});
		text += len;
	}
	return e;
}

static const struct option_entry always[] = {
    {"help", 'h', NULL, "say how it is called, and what its options are", NULL, NULL},
    {NULL, 0, NULL, NULL, NULL, NULL},
};

static enum err
put_all(struct buf *out, const char *program, const char *path, const struct option_entry *table,
    const struct option_usage *usage)
{
	enum err e = put_lines(out, "usage", path, usage->usage, program);

	if (!e)
		e = put_lines(out, "about", path, usage->about, "");
	if (!e)
		e = option_put_table(out, path, table);
	return e ? e : option_put_table(out, path, always);
}

static bool
asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

enum option_answer
option_take(struct option_words *words, const char *program, const struct option_entry *table,
    const struct option_usage *usage, int argc, char **argv, struct buf *text)
{
	const char *path;
	struct why why = {""};
	enum err e, said;

	if (option_is_query(&path, argc, argv)) {
		e = put_all(text, program, path, table, usage);
		return e ? OPTION_WRONG : OPTION_SHOW;
	}
	if (asks_for_help(argc, argv)) {
		e = put_help(text, program, table, usage);
		return e ? OPTION_WRONG : OPTION_SHOW;
	}
	e = option_parse(words, table, argc, argv, &why);
	if (!e && words->count < usage->least)
		e = err_set(&why, ERR_INVALID, "something is missing");
	if (!e && words->count > usage->most)
		e = err_set(&why, ERR_INVALID, "\"%.60s\" is too much", words->words[usage->most]);
	if (!e)
		return OPTION_GO;
	said = buf_printf(text, "%s: %s\nusage: %s %s\n", program, why.text, program, usage->usage);
	(void)said;
	return OPTION_WRONG;
}

bool
option_is_query(const char **path, int argc, char **argv)
{
	size_t len = sizeof(OPTION_QUERY) - 1;

	if (argc != 2 || strncmp(argv[1], OPTION_QUERY, len) != 0 ||
	    (argv[1][len] && argv[1][len] != '='))
		return false;
	*path = argv[1][len] ? argv[1] + len + 1 : argv[0];
	return true;
}

void
option_query_init(struct option_query *q, const char *parent, const char *name)
{
	snprintf(q->name, sizeof(q->name), "%s", name);
	snprintf(q->path, sizeof(q->path), "%s%s%s", parent, *parent ? " " : "", name);
	snprintf(q->word, sizeof(q->word), OPTION_QUERY "=%s", q->path);
	q->argv[0] = q->name;
	q->argv[1] = q->word;
	q->argv[2] = NULL;
}
