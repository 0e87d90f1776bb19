#ifndef STOP_H
#define STOP_H
#include <stdatomic.h>
#include <stdbool.h>

/*
 * A program is to end: whoever works for long looks at it at least every 100 ms of work, gives up with ERR_CLOSED, and leaves nothing
 * half done that a start cannot take up again. Any thread.
 */
struct stop {
	atomic_bool asked;
	/* A SIGTERM or SIGINT that waits, blocked in all threads, to be taken asks for it, too: for a start, during which nobody takes them. */
	bool sees_signals;
};

void stop_ask(struct stop *s);
/* NULL: nobody ever asks. */
bool stop_asked(struct stop *s);

#endif
