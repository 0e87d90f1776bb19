#ifndef CHILD_H
#define CHILD_H
#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/*
 * Another program, run to its end: its own process group, standard input empty, both outputs read here and their tail kept.
 * It is asked to finish by SIGTERM and killed, with everything it started, when it does not.
 */
struct child_options {
	const char *const *argv; /* argv[0] is the program, looked up in PATH; NULL-terminated */
	const char *const *environment; /* "NAME=value" added to ours; NULL-terminated, or NULL */
	const char *directory; /* where it runs */
	struct buf *answer; /* takes standard output, whole; NULL: it goes where the other goes */
	double seconds; /* then SIGTERM; <= 0: no limit */
	double grace_s; /* between SIGTERM and SIGKILL */
	bool (*stop)(void *context); /* true: SIGTERM now; may be NULL */
	void *context;
};

struct child_result {
	bool exited; /* by itself, with `code`; else by signal `code` */
	int code;
	bool asked; /* SIGTERM was sent by us */
	bool killed; /* it had to be killed */
	bool overflow; /* its answer is longer than the buffer may be: it was asked to finish */
};

/* Splits "program word 'quoted words'" into argv pointing into `text`, which is changed. ERR_INVALID for an open quote or no
 * word, ERR_LIMIT past max - 1 words. */
ERR_MUST_USE enum err child_split(char *text, const char **argv, size_t max);
/* log: room bytes for the tail of its output, NUL-terminated. ERR_NOTFOUND if the program cannot be started. */
ERR_MUST_USE enum err child_run(struct child_result *out, const struct child_options *options,
    char *log, size_t room, struct why *why);

#endif
