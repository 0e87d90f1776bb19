#include "cpu.h"

#include <sched.h>
#include <unistd.h>

unsigned
cpu_count(void)
{
	cpu_set_t set;

	long n;

	/* The mask of a machine with more than 1024 processors does not fit into the set. */
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = CPU_COUNT(&set);
	else
		n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (unsigned)n : 1;
}
