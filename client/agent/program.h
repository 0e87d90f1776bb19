#ifndef PROGRAM_H
#define PROGRAM_H
#include "child.h"
#include "settings.h"

/* The program of a [trainer NAME], run to its end with one more word than its exec has. */
struct program {
	const struct settings *settings; /* for its threads */
	const struct settings_trainer *trainer;
	const char *word; /* the task's directory, or what it is asked */
	struct child_options child; /* argv and environment are filled in here */
	char *log; /* room bytes for the tail of what it said */
	size_t room;
};

/* As child_run; ERR_INVALID for an exec that cannot be split into words. */
ERR_MUST_USE enum err program_run(
    struct child_result *out, const struct program *p, struct why *why);

#endif
