#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confine.h"
#include "sandbox.h"

enum err
program_order_init(struct program_order *out, const struct program *p, struct why *why)
{
	struct why inner = {""};
	size_t n = 0;

	snprintf(out->words, sizeof(out->words), "%s", p->trainer->exec);
	if (child_split(out->words, out->argv, PROGRAM_WORDS_MAX))
		return err_set(why, ERR_INVALID, "trainer %s: exec cannot be split into words",
		    p->trainer->name);
	const struct program_sandbox_options options = {.trainer = p->trainer,
	    .argv = out->argv,
	    .home = p->home,
	    .apart = p->apart,
	    .directory = p->directory,
	    .given = p->given,
	    .more = p->environment,
	    .data = p->data,
	    .threads = p->settings->threads};
	enum err e = program_sandbox_init(&out->sandbox, &options, &inner);
	if (e)
		return err_set(why, e, "trainer %s: %.200s", p->trainer->name, inner.text);
	while (out->argv[n])
		n++;
	out->argv[n] = p->word;
	out->argv[n + 1] = NULL;
	out->order = (struct spawner_order){.argv = out->argv,
	    .environment = (const char *const *)out->sandbox.environment,
	    .directory = p->directory ? p->directory : "/",
	    .paths = out->sandbox.paths,
	    .path_count = out->sandbox.path_count,
	    .but = *out->sandbox.home ? out->sandbox.home : NULL,
	    .memory_bytes = p->trainer->memory_bytes};
	return ERR_OK;
}

void
program_order_deinit(struct program_order *o)
{
	program_sandbox_deinit(&o->sandbox);
}

enum err
program_run(struct child_result *out, const struct program *p, const struct program_run *run,
    struct why *why)
{
	struct program_order order = {.words = ""};
	struct child_options child = run->child;
	if (p->apart && !child.spawner)
		return err_set(why, ERR_STATE, "nobody may start programs as " APART_USER);
	enum err e = program_order_init(&order, p, why);
	if (e)
		return e;
	child.order = order.order;
	e = child_run(out, &child, run->log, run->room, why);
	program_order_deinit(&order);
	return e;
}

const char *
program_unconfined(void)
{
	if (confine_version() == 0)
		return "this kernel has no Landlock";
	return sandbox_works() ? NULL : "this kernel has no seccomp filters";
}

static bool
is_script(const char *word)
{
	const char *dot = strrchr(word, '.');

	return dot && dot > word && (strcmp(dot, ".py") == 0 || strcmp(dot, ".sh") == 0);
}

static uint64_t
mixed(uint64_t stamp, uint64_t value)
{
	return (stamp ^ value) * 1099511628211u; /* as FNV-1a does it with bytes */
}

/* Not what else exec names: a log or a data file changes without the program being another. */
static bool
is_of_program(const char *const *argv, size_t i)
{
	return i == 0 ||
	    (argv[i][0] == '/' && (i == 1 || is_script(argv[i]) || access(argv[i], X_OK) == 0));
}

uint64_t
program_stamp(const struct settings_trainer *trainer)
{
	const char *argv[PROGRAM_WORDS_MAX + 1];
	char words[SETTINGS_TEXT_MAX], found[PATH_MAX];
	uint64_t stamp = 14695981039346656037u;
	struct stat st;

	snprintf(words, sizeof(words), "%s", trainer->exec);
	if (child_split(words, argv, PROGRAM_WORDS_MAX) ||
	    !program_sandbox_find(found, argv[0], getenv("PATH")))
		return 0;
	for (size_t i = 0; argv[i]; i++) {
		if (!is_of_program(argv, i))
			continue;
		if (stat(i == 0 ? found : argv[i], &st) != 0)
			return 0;
		if (!S_ISREG(st.st_mode))
			continue;
		stamp = mixed(mixed(stamp, st.st_dev), st.st_ino);
		stamp =
		    mixed(mixed(stamp, (uint64_t)st.st_mtim.tv_sec), (uint64_t)st.st_mtim.tv_nsec);
	}
	return stamp;
}

/* Behind the program: whole paths, and scripts, which a program that runs in its task's directory finds by those alone. */
static enum err
try_words(const char *const *argv, const char *place, struct why *why)
{
	for (size_t i = 1; argv[i]; i++) {
		if (argv[i][0] == '/' && access(argv[i], R_OK) != 0)
			return err_set(why, ERR_NOTFOUND, "%s%.100s is not there or not readable",
			    place, argv[i]);
		if (argv[i][0] != '/' && argv[i][0] != '-' && is_script(argv[i]) &&
		    !strpbrk(argv[i], " \n"))
			return err_set(why, ERR_INVALID,
			    "%s%.100s is no whole path, and the program runs elsewhere", place,
			    argv[i]);
	}
	return ERR_OK;
}

enum err
program_try(const struct settings *settings, const struct settings_trainer *trainer,
    const char *home, char above[PATH_MAX], struct why *why)
{
	const char *argv[PROGRAM_WORDS_MAX + 1];
	const char *place = ini_notes_place(&settings->notes, trainer->exec, INI_LAST);
	char words[SETTINGS_TEXT_MAX], found[PATH_MAX];
	struct why inner = {""};
	struct program_sandbox sandbox;

	snprintf(words, sizeof(words), "%s", trainer->exec);
	if (child_split(words, argv, PROGRAM_WORDS_MAX))
		return err_set(
		    why, ERR_INVALID, "%scannot be split into words: a quote is open", place);
	if (!program_sandbox_find(found, argv[0], getenv("PATH")))
		return err_set(
		    why, ERR_NOTFOUND, "%s%.100s is not there or not executable", place, argv[0]);
	enum err e = try_words(argv, place, why);
	if (e)
		return e;
	const struct program_sandbox_options options = {
	    .trainer = trainer, .argv = argv, .home = home};
	e = program_sandbox_init(&sandbox, &options, &inner);
	if (e)
		return err_set(why, e, "%s%.150s", place, inner.text);
	const char *dir = program_sandbox_above_home(&sandbox);
	if (above)
		snprintf(above, PATH_MAX, "%s", dir ? dir : "");
	program_sandbox_deinit(&sandbox);
	return ERR_OK;
}
