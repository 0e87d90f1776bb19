#ifndef STOP_H
#define STOP_H
#include <stdatomic.h>
#include <stdbool.h>

/*
 * Whether a program was asked to end. Code that works for long asks at least every 100 ms of work, gives up with ERR_CLOSED, and leaves
 * nothing half done that the program's next start cannot take up again. Any thread.
 */
struct stop {
	atomic_bool asked;
	/* A pending SIGTERM or SIGINT (blocked in all threads) counts as asked, too: during a start nobody takes these signals. */
	bool sees_signals;
};

void stop_ask(struct stop *s);
/* NULL: nobody ever asks. */
bool stop_asked(struct stop *s);

#endif
