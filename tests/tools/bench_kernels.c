/* bench_kernels: what gemm_choice_measure found on this machine, in microseconds, and what it takes; RIVULET_VECTORS and OPENBLAS_CORETYPE mask. */
#include <stdio.h>
#include <time.h>

#include "gemm_choice.h"

static double
milliseconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

int
main(void)
{
	struct gemm_choice choice;
	struct gemm_times times;
	char blas[256];
	double began = milliseconds(CLOCK_THREAD_CPUTIME_ID);

	if (gemm_choice_measure(&choice, &times))
		return 1;
	gemm_choice_blas(blas, sizeof(blas));
	printf("vectors of %s; %s\n%.1f ms of this thread\n%-17s %-9s", gemm_choice_vectors(), blas,
	    milliseconds(CLOCK_THREAD_CPUTIME_ID) - began, "class", "takes");
	for (size_t way = 0; way < GEMM_WAYS; way++)
		printf(" %9s", gemm_choice_way_name((enum gemm_way)way));
	for (size_t i = 0; i < GEMM_CLASSES; i++) {
		printf("\n%-17s %-9s", gemm_choice_class_name((enum gemm_class)i),
		    gemm_choice_way_name(choice.way[i]));
		for (size_t way = 0; way < GEMM_WAYS; way++)
			if (times.ms[i][way] > 0)
				printf(" %9.2f", 1000 * times.ms[i][way]);
			else
				printf(" %9s", "-");
	}
	printf("\n");
	return 0;
}
