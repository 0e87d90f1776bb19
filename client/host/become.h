#ifndef BECOME_H
#define BECOME_H
#include "spawner.h"

/* Turns a new process into an owner's program: signals, files and limits of its own, nothing of its parent's; then the process is
 * confined. */
struct become {
	const struct spawner_order *order; /* its descriptors are not used, but these: */
	int output, answer; /* standard error and standard output */
	int in, out; /* what the program reads as descriptor 3, and writes as 4; -1: nothing */
	const struct cgroup *group; /* the program's control group; empty: none */
	const struct user *user; /* the program's user; NULL: its parent's */
};

/* Called one after the other, in a child that does nothing else. become_itself does not use `order` and gives the process the program's
 * user and control group; become_program executes the order. An error is written to the program's output; the exit code is then
 * SPAWNER_FAILED. */
void become_itself(const struct become *b);
_Noreturn void become_program(const struct become *b);

#endif
