#include <stdlib.h>

#include "cpu_inside.h"

static void *
allocate(size_t bytes)
{
	void *p = NULL;

	/* Fresh pages come zeroed from the kernel and cost nothing until they are used. */
	if (posix_memalign(&p, 64, bytes > 0 ? bytes : 64) != 0)
		return NULL;
	return p;
}

const struct backend backend_cpu = {
    .name = "cpu",
    .layers = {[LAYER_LINEAR] = &linear_passes,
	[LAYER_CONV2D] = &conv_passes,
	[LAYER_MAXPOOL2D] = &pool_max_passes,
	[LAYER_AVGPOOL2D] = &pool_average_passes,
	[LAYER_RELU] = &elementwise_relu_passes,
	[LAYER_FLATTEN] = &elementwise_flatten_passes,
	[LAYER_DROPOUT] = &elementwise_dropout_passes,
	[LAYER_ADD] = &elementwise_add_passes},
    .allocate = allocate,
    .release = free,
};
