#ifndef SPOKEN_H
#define SPOKEN_H
#include "buf.h"

/* What agent and a program that stays say to each other: a line of JSON each (docs/devices.md, Trainers that stay). */
#define SPOKEN_MAX (64u << 10) /* bytes of a line, without its end */
#define SPOKEN_TASK_MAX 34 /* one more than an id and its end */

enum spoken_kind {
	SPOKEN_OTHER, /* nothing that this version knows: to be passed over */
	SPOKEN_READY,
	SPOKEN_DONE, /* with the task */
};

struct spoken {
	enum spoken_kind kind;
	char task[SPOKEN_TASK_MAX]; /* cut to fit, which makes it none */
};

/* The program's line. ERR_INVALID: it is no object of JSON, or what it says has no sense. */
ERR_MUST_USE enum err spoken_read(
    struct spoken *out, const char *line, size_t len, struct why *why);
/* The agent's, with their ends. */
ERR_MUST_USE enum err spoken_task(
    struct buf *out, const char *task, const char *kind, const char *directory);
ERR_MUST_USE enum err spoken_finish(struct buf *out, const char *task);

#endif
