/* bench_loop HOME ROUNDS: a device that adds a little to every weight, for bench_python.py. Prints of each round, from asking for a task
 * to its delta taken, the seconds and those of the processor. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backoff.h"
#include "rivulet.h"

int
main(int argc, char **argv)
{
	struct rivulet_options options = {
	    .home = argc > 1 ? argv[1] : NULL, .trainer = "loop", .data = "none", .examples = 1};
	const struct rivulet_task *task;
	struct rivulet *device;
	char why[256];

	if (argc != 3 || rivulet_open(&device, &options, why, sizeof(why)))
		return fprintf(stderr, "bench_loop: %s\n", argc == 3 ? why : "HOME ROUNDS"), 1;
	for (int i = atoi(argv[2]); i > 0; i--) {
		const struct rivulet_result result = {.examples = 1, .steps = 1};
		double began = backoff_now();
		clock_t cpu = clock();
		if (rivulet_next(device, 60, &task))
			return fprintf(stderr, "bench_loop: %s\n", rivulet_why(device)), 1;
		for (size_t t = 0; t < task->tensor_count; t++)
			for (uint64_t k = 0; k < task->tensors[t].count; k++)
				task->tensors[t].data[k] += 0.001f;
		if (rivulet_submit(device, &result))
			return fprintf(stderr, "bench_loop: %s\n", rivulet_why(device)), 1;
		printf(
		    "%.4f %.4f\n", backoff_now() - began, (double)(clock() - cpu) / CLOCKS_PER_SEC);
		fflush(stdout);
	}
	rivulet_close(device);
	return 0;
}
