#include "program.h"

#include <stdio.h>
#include <stdlib.h>

#include "cage.h"

#define WORDS_MAX 32

static enum err
run_in(struct child_result *out, const struct program *p, const char *const *argv,
    const struct cage *cage, struct why *why)
{
	struct child_options child = p->child;

	child.order = (struct spawner_order){.argv = argv,
	    .environment = (const char *const *)cage->environment,
	    .directory = p->directory ? p->directory : "/",
	    .paths = cage->paths,
	    .path_count = cage->path_count,
	    .but = *cage->home ? cage->home : NULL,
	    .memory_bytes = p->trainer->memory_bytes};
	return child_run(out, &child, p->log, p->room, why);
}

enum err
program_run(struct child_result *out, const struct program *p, struct why *why)
{
	const char *argv[WORDS_MAX + 1];
	char words[SETTINGS_TEXT_MAX];
	struct cage cage;
	struct why inner = {""};
	size_t n = 0;

	snprintf(words, sizeof(words), "%s", p->trainer->exec);
	if (child_split(words, argv, WORDS_MAX))
		return err_set(why, ERR_INVALID, "trainer %s: exec cannot be split into words",
		    p->trainer->name);
	const struct cage_options options = {.trainer = p->trainer,
	    .argv = argv,
	    .home = p->home,
	    .directory = p->directory,
	    .data = p->data,
	    .threads = p->settings->threads};
	enum err e = cage_init(&cage, &options, &inner);
	if (e)
		return err_set(why, e, "trainer %s: %.200s", p->trainer->name, inner.text);
	while (argv[n])
		n++;
	argv[n] = p->directory ? p->directory : p->word;
	argv[n + 1] = NULL;
	e = run_in(out, p, argv, &cage, why);
	cage_deinit(&cage);
	return e;
}

enum err
program_try(const struct settings *settings, const struct settings_trainer *trainer,
    const char *home, struct why *why)
{
	const char *argv[WORDS_MAX + 1];
	const char *place = ini_notes_place(&settings->notes, trainer->exec, INI_LAST);
	char words[SETTINGS_TEXT_MAX], found[PATH_MAX];
	struct why inner = {""};
	struct cage cage;

	snprintf(words, sizeof(words), "%s", trainer->exec);
	if (child_split(words, argv, WORDS_MAX))
		return err_set(
		    why, ERR_INVALID, "%scannot be split into words: a quote is open", place);
	if (!cage_find(found, argv[0], getenv("PATH")))
		return err_set(
		    why, ERR_NOTFOUND, "%s%.100s is not there or not executable", place, argv[0]);
	const struct cage_options options = {.trainer = trainer, .argv = argv, .home = home};
	enum err e = cage_init(&cage, &options, &inner);
	if (e)
		return err_set(why, e, "%s%.150s", place, inner.text);
	cage_deinit(&cage);
	return ERR_OK;
}
