#ifndef TREE_H
#define TREE_H
#include <stdint.h>
#include <sys/types.h>

/* All processes below one: its children, theirs and so on, as /proc has them at this moment. Without /proc there are none. */

/* Kills them. How many there were. */
unsigned tree_kill(pid_t root);
/* What they hold in memory, in bytes, where that is more than `cap`; what several share is counted once. Else 0. */
uint64_t tree_memory_over(pid_t root, uint64_t cap);
/* Processor time that they, the one itself and all of theirs that ended have used. What ended unawaited by its parent is not in it. */
double tree_seconds(pid_t root);

#endif
