#ifndef COMMAND_H
#define COMMAND_H
#include <stdio.h>
#include <sysexits.h>

#include "config.h"
#include "err.h"

struct option_entry;
struct option_usage;
struct option_words;
struct services_ca;

/*
 * The subcommands of `rivuletd`: what main.c's table holds. path is the configuration file, not read yet; argv[0] is the
 * subcommand's name. The result is the exit code: 0 done, 1 failed, 2 usage, and what the command's own help says.
 */
enum command_exit {
	COMMAND_OK = 0,
	COMMAND_FAILED = 1,
	COMMAND_USAGE = 2,
	COMMAND_PERSON =
	    EX_CONFIG, /* a start that only a person can mend: the unit does not try again */
};

/* The entry of each subcommand's table. */
#define COMMAND_CONFIG(path) \
	{ \
		"config", 'c', "FILE", "the configuration (default: " CONFIG_DEFAULT ")", (path), \
		    NULL \
	}

int cmd_init_main(const char *path, int argc, char **argv);
int cmd_ca_main(const char *path, int argc, char **argv);
int cmd_check_main(const char *path, int argc, char **argv);
int cmd_backup_main(const char *path, int argc, char **argv);
int cmd_restore_main(const char *path, int argc, char **argv);
int cmd_keys_main(const char *path, int argc, char **argv);

/* Parses the options of a subcommand (option.h): prints reason and usage on an error, the usage on --help. True: go on; false: leave
 * with *rc. */
bool command_take(struct option_words *words, const struct option_entry *table,
    const struct option_usage *usage, int argc, char **argv, int *rc);
/* For a misuse that no table of options finds: prints the reason and the usage, and returns COMMAND_USAGE. */
int command_misused(const char *reason, const struct option_usage *usage);

/* Subcommands of a command ("ca rotate"), or of the program: a table and a loop. */
struct command_verb {
	const char *name;
	int (*main)(const char *path, int argc, char **argv);
	const char *help;
};
int command_verbs(
    const char *command, const struct command_verb *verbs, const char *path, int argc, char **argv);
/* Prints the table of `parent` ("ca", or "" for the program), and what each verb answers to OPTION_QUERY, behind a line of its own. */
void command_print_verbs(
    const char *parent, const struct option_entry *table, const struct command_verb *verbs);

/* The configuration in a fresh allocation, which the caller frees, or NULL after saying on stderr what is wrong. */
struct config *command_config(const char *path);
/* Prints the CA's fingerprint, as [identity] ca takes it. */
void command_print_fingerprint(FILE *to, const struct services_ca *ca);
/* Says why on stderr and returns COMMAND_FAILED. */
int command_fail(const struct why *why);
/* As command_fail, for a command on this state directory: also says who owns it, if the failure is one of permissions. */
int command_fail_in(const char *state_dir, const struct why *why);

#endif
