#ifndef PROGRAM_SANDBOX_H
#define PROGRAM_SANDBOX_H
#include "spawner.h"

/*
 * The sandbox of an owner's program: the paths and the environment that it can see (docs/devices.md, What a trainer may reach). The program
 * runs as the agent's user, or as a user of its own, with fewer rights: of the agent's home it sees only the task's directories and the
 * trainer's cache.
 */
struct program_sandbox_options {
	const struct settings_trainer *trainer;
	const char *const *argv; /* the trainer's exec, split into words */
	const char *home; /* the agent's; NULL: none, and no cache */
	const struct apart *apart; /* NULL: the program has the agent's user */
	const char *directory; /* of the task; NULL: none */
	const char *given; /* a directory that the program may only read; NULL: none */
	const char *const *more; /* more environment: "NAME=value", NULL-terminated; NULL: none */
	const struct settings_data *data; /* of the task; NULL: none */
	uint64_t threads; /* threads the program is told to use; 0: as it likes */
};

struct program_sandbox {
	char home[PATH_MAX]; /* the agent's, resolved; "": none */
	struct spawner_path *paths; /* NULL: the program is not confined */
	size_t path_count;
	char **environment; /* NULL-terminated */
	size_t variables;
	bool failed; /* memory ran out while paths and environment were collected */
};

/* Makes the trainer's cache below the home, or in the directory of the programs' user, and empties the directory for temporary files. */
ERR_MUST_USE enum err program_sandbox_prepare(
    const struct apart *apart, const char *home, const char *trainer, struct why *why);
/* ERR_DENIED for a path of `read` or `write` that is the agent's own, ERR_INVALID for one that is not absolute. */
ERR_MUST_USE enum err program_sandbox_init(
    struct program_sandbox *c, const struct program_sandbox_options *o, struct why *why);
void program_sandbox_deinit(struct program_sandbox *c);
/* An allowed directory that contains the agent's home: the program can open the files in it by name, but not list it, so that Python
 * imports nothing from it. NULL: there is none. */
const char *program_sandbox_above_home(const struct program_sandbox *c);
/* out: where execvp finds the program in a PATH (NULL: the default of execvp); false if nowhere. */
bool program_sandbox_find(char out[PATH_MAX], const char *program, const char *path);

#endif
