#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "cmd.h"
#include "messages.h"
#include "option.h"
#include "settings.h"
#include "version.h"

static const struct cmd_verb commands[] = {
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
    {NULL, NULL, NULL},
};

static void
print_help(FILE *to)
{
	fprintf(to, "usage: rivulet COMMAND [...]\n\n");
	for (const struct cmd_verb *v = commands; v->name; v++)
		fprintf(to, "  %-8s %s\n", v->name, v->help);
	fprintf(to,
	    "\n\"rivulet COMMAND --help\" says more; \"rivulet --version\" the version.\n"
	    "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 unreachable,\n"
	    "6 a settings or input file is wrong, 7 a hash, signature or fingerprint does not "
	    "check,\n78 the agent needs a person, 130 Ctrl-C.\n");
}

/* --- the hidden word: all tables of the program, and the settings */

static int
print_tables(const struct option_entry *table)
{
	struct buf text;

	cmd_admin_print_verbs("", table, commands);
	buf_init(&text, OPTION_TEXT_MAX);
	enum err e = ini_list(&text, settings_sections());
	if (!e)
		fputs(buf_str(&text), stdout);
	buf_deinit(&text);
	return e ? CMD_FAILED : CMD_OK;
}

static int
run(const char *name, int argc, char **argv)
{
	for (const struct cmd_verb *v = commands; v->name; v++)
		if (strcmp(v->name, name) == 0)
			return v->main(argc, argv);
	fprintf(stderr, "rivulet: unknown command \"%s\"\n", name);
	print_help(stderr);
	return CMD_USAGE;
}

int
main(int argc, char **argv)
{
	bool help = false, version = false;
	const struct option_entry table[] = {
	    {"version", 0, NULL, "say the version, and that of the protocol", NULL, &version},
	    {"help", 'h', NULL, "name the commands", NULL, &help},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	struct why why = {""};
	const char *path;
	int first = 1;

	if (option_is_query(&path, argc, argv))
		return print_tables(table);
	enum err e = option_parse_head(&first, table, argc, argv, &why);
	if (!e && version)
		return printf("rivulet %s (protocol %d)\n", version_text(), MESSAGES_PROTOCOL) < 0;
	const char *name = first < argc ? argv[first] : "";
	if (!e && !help && strcmp(name, "help") == 0) {
		static char ask[] = "--help";
		help = first + 1 == argc;
		name = help ? name : argv[first + 1];
		if (!help)
			return run(name, 2, (char *[]){argv[first + 1], ask, NULL});
	}
	if (!e && help) {
		print_help(stdout);
		return CMD_OK;
	}
	if (!e && *name)
		return run(name, argc - first, argv + first);
	if (e)
		fprintf(stderr, "rivulet: %s\n", why.text);
	print_help(stderr);
	return CMD_USAGE;
}
