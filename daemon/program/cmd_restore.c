#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "option.h"
#include "restore.h"

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
	const struct option_entry table[] = {
	    COMMAND_CONFIG(&path), {NULL, 0, NULL, NULL, NULL, NULL}};
	static const struct option_usage usage = {"restore [--config FILE] DIR",
	    "Copies the backup in DIR into the state directory, which must hold no state (keys "
	    "may be there and then stay,\n"
	    "if the backup's database was used with their CA), and checks every file on the way. "
	    "The coordinator's next\n"
	    "start raises its incarnation.\n"
	    "Exit codes: 0 done, 1 failed, 2 usage.",
	    1, 1};
	struct option_words words;
	int rc;

	if (!command_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	struct config *config = command_config(path);
	rc = config ? restore(config->state_dir, words.words[0]) : COMMAND_FAILED;
	free(config);
	return rc;
}
