/* A device with a training loop of its own: logistic regression on points drawn here. README.md says how to run it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rivulet.h"

enum { POINTS = 500 };
static float x[POINTS][2];

/* One pass of SGD over weight [2][2] and bias [2], which change in place. */
static void
train(float *weight, float *bias, float rate, struct rivulet_result *out)
{
	for (int i = 0; i < POINTS; i++) {
		int y = x[i][0] + x[i][1] > 0; /* the class: a side of a line */
		float score = bias[1] - bias[0];
		for (int k = 0; k < 2; k++)
			score += (weight[2 + k] - weight[k]) * x[i][k];
		float p = 1 / (1 + expf(-score)), step = rate * (p - (float)y);
		out->loss -= log((double)(y ? p : 1 - p) + 1e-9) / POINTS;
		out->accuracy += (p > 0.5f) == y ? 1.0 / POINTS : 0;
		for (int side = 0; side < 2; side++, step = -step) {
			bias[side] += step;
			for (int k = 0; k < 2; k++)
				weight[2 * side + k] += step * x[i][k];
		}
	}
}

int
main(int argc, char **argv)
{
	struct rivulet_options options = {.home = argc > 1 ? argv[1] : NULL,
	    .trainer = "own-loop",
	    .data = "points",
	    .examples = POINTS};
	const struct rivulet_task *task;
	struct rivulet *device;
	char why[256];

	for (int i = 0; i < 2 * POINTS; i++)
		x[i / 2][i % 2] = (float)rand() / (float)RAND_MAX * 2 - 1;
	if (rivulet_open(&device, &options, why, sizeof(why)))
		return fprintf(stderr, "own_loop: %s\n", why), 1;
	while (rivulet_next(device, 30, &task) == RIVULET_OK) {
		struct rivulet_result result = {.examples = POINTS, .steps = POINTS};
		train(task->tensors[0].data, task->tensors[1].data, (float)task->rate, &result);
		printf("round %d: accuracy %.3f\n", (int)task->round, result.accuracy);
		if (rivulet_submit(device, &result))
			fprintf(stderr, "own_loop: %s\n", rivulet_why(device));
	}
	rivulet_close(device);
	return 0;
}
