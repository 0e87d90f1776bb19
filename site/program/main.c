#include <stdio.h>
#include <string.h>

#include "program_site.h"
#include "version.h"

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help; /* NULL: no person calls it */
} commands[] = {
    {"run", program_run_main, "train an agent's tasks by several ranks, as one device would"},
    {"plan", program_plan_main, "how ranks would divide a job, measured here"},
    {"train", program_train_main, "train a job by several ranks, without a coordinator"},
    {"rank", program_rank_main, NULL},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void
print_help(FILE *to)
{
	fputs("usage: rivulet-site COMMAND [...]\n\n", to);
	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].help)
			fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
	fputs("\n\"rivulet-site COMMAND --help\" says more; \"rivulet-site --version\" the "
	      "version.\nExit codes: 0 done, 1 failed, 2 usage.\n",
	    to);
}

/* The hidden word: all tables of the program. */
static int
print_tables(const struct option_entry *table)
{
	struct option_query q;
	struct buf text;

	buf_init(&text, OPTION_TEXT_MAX);
	enum err e = option_put_table(&text, "", table);
	for (size_t i = 0; i < COMMANDS && !e; i++) {
		if (!commands[i].help)
			continue;
		option_query_init(&q, "", commands[i].name);
		e = option_put_line(&text,
		    &(struct option_line){"command", q.path, NULL, NULL, commands[i].help, '\0'});
		fputs(buf_str(&text), stdout);
		buf_reset(&text);
		(void)commands[i].main(2, q.argv);
	}
	buf_deinit(&text);
	return e ? PROGRAM_FAILED : PROGRAM_OK;
}

int
main(int argc, char **argv)
{
	bool help = false, version = false;
	const struct option_entry table[] = {
	    {"version", 0, NULL, "say the version", NULL, &version},
	    {"help", 'h', NULL, "name the commands", NULL, &help},
	    {.name = NULL},
	};
	struct why why = {""};
	const char *path;
	int first = 1;

	if (option_is_query(&path, argc, argv))
		return print_tables(table);
	enum err e = option_parse_head(&first, table, argc, argv, &why);
	if (!e && version)
		return printf("rivulet-site %s\n", version_text()) < 0;
	if (!e && help) {
		print_help(stdout);
		return PROGRAM_OK;
	}
	for (size_t i = 0; i < COMMANDS && !e && first < argc; i++)
		if (strcmp(argv[first], commands[i].name) == 0)
			return commands[i].main(argc - first, argv + first);
	if (!e && first < argc)
		e = err_set(&why, ERR_INVALID, "unknown command \"%.60s\"", argv[first]);
	if (e)
		program_say(why.text);
	print_help(stderr);
	return PROGRAM_USAGE;
}
