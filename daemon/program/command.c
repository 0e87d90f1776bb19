#include "command.h"

#include <stdlib.h>

#include "hex.h"
#include "permission.h"
#include "shown.h"

int
command_fail(const struct why *why)
{
	struct why shown = *why;

	/* Parts may be bytes of a damaged file. */
	shown_clean(shown.text);
	fprintf(stderr, "rivuletd: %s\n", shown.text);
	return COMMAND_FAILED;
}

int
command_fail_in(const char *state_dir, const struct why *why)
{
	struct why all = *why;

	(void)permission_explain(state_dir, ERR_IO, &all);
	return command_fail(&all);
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

void
command_print_fingerprint(FILE *to, const struct services_ca *ca)
{
	char hex[KEY_ID_HEX];

	hex_encode(hex, ca->hash, sizeof(ca->hash));
	fprintf(to, "its fingerprint, for [identity] ca: %s\n", hex);
}
