#include "command.h"

#include <stdio.h>
#include <stdlib.h>

int
command_fail(const struct why *why)
{
	fprintf(stderr, "rivuletd: %s\n", why->text);
	return COMMAND_FAILED;
}

struct config *
command_config(const char *path)
{
	struct config *config = malloc(sizeof(*config));
	struct why why = {"no memory"};

	if (!config || config_load(config, path, &why)) {
		command_fail(&why);
		free(config);
		return NULL;
	}
	return config;
}
