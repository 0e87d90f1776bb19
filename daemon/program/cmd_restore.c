#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "restore.h"

static const char usage[] =
    "usage: rivuletd [--config FILE] restore DIR\n"
    "Copies the backup in DIR into the state directory, which must hold no state (keys may be "
    "there and then stay,\n"
    "if the backup's database was used with their CA), and checks every file on the way. The "
    "coordinator's next start raises its incarnation.\n"
    "Exit codes: 0 done, 1 failed, 2 usage.\n";

static int
restore(const char *state_dir, const char *dir)
{
	struct backup b = {.state_dir = state_dir, .dir = dir};
	struct why why = {""};

	if (backup_restore_run(&b, &why))
		return command_fail_in(state_dir, &why);
	printf("restored %llu files, %llu bytes, to %s%s\n", (unsigned long long)b.files,
	    (unsigned long long)b.bytes, state_dir, b.kept_keys ? "; the keys there stay" : "");
	const char *missing = backup_restore_missing_key(state_dir);
	if (missing)
		printf("%s/%s is missing: put keys/ back (\"rivuletd keys import FILE\"), then "
		       "start\n",
		    state_dir, missing);
	return COMMAND_OK;
}

int
cmd_restore_main(const char *path, int argc, char **argv)
{
	static const struct option table[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		fputs(usage, c == 'h' ? stdout : stderr);
		return c == 'h' ? COMMAND_OK : COMMAND_USAGE;
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		return COMMAND_USAGE;
	}
	struct config *config = command_config(path);
	int rc = config ? restore(config->state_dir, argv[optind]) : COMMAND_FAILED;
	free(config);
	return rc;
}
