#include "program.h"

#include <stdio.h>

#define WORDS_MAX 32

enum err
program_run(struct child_result *out, const struct program *p, struct why *why)
{
	const char *argv[WORDS_MAX + 1];
	char words[SETTINGS_TEXT_MAX], threads[40];
	const char *environment[2] = {NULL, NULL};
	struct child_options child = p->child;
	size_t n = 0;

	snprintf(words, sizeof(words), "%s", p->trainer->exec);
	if (child_split(words, argv, WORDS_MAX))
		return err_set(why, ERR_INVALID, "trainer %s: exec cannot be split into words",
		    p->trainer->name);
	while (argv[n])
		n++;
	argv[n] = p->word;
	argv[n + 1] = NULL;
	if (p->settings->threads) {
		snprintf(threads, sizeof(threads), "OMP_NUM_THREADS=%llu",
		    (unsigned long long)p->settings->threads);
		environment[0] = threads;
	}
	child.argv = argv;
	child.environment = environment;
	return child_run(out, &child, p->log, p->room, why);
}
