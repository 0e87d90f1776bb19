#include "backend_cpu.h"

#include <stdlib.h>

#include "backend.h"
#include "cpu_dense.h"
#include "cpu_norms.h"
#include "cpu_sequence.h"
#include "cpu_spatial.h"
#include "net_spec.h"

static void *
allocate(size_t bytes)
{
	void *p = NULL;

	/* Fresh pages come zeroed from the kernel and cost nothing until they are used. */
	if (posix_memalign(&p, 64, bytes > 0 ? bytes : 64) != 0)
		return NULL;
	return p;
}

static void *
cut(void *block, size_t bytes)
{
	void *p = realloc(block, bytes > 0 ? bytes : 1);

	if (!p)
		return block;
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
	[LAYER_ADD] = &elementwise_add_passes,
	[LAYER_CONV1D] = &conv_passes,
	[LAYER_GLOBAL_AVGPOOL] = &pool_global_passes,
	[LAYER_RELU6] = &activation_relu6_passes,
	[LAYER_SIGMOID] = &activation_sigmoid_passes,
	[LAYER_TANH] = &activation_tanh_passes,
	[LAYER_GELU] = &activation_gelu_passes,
	[LAYER_SILU] = &activation_silu_passes,
	[LAYER_HARDSWISH] = &activation_hardswish_passes,
	[LAYER_GROUPNORM] = &norm_group_passes,
	[LAYER_LAYERNORM] = &norm_row_passes,
	[LAYER_RMSNORM] = &norm_row_passes,
	[LAYER_BATCHNORM] = &batchnorm_passes,
	[LAYER_EMBEDDING] = &embedding_passes,
	[LAYER_POSITIONS] = &embedding_positions_passes,
	[LAYER_LSTM] = &recurrent_passes,
	[LAYER_GRU] = &recurrent_passes,
	[LAYER_ATTENTION] = &attention_passes,
	[LAYER_CONCAT] = &join_concat_passes,
	[LAYER_MULTIPLY] = &join_multiply_passes,
	[LAYER_LEAKY_RELU] = &slopes_leaky_relu_passes,
	[LAYER_ELU] = &slopes_elu_passes,
	[LAYER_DROPOUT2D] = &elementwise_dropout_passes,
	[LAYER_REVERSE] = &steps_reverse_passes,
	[LAYER_SCALE] = &slopes_scale_passes,
	[LAYER_POOL_STEPS] = &steps_pool_passes},
    .allocate = allocate,
    .cut = cut,
    .release = free,
};
