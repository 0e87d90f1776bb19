#ifndef COMMAND_H
#define COMMAND_H
#include <stdio.h>
#include <sysexits.h>

#include "config.h"
#include "err.h"
#include "services.h"

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

int cmd_init_main(const char *path, int argc, char **argv);
int cmd_ca_main(const char *path, int argc, char **argv);
int cmd_check_main(const char *path, int argc, char **argv);
int cmd_backup_main(const char *path, int argc, char **argv);
int cmd_restore_main(const char *path, int argc, char **argv);
int cmd_keys_main(const char *path, int argc, char **argv);

/* The configuration in a fresh allocation, which the caller frees, or NULL after saying on stderr what is wrong. */
struct config *command_config(const char *path);
/* What [identity] ca would name. */
void command_print_fingerprint(FILE *to, const struct services_ca *ca);
/* Says why on stderr and returns COMMAND_FAILED. */
int command_fail(const struct why *why);
/* The same of a command on this state directory: whose it is, if that is the trouble. */
int command_fail_in(const char *state_dir, const struct why *why);

#endif
