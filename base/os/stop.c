#include "stop.h"

#include <signal.h>
#include <stddef.h>

void
stop_ask(struct stop *s)
{
	atomic_store(&s->asked, true);
}

static bool
signalled(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	    (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

bool
stop_asked(struct stop *s)
{
	if (!s)
		return false;
	if (!atomic_load(&s->asked) && s->sees_signals && signalled())
		atomic_store(&s->asked, true);
	return atomic_load(&s->asked);
}
