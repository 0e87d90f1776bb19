#include "cmd.h"

#include <stdio.h>
#include <stdlib.h>

int
cmd_fail(const struct why *why)
{
	fprintf(stderr, "rivuletd: %s\n", why->text);
	return CMD_FAILED;
}

struct config *
cmd_config(const char *path)
{
	struct config *config = malloc(sizeof(*config));
	struct why why = {"no memory"};

	if (!config || config_load(config, path, &why) != ERR_OK) {
		cmd_fail(&why);
		free(config);
		return NULL;
	}
	return config;
}
