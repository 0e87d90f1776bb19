#ifndef KILLED_H
#define KILLED_H
/* Work that is killed at each of the places that it passes, in turn: in a process of its own, again and again, until it comes to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"

#define KILLED_LIVES_MAX 1000

static int killed_places_left = -1; /* before the one at which this process dies; -1: it does not */

static inline void
killed_place(void)
{
	if (killed_places_left >= 0 && killed_places_left-- == 0)
		raise(SIGKILL);
}
/* The named places of a module whose .c comes behind this header are such. */
#undef FAULT
#define FAULT(name) killed_place()

/* Is it killed at the n-th place? It has come to its end else. */
static inline bool
killed_at(int n, void (*work)(void *), void *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		killed_places_left = n;
		work(arg);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	return status != 0;
}

/* Lives that end at each of so many places in turn, and go on where the one before ended, until one comes to its end. After each of them
 * check is asked. How many were killed. */
static inline int
killed_anywhere(int places, void (*live)(void *), void (*check)(const void *), void *arg)
{
	int life = 0;

	for (bool killed = true; killed; life++) {
		assert_true(life < KILLED_LIVES_MAX);
		killed = killed_at(life % places, live, arg);
		check(arg);
	}
	print_message("killed %d times\n", life - 1);
	return life - 1;
}

/* Zeroed memory that outlives them. */
static inline void *
killed_outlives(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

#endif
