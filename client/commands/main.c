#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "messages.h"
#include "version.h"

struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
};

static const struct command commands[] = {
    {"join", cmd_join_main, "make this machine a device of a coordinator"},
    {"run", cmd_run_main, "the device agent"},
    {"doctor", cmd_doctor_main, "what is wrong with this device, and what to do"},
    {"rotate", cmd_rotate_main, "give this device a new key"},
    {"leave", cmd_leave_main, "end this device's membership and wipe its key"},
    {"train", cmd_train_main, "train a job's model alone, without a network"},
    {"trainer", cmd_trainer_main, "the built-in trainer as a program of an agent's"},
    {"eval", cmd_eval_main, "a job's network on rows or a data set, alone"},
    {"preset", cmd_preset_main, "well-known networks as the layers of a job"},
    {"simulate", cmd_simulate_main, "play a job on devices that exist in this process alone"},
    {"data", cmd_data_main, "pack pictures or a table into one file, show such a file"},
    {"status", cmd_status_main, "what the coordinator is doing"},
    {"clock", cmd_clock_main, "confirm the coordinator's clock after it has moved"},
    {"job", cmd_job_main,
	"plan, submit, sweep, evaluate, list, show, compare, export, pause, resume, stop, set, "
	"delete"},
    {"token", cmd_token_main, "create, list, revoke tokens"},
    {"device", cmd_device_main, "list, show, suspend, resume, revoke, rekey, erase devices"},
    {"model", cmd_model_main, "get, put, inspect, export models"},
    {"audit", cmd_audit_main, "what the audit log says, of whom and since when"},
    {"verify", cmd_verify_main, "check the audit log, offline; fold rounds again"},
};

static void
print_help(FILE *to)
{
	fprintf(to, "usage: rivulet COMMAND [...]\n\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
	fprintf(to,
	    "\n\"rivulet COMMAND --help\" says more; \"rivulet --version\" the version.\n"
	    "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 unreachable,\n"
	    "6 a settings or input file is wrong, 7 a hash, signature or fingerprint does not "
	    "check,\n78 the agent needs a person, 130 Ctrl-C.\n");
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "help") == 0 && argc > 2) {
		static char ask[] = "--help";
		char *again[] = {argv[0], argv[2], ask, NULL};
		return main(3, again);
	}
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		print_help(stdout);
		return CMD_OK;
	}
	if (strcmp(name, "--version") == 0) {
		printf("rivulet %s (protocol %d)\n", version_text(), MESSAGES_PROTOCOL);
		return CMD_OK;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	if (*name)
		fprintf(stderr, "rivulet: unknown command \"%s\"\n", name);
	print_help(stderr);
	return CMD_USAGE;
}
