#ifndef CHILD_H
#define CHILD_H
#include <stdbool.h>
#include <stddef.h>

#include "spawner.h"

/*
 * Runs another program to its end: in a process group of its own, with empty standard input; both outputs are read and their tail is kept.
 * The program is asked to finish by SIGTERM and killed if it does not. All processes that it started end with it, also detached ones.
 */
struct child_options {
	struct spawner *spawner; /* NULL: one for this run */
	/* What runs, where and with which rights; child_run sets its descriptors. Environment NULL: this process's. */
	struct spawner_order order;
	/* Takes the whole standard output; NULL: standard output goes to the log, as standard error. */
	struct buf *answer;
	double seconds; /* after so long SIGTERM; <= 0: no limit */
	double grace_s; /* between SIGTERM and SIGKILL */
	bool (*stop)(void *context); /* true: SIGTERM now; may be NULL */
	void *context;
};

struct child_result {
	bool exited; /* the program exited with `code`; else it ended by signal `code` */
	int code;
	bool asked; /* child_run sent SIGTERM */
	bool killed; /* child_run sent SIGKILL */
	/* Bytes that the program had if it was killed for having more than its limit; else 0. */
	uint64_t memory;
	/* Standard output was longer than `answer` may be: the program was asked to finish. */
	bool overflow;
};

/* Splits "program word 'quoted words'" into argv pointing into `text`, which is changed. ERR_INVALID for an open quote or no
 * word, ERR_LIMIT past max - 1 words. */
ERR_MUST_USE enum err child_split(char *text, const char **argv, size_t max);
/* The last line of a log; cuts the line ends at the log's end off. */
const char *child_last_line(char *log);
/* log: `room` bytes for the tail of the program's output, NUL-terminated. ERR_NOTFOUND if the program cannot be started. */
ERR_MUST_USE enum err child_run(struct child_result *out, const struct child_options *options,
    char *log, size_t room, struct why *why);

#endif
