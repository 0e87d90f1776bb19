#ifndef TREE_H
#define TREE_H
#include <stdint.h>
#include <sys/types.h>

/* All processes below one: its children, theirs and so on, as /proc has them at this moment. Without /proc there are none. */

/* Kills all processes below root; returns how many there were. */
unsigned tree_kill(pid_t root);
/* The bytes of memory that the processes below root have, if more than `cap`, else 0. Memory shared by several is counted once. */
uint64_t tree_memory_over(pid_t root, uint64_t cap);
/* Seconds of processor time that root and the processes below it have used, with those that ended and were waited for by their parents. */
double tree_seconds(pid_t root);

#endif
