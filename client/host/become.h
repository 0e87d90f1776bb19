#ifndef BECOME_H
#define BECOME_H
#include "spawner.h"

/* What a new process does to become an owner's program: nobody's signals, files and limits but its own, and then it is confined. */
struct become {
	const struct spawner_order *order; /* its ends do not count: */
	int output, answer; /* standard error and standard output */
	int in, out; /* what it reads as descriptor 3, and writes as 4; -1: nothing */
	const struct cgroup *group; /* where it lives; empty: nowhere */
	const struct user *user; /* NULL: its parent's */
};

/* Both in a child that has nothing else to do, one after the other; from the first on, which looks at no order, it has the program's user
 * and group. What goes wrong stands in the program's output; the exit code is SPAWNER_FAILED then. */
void become_itself(const struct become *b);
_Noreturn void become_program(const struct become *b);

#endif
