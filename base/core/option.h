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
	/* Where the option's value goes; NULL for a flag. Of an option given twice the last value counts. */
	const char **value;
	bool *flag; /* what a flag sets to true; NULL for an option with a value */
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
/* Collects every value that the option `name` was given, in order; option_parse must have taken these arguments before. ERR_INVALID for
 * more than OPTION_WORDS_MAX values. */
ERR_MUST_USE enum err option_all(struct option_words *values, const struct option_entry *table,
    const char *name, int argc, char **argv, struct why *why);

/* What a subcommand says of itself. */
struct option_usage {
	const char *usage; /* what stands behind the program's name; more lines repeat that name */
	const char *about; /* one or more lines for --help */
	size_t least, most; /* how many positional words it takes */
};

enum option_answer { OPTION_GO, OPTION_SHOW, OPTION_WRONG };

/* option_parse for a whole subcommand of `program`. OPTION_SHOW: `text` is what --help or OPTION_QUERY asks for. OPTION_WRONG: `text` says
 * what is wrong, and the usage. The caller prints `text`, which the caller has initialised with the maximum OPTION_TEXT_MAX. */
#define OPTION_TEXT_MAX 65536
ERR_MUST_USE enum option_answer option_take(struct option_words *words, const char *program,
    const struct option_entry *table, const struct option_usage *usage, int argc, char **argv,
    struct buf *text);

/*
 * OPTION_QUERY is an option that --help does not list, for completion and manual pages. With it a program, a subcommand or a subcommand's
 * own subcommand prints its table, in lines of six fields with tabs between:
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
/* Puts a line of kind "option" for each entry of the table. */
ERR_MUST_USE enum err option_put_table(
    struct buf *out, const char *path, const struct option_entry *table);

/* Is argv[1], the only argument, OPTION_QUERY or OPTION_QUERY=PATH? *path is then that PATH, else argv[0]. */
bool option_is_query(const char **path, int argc, char **argv);
/* The arguments that make subcommand `name` of `parent` ("" for the program) print its own table. */
struct option_query {
	char name[OPTION_PATH_MAX], path[OPTION_PATH_MAX],
	    word[sizeof(OPTION_QUERY) + OPTION_PATH_MAX];
	char *argv[3];
};
void option_query_init(struct option_query *q, const char *parent, const char *name);

#endif
