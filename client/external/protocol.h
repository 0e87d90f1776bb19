#ifndef PROTOCOL_H
#define PROTOCOL_H
#include "buf.h"

/* The protocol between the agent and a persistent program: each message is a line of JSON (docs/devices.md, Trainers that stay). */
#define PROTOCOL_MAX (64u << 10) /* bytes of a line, without its end */
#define PROTOCOL_TASK_MAX 34 /* an id with its zero, and one byte to see that a text is longer */

enum protocol_kind {
	PROTOCOL_OTHER, /* a message that this version does not know: to be ignored */
	PROTOCOL_READY,
	PROTOCOL_DONE, /* names the task that is done */
};

struct protocol_line {
	enum protocol_kind kind;
	char task[PROTOCOL_TASK_MAX]; /* a longer text is cut, and so is no id */
};

/* Parses a message of the program. ERR_INVALID: the line is no JSON object, or the message is invalid. */
ERR_MUST_USE enum err protocol_read(
    struct protocol_line *out, const char *line, size_t len, struct why *why);
/* Append a message of the agent with its newline: here is a task; finish the task. */
ERR_MUST_USE enum err protocol_task(
    struct buf *out, const char *task, const char *kind, const char *directory);
ERR_MUST_USE enum err protocol_finish(struct buf *out, const char *task);

#endif
