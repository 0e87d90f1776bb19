#include "cpu.h"

#include <float.h>
#include <sched.h>
#include <unistd.h>

/* What is rounded later than it is written, or summed in another order, gives other bits than everywhere else. */
_Static_assert(
    FLT_EVAL_METHOD == 0, "float arithmetic must round to float: -msse2 -mfpmath=sse on i386");
#ifdef __FAST_MATH__
#error "-ffast-math changes results"
#endif

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
