#ifndef OPTIONS_H
#define OPTIONS_H
#include <stdbool.h>
#include <stddef.h>

#include "err.h"

/*
 * Command line options from a table: --name VALUE, --name=VALUE, -x VALUE, flags, and "--" before words that begin with a
 * dash. Everything else is a positional word.
 */
struct cmd_option {
	const char *name; /* without dashes; NULL ends the table */
	char letter; /* 0: none */
	const char *value_name; /* NULL: a flag */
	const char *help;
	const char **value; /* takes a value: where it goes; given twice, the last one counts */
	bool *flag; /* a flag */
};

#define CMD_OPTIONS_WORDS_MAX 256

struct cmd_words {
	const char *words[CMD_OPTIONS_WORDS_MAX];
	size_t count;
};

/* Parses argv[1..]. ERR_INVALID with why for an unknown option, a missing value or too many words. */
ERR_MUST_USE enum err cmd_options_parse(struct cmd_words *words, const struct cmd_option *table,
    int argc, char **argv, struct why *why);
/* Every value that the option of that name was given, in order, in arguments that were parsed with success. ERR_INVALID for more than fit
 * words. */
ERR_MUST_USE enum err cmd_options_all(struct cmd_words *values, const struct cmd_option *table,
    const char *name, int argc, char **argv, struct why *why);
/* cmd_options_parse for a whole subcommand: prints the reason and the usage on error, the usage on --help. True: go on; false: leave
 * with *rc. `usage` is what stands behind "usage: rivulet "; least and most bound the words. */
struct cmd_usage {
	const char *usage;
	const char *about; /* one or more lines for --help */
	size_t least, most;
};
bool cmd_options_take(struct cmd_words *words, const struct cmd_option *table,
    const struct cmd_usage *usage, int argc, char **argv, int *rc);
/* Prints "rivulet: reason" to stderr and returns the exit code of e. */
int cmd_options_fail(enum err e, const struct why *why);

#endif
