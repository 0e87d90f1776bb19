#ifndef OPTION_H
#define OPTION_H
#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "err.h"

/*
 * Command line options from a table: --name VALUE, --name=VALUE, -x VALUE, flags, and "--" before words that begin with a
 * dash. Everything else is a positional word. Nothing here prints: programs do, and choose their exit codes.
 */
struct option_entry {
	const char *name; /* without dashes; NULL ends the table */
	char letter; /* 0: none */
	const char *value_name; /* NULL: a flag */
	const char *help;
	const char **value; /* takes a value: where it goes; given twice, the last one counts */
	bool *flag; /* a flag */
};

#define OPTION_WORDS_MAX 256

struct option_words {
	const char *words[OPTION_WORDS_MAX];
	size_t count;
};

/* Parses argv[1..]. ERR_INVALID with why for an unknown option, a missing value or too many words. */
ERR_MUST_USE enum err option_parse(struct option_words *words, const struct option_entry *table,
    int argc, char **argv, struct why *why);
/* Parses argv[1..] to the first word, whose place goes to *first: argc if there is none. "--" is no option here. */
ERR_MUST_USE enum err option_parse_head(
    int *first, const struct option_entry *table, int argc, char **argv, struct why *why);
/* Every value that the option of that name was given, in order, in arguments that were parsed with success. ERR_INVALID for more than fit
 * words. */
ERR_MUST_USE enum err option_all(struct option_words *values, const struct option_entry *table,
    const char *name, int argc, char **argv, struct why *why);

/* What a subcommand says of itself. */
struct option_usage {
	const char *usage; /* what stands behind the program's name; more lines repeat that name */
	const char *about; /* one or more lines for --help */
	size_t least, most; /* words */
};

enum option_answer { OPTION_GO, OPTION_SHOW, OPTION_WRONG };

/* option_parse for a whole subcommand of `program`. SHOW: text is what --help, or the hidden word, asks for. WRONG: text says what is
 * wrong, and the usage. The caller prints it; `text` is initialised already, of OPTION_TEXT_MAX. */
#define OPTION_TEXT_MAX 65536
ERR_MUST_USE enum option_answer option_take(struct option_words *words, const char *program,
    const struct option_entry *table, const struct option_usage *usage, int argc, char **argv,
    struct buf *text);

/*
 * The hidden word, for completion and manual pages: a program, a subcommand and one of its own print their tables, in lines of six fields
 * with tabs between:
 *
 *	command	PATH				what it does
 *	usage	PATH				how it is called, a line for each form
 *	about	PATH				what --help says more, line by line
 *	option	PATH	NAME	LETTER	VALUE	what it does
 *	setting	SECTION	KEY		DEFAULT	the words that it may be
 *
 * PATH is "device list", or empty for the program itself. LETTER and VALUE may be empty.
 */
#define OPTION_QUERY "--print-options"
#define OPTION_PATH_MAX 64

struct option_line {
	const char *kind, *path, *name, *value, *help; /* NULL: empty */
	char letter;
};
ERR_MUST_USE enum err option_put_line(struct buf *out, const struct option_line *line);
/* A line for each entry. */
ERR_MUST_USE enum err option_put_table(
    struct buf *out, const char *path, const struct option_entry *table);

/* Is argv[1] that word? Then *path is what the caller of a subcommand put behind it, or argv[0]. */
bool option_is_query(const char **path, int argc, char **argv);
/* What subcommand `name` of `parent` ("" for the program) is called with to print its own. */
struct option_query {
	char name[OPTION_PATH_MAX], path[OPTION_PATH_MAX],
	    word[sizeof(OPTION_QUERY) + OPTION_PATH_MAX];
	char *argv[3];
};
void option_query_init(struct option_query *q, const char *parent, const char *name);

#endif
