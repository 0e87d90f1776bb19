#ifndef OPTIONS_H
#define OPTIONS_H
#include <stdbool.h>

#include "err.h"

struct option_entry;
struct option_usage;
struct option_words;

/* Parses the options of a subcommand of `rivulet` (option.h): prints reason and usage on an error, the usage on --help. True: go on; false:
 * leave with *rc. */
bool cmd_options_take(struct option_words *words, const struct option_entry *table,
    const struct option_usage *usage, int argc, char **argv, int *rc);
/* Prints "rivulet: reason" to stderr and returns the exit code of e. */
int cmd_options_fail(enum err e, const struct why *why);

#endif
