#ifndef PROGRAM_H
#define PROGRAM_H
#include "child.h"
#include "program_sandbox.h"
#include "settings.h"

#define PROGRAM_WORDS_MAX 32

/* The program of a [trainer NAME], in its sandbox. */
struct program {
	const struct settings *settings; /* for the number of threads */
	const struct settings_trainer *trainer;
	const char *home; /* the agent's, which the program never sees; NULL: none */
	const struct apart *apart; /* NULL: the program has the agent's user */
	const char *directory; /* the working directory, in which it may change all; NULL: "/" */
	const char *given; /* a directory that it may only read; NULL: none */
	const char *word; /* one more argument behind those of exec; NULL: none */
	/* more environment: "NAME=value", NULL-terminated; NULL: none. */
	const char *const *environment;
	const struct settings_data *data; /* the task's; may be NULL */
};

/* The order to start a program; the caller fills in the pipes. The struct points into itself: do not copy. */
struct program_order {
	struct spawner_order order;
	struct program_sandbox sandbox;
	const char *argv[PROGRAM_WORDS_MAX + 1];
	char words[SETTINGS_TEXT_MAX];
};

/* Makes the order. Errors as program_sandbox_init, and ERR_INVALID for an exec that cannot be split into words. *p must outlive the order. */
ERR_MUST_USE enum err program_order_init(
    struct program_order *out, const struct program *p, struct why *why);
void program_order_deinit(struct program_order *o);

/* Runs a program to its end. Errors as child_run and program_order_init. child.order is filled in by program_run; log takes the end of the
 * program's output, room bytes. */
struct program_run {
	struct child_options child;
	char *log;
	size_t room;
};
ERR_MUST_USE enum err program_run(struct child_result *out, const struct program *p,
    const struct program_run *run, struct why *why);

/* Could the trainer's program be run? ERR_INVALID: exec cannot be split into words, a script in it has no absolute path, or a path in read
 * or write is not absolute; ERR_NOTFOUND: the program, or a file that exec names by an absolute path, is missing. `why` begins with the
 * place in the settings. above: NULL, or gets program_sandbox_above_home, "" if there is none. */
ERR_MUST_USE enum err program_try(const struct settings *settings,
    const struct settings_trainer *trainer, const char *home, char above[PATH_MAX],
    struct why *why);
/* What this kernel lacks to confine programs, in words; NULL: nothing. */
const char *program_unconfined(void);
/* A stamp of the program and the scripts that exec names, which differs once one of them was changed or replaced. 0: one is missing. */
uint64_t program_stamp(const struct settings_trainer *trainer);

#endif
