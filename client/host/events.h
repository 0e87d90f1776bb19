#ifndef EVENTS_H
#define EVENTS_H
#include <stddef.h>

#include "line.h"

/*
 * What the client tells its program: one line per event, "event key=value ...". The library never prints; the program
 * gives a sink. Values are quoted when they hold anything but [A-Za-z0-9_.:/+,-]; control characters never get through.
 */
#define EVENTS_LINE_MAX 4608 /* the log of a task given back fits, each byte of it escaped */

enum events_level {
	EVENTS_ERROR = LINE_ERROR,
	EVENTS_WARN = LINE_WARN,
	EVENTS_INFO = LINE_INFO,
	EVENTS_DEBUG = LINE_DEBUG
};

struct events {
	void (*sink)(void *context, int level, const char *line); /* NULL: nobody listens */
	void *context;
	/* In place of `sink`: gets the event in pieces; or NULL. */
	void (*hear)(void *context, int level, const char *event, const struct line_pair *pairs);
};

/* Of an agent: where its events go, and the form of the log's lines. */
struct events_log {
	struct events events;
	enum line_format format;
};

#define EVENTS_S(k, v) LINE_S(k, v)
#define EVENTS_U(k, v) LINE_U(k, v)
#define EVENTS_D(k, v) LINE_D(k, v)
#define EVENTS_END LINE_END
/* The pairs of a call: at least one, the end is added. */
#define EVENTS_PAIRS(...) ((const struct line_pair[]){__VA_ARGS__, EVENTS_END})

void events_emit(const struct events *ev, enum events_level level, const char *event,
    const struct line_pair *pairs);
/* Writes the line of an event to out, truncated to `room` bytes. */
void events_format(char *out, size_t room, const char *event, const struct line_pair *pairs);

#endif
