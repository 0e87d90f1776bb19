#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "hex.h"
#include "key.h"
#include "option.h"
#include "permission.h"
#include "services.h"
#include "services_ca.h"
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

/* --- options */

static void
print(FILE *to, struct buf *text, enum err e)
{
	if (!e)
		fputs(buf_str(text), to);
	buf_deinit(text);
}

bool
command_take(struct option_words *words, const struct option_entry *table,
    const struct option_usage *usage, int argc, char **argv, int *rc)
{
	struct buf text;

	buf_init(&text, OPTION_TEXT_MAX);
	enum option_answer answer = option_take(words, "rivuletd", table, usage, argc, argv, &text);
	print(answer == OPTION_WRONG ? stderr : stdout, &text, ERR_OK);
	*rc = answer == OPTION_WRONG ? COMMAND_USAGE : COMMAND_OK;
	return answer == OPTION_GO;
}

int
command_misused(const char *reason, const struct option_usage *usage)
{
	fprintf(stderr, "rivuletd: %s\nusage: rivuletd %s\n", reason, usage->usage);
	return COMMAND_USAGE;
}

void
command_print_verbs(
    const char *parent, const struct option_entry *table, const struct command_verb *verbs)
{
	struct option_query q;
	struct buf text;

	buf_init(&text, OPTION_TEXT_MAX);
	print(stdout, &text, option_put_table(&text, parent, table));
	for (const struct command_verb *v = verbs; v->name; v++) {
		option_query_init(&q, parent, v->name);
		buf_init(&text, OPTION_TEXT_MAX);
		print(stdout, &text,
		    option_put_line(&text,
			&(struct option_line){"command", q.path, NULL, NULL, v->help, '\0'}));
		(void)v->main(CONFIG_DEFAULT, 2, q.argv);
	}
}

int
command_verbs(
    const char *command, const struct command_verb *verbs, const char *path, int argc, char **argv)
{
	bool help = false;
	const struct option_entry table[] = {
	    COMMAND_CONFIG(&path),
	    {"help", 'h', NULL, "name the subcommands", NULL, &help},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	struct why why = {""};
	const char *parent;
	int first = 1;

	if (option_is_query(&parent, argc, argv)) {
		command_print_verbs(parent, table, verbs);
		return COMMAND_OK;
	}
	enum err e = option_parse_head(&first, table, argc, argv, &why);
	for (const struct command_verb *v = verbs; !e && !help && first < argc && v->name; v++)
		if (strcmp(v->name, argv[first]) == 0)
			return v->main(path, argc - first, argv + first);
	help &= !e;
	FILE *to = help ? stdout : stderr;
	if (e)
		fprintf(to, "rivuletd: %s\n", why.text);
	else if (!help && first < argc)
		fprintf(to, "rivuletd: unknown command \"%s %s\"\n", command, argv[first]);
	fprintf(to, "usage: rivuletd %s COMMAND [...]\n\n", command);
	for (const struct command_verb *v = verbs; v->name; v++)
		fprintf(to, "  %-8s %s\n", v->name, v->help);
	return help ? COMMAND_OK : COMMAND_USAGE;
}
