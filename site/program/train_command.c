#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "program_site.h"

/* `rivulet train`, with this program in the place of the built-in trainer. */

#define WORDS_MAX 32

/* The path of this program, or of the other one beside it. */
static bool
own_path(char out[PATH_MAX], const char *beside)
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

	if (n < 0)
		return false;
	out[n] = '\0';
	char *name = strrchr(out, '/');
	if (!beside || !name)
		return true;
	size_t room = (size_t)(out + PATH_MAX - (name + 1));
	return snprintf(name + 1, room, "%s", beside) < (int)room;
}

/* The line that an agent's [trainer builtin] exec would have. */
static enum err
make_line(char *out, size_t room, const struct program_shape *shape, bool mpi, struct why *why)
{
	char own[PATH_MAX];

	if (!own_path(own, NULL))
		return err_errno(why, "the path of this program");
	int n = snprintf(out, room, "\"%s\" run%s", own, mpi ? " --mpi" : "");
	for (size_t i = 0; n > 0 && (size_t)n < room && shape->options[i]; i++)
		n += snprintf(out + n, room - (size_t)n, " %s", shape->options[i]);
	return n > 0 && (size_t)n < room
	    ? ERR_OK
	    : err_set(why, ERR_LIMIT, "the path of this program is too long");
}

static enum err
become(const char *words[WORDS_MAX], struct why *why)
{
	char program[PATH_MAX];

	if (own_path(program, "rivulet") && access(program, X_OK) == 0)
		execv(program, (char *const *)(uintptr_t)words);
	execvp("rivulet", (char *const *)(uintptr_t)words);
	return err_errno(why, "rivulet");
}

/* What is `rivulet train`'s is handed on. */
struct handed {
	const char *name, *value;
};

int
program_train_main(int argc, char **argv)
{
	struct program_shape shape = {.ranks = "1"};
	struct handed h[] = {{"--home", NULL}, {"--config", NULL}, {"--data", NULL},
	    {"--epochs", NULL}, {"--test", NULL}, {"--init", NULL}, {"--out", NULL}};
	bool mpi = false, json = false;
	const struct option_entry table[] = {PROGRAM_SHAPE_OPTIONS(shape), PROGRAM_MPI_OPTION(mpi),
	    {"home", 0, "DIR", "as of rivulet train, and so", &h[0].value, NULL},
	    {"config", 0, "FILE", "settings", &h[1].value, NULL},
	    {"data", 0, "NAME", "data set to train on", &h[2].value, NULL},
	    {"epochs", 0, "N", "passes over the data", &h[3].value, NULL},
	    {"test", 0, "NAME", "data set to evaluate on after each pass", &h[4].value, NULL},
	    {"init", 0, "FILE", "weights to begin with", &h[5].value, NULL},
	    {"out", 'o', "FILE", "write the trained model there", &h[6].value, NULL},
	    {"json", 0, NULL, "print JSON", NULL, &json}, {.name = NULL}};
	const struct option_usage usage = {
	    .usage = "train [--ranks N] [--mpi] [--pipeline-parallel P] [--data-parallel R] "
		     "[--threads T] [OPTION...] JOBFILE",
	    .about =
		"Trains a job's model by N ranks of this machine alone: rivulet train, with the "
		"same weights.",
	    .least = 1,
	    .most = 1};
	char line[PATH_MAX + 256];
	const char *words[WORDS_MAX] = {"rivulet", "train", "--exec", line};
	struct option_words positional;
	struct why why = {""};
	size_t n = 4;
	int rc;

	if (!program_options(&positional, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = program_shape_read(&shape, &why);
	if (!e)
		e = make_line(line, sizeof(line), &shape, mpi, &why);
	for (size_t i = 0; i < sizeof(h) / sizeof(h[0]); i++)
		if (h[i].value) {
			words[n++] = h[i].name;
			words[n++] = h[i].value;
		}
	if (json)
		words[n++] = "--json";
	words[n++] = "--";
	words[n++] = positional.words[0];
	if (!e)
		e = become(words, &why);
	return program_fail(e, &why);
}
