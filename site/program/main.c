#include <stdio.h>
#include <string.h>

#include "program_site.h"
#include "version.h"

static const struct {
	const char *name, *help;
	int (*main)(int argc, char **argv);
} commands[] = {
    {"run", "train an agent's tasks by several ranks, as one device would", program_run_main},
    {"plan", "how ranks would divide a job, measured here", program_plan_main},
    {"train", "train a job by several ranks, without a coordinator", program_train_main},
    {"rank", NULL, program_rank_main},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int
usage(FILE *to, int rc)
{
	fputs("usage: rivulet-site COMMAND\n\ncommands:\n", to);
	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].help)
			fprintf(to, "  %-8s%s\n", commands[i].name, commands[i].help);
	fputs("\n\"rivulet-site COMMAND --help\" says more; \"rivulet-site --version\" the "
	      "version.\n",
	    to);
	return rc;
}

int
main(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr, PROGRAM_USAGE);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return usage(stdout, PROGRAM_OK);
	if (strcmp(argv[1], "--version") == 0)
		return printf("rivulet-site %s\n", version_text()) < 0;
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	fprintf(stderr, "rivulet-site: there is no command \"%s\"\n", argv[1]);
	return usage(stderr, PROGRAM_USAGE);
}
