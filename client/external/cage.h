#ifndef CAGE_H
#define CAGE_H
#include "spawner.h"

/*
 * What an owner's program gets to see: paths and environment (docs/devices.md, What a trainer may reach). It runs as the agent's
 * user, or has one of its own, and may do less: nothing of the agent's home is in it but the task's directories and a cache of the trainer's own.
 */
struct cage_options {
	const struct settings_trainer *trainer;
	const char *const *argv; /* its exec, in words */
	const char *home; /* the agent's; NULL: none, and no cache */
	const struct apart *apart; /* NULL: it has the agent's user */
	const char *directory; /* of the task; NULL: none */
	const char *given; /* a directory that it may only read; NULL: none */
	const char *const *more; /* of the environment: "NAME=value", NULL-terminated; NULL: none */
	const struct settings_data *data; /* of the task; NULL: none */
	uint64_t threads; /* 0: its own choice */
};

struct cage {
	char home[PATH_MAX]; /* resolved; "" without */
	struct spawner_path *paths; /* NULL: it is not confined */
	size_t path_count;
	char **environment; /* NULL-terminated */
	size_t variables;
	bool failed; /* out of memory, on the way */
};

/* Makes the trainer's cache below the home, or where its user has a place, and empties its place for temporary files. */
ERR_MUST_USE enum err cage_prepare(
    const struct apart *apart, const char *home, const char *trainer, struct why *why);
/* ERR_DENIED for a path of `read` or `write` that is the agent's own, ERR_INVALID for one that is not absolute. */
ERR_MUST_USE enum err cage_init(struct cage *c, const struct cage_options *o, struct why *why);
void cage_deinit(struct cage *c);
/* A directory among those that it is allowed which has the agent's home in it: what lies there may be opened by its name, and the
 * directory itself not be listed, so Python imports nothing from it. NULL: none. */
const char *cage_above_home(const struct cage *c);
/* Where execvp finds the program in a PATH (NULL: its default); false if nowhere. */
bool cage_find(char out[PATH_MAX], const char *program, const char *path);

#endif
