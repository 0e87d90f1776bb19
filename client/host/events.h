#ifndef EVENTS_H
#define EVENTS_H
#include <stddef.h>

/*
 * What the client tells its program: one line per event, "event key=value ...". The library never prints; the program
 * gives a sink. Values are quoted when they hold anything but [A-Za-z0-9_.:/+,-]; control characters never get through.
 */
#define EVENTS_LINE_MAX 4608 /* the log of a task given back fits, each byte of it escaped */

enum events_level { EVENTS_ERROR, EVENTS_WARN, EVENTS_INFO, EVENTS_DEBUG };

struct events {
	void (*sink)(void *context, int level, const char *line); /* NULL: nobody listens */
	void *context;
};

struct events_pair {
	const char *key; /* NULL ends the list */
	enum { EVENTS_STRING, EVENTS_UNSIGNED, EVENTS_DOUBLE } kind;
	const char *s;
	unsigned long long u;
	double d;
};
#define EVENTS_S(k, v) ((struct events_pair){.key = (k), .kind = EVENTS_STRING, .s = (v)})
#define EVENTS_U(k, v) ((struct events_pair){.key = (k), .kind = EVENTS_UNSIGNED, .u = (v)})
#define EVENTS_D(k, v) ((struct events_pair){.key = (k), .kind = EVENTS_DOUBLE, .d = (v)})
#define EVENTS_END ((struct events_pair){.key = NULL})
/* The pairs of a call: at least one, the end is added. */
#define EVENTS_PAIRS(...) ((const struct events_pair[]){__VA_ARGS__, EVENTS_END})

void events_emit(const struct events *ev, enum events_level level, const char *event,
    const struct events_pair *pairs);
/* Writes the line of an event to out, truncated to `room` bytes. */
void events_format(char *out, size_t room, const char *event, const struct events_pair *pairs);
const char *events_level_name(int level);

#endif
