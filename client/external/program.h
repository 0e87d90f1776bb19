#ifndef PROGRAM_H
#define PROGRAM_H
#include "child.h"
#include "settings.h"

/* The program of a [trainer NAME], confined and run to its end, with one more word than its exec has. */
struct program {
	const struct settings *settings; /* for its threads */
	const struct settings_trainer *trainer;
	const char *home; /* the agent's, which it never sees; NULL: none */
	const char *directory; /* the task's, its last word; NULL: it is asked `word`, in "/" */
	const char *word;
	const struct settings_data *data; /* the task's; may be NULL */
	struct child_options child; /* its order is filled in here */
	char *log; /* room bytes for the tail of what it said */
	size_t room;
};

/* As child_run; also as cage_init, and ERR_INVALID for an exec that cannot be split into words. */
ERR_MUST_USE enum err program_run(
    struct child_result *out, const struct program *p, struct why *why);

/* Could it be run? ERR_INVALID: its words cannot be split, or a path among read and write is none; ERR_NOTFOUND: the program is not
 * there. `why` begins with the place in the settings. */
ERR_MUST_USE enum err program_try(const struct settings *settings,
    const struct settings_trainer *trainer, const char *home, struct why *why);

#endif
