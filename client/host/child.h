#ifndef CHILD_H
#define CHILD_H
#include <stdbool.h>
#include <stddef.h>

#include "spawner.h"

/*
 * Another program, run to its end: its own process group, standard input empty, both outputs read here and their tail kept.
 * It is asked to finish by SIGTERM and killed when it does not. What it started is gone when it is, wherever that went.
 */
struct child_options {
	struct spawner *spawner; /* NULL: one for this run */
	/* What runs, where and within what; its ends to write to are filled in here. Without environment: ours. */
	struct spawner_order order;
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
	uint64_t memory; /* more bytes than it may have, for which it was killed; else 0 */
	bool overflow; /* its answer is longer than the buffer may be: it was asked to finish */
};

/* Splits "program word 'quoted words'" into argv pointing into `text`, which is changed. ERR_INVALID for an open quote or no
 * word, ERR_LIMIT past max - 1 words. */
ERR_MUST_USE enum err child_split(char *text, const char **argv, size_t max);
/* The last line of a log, whose line ends behind it are cut off. */
const char *child_last_line(char *log);
/* log: room bytes for the tail of its output, NUL-terminated. ERR_NOTFOUND if the program cannot be started. */
ERR_MUST_USE enum err child_run(struct child_result *out, const struct child_options *options,
    char *log, size_t room, struct why *why);

#endif
