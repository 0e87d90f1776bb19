#ifndef NETS_H
#define NETS_H
#include <stdio.h>
#include <string.h>

#include "recipe.h"

/* Network descriptions by hand, for tests and benchmarks: each call appends a layer behind the last one. */
struct nets {
	struct net_spec spec;
	struct layer_spec layers[32];
};

static inline void
nets_start(struct nets *n, uint32_t c, uint32_t h, uint32_t w, enum loss_type loss)
{
	*n = (struct nets){
	    .spec = {.input = {c, h, w}, .input_dims = h == 1 && w == 1 ? 1 : 3, .loss = loss}};
	n->spec.layers = n->layers;
}

static inline struct layer_spec *
nets_add(struct nets *n, enum layer_type type, const char *name)
{
	struct layer_spec *l = &n->layers[n->spec.layer_count];

	l->type = type;
	snprintf(l->name, sizeof(l->name), "%s", name);
	l->inputs[0] = (int)n->spec.layer_count - 1;
	l->input_count = 1;
	l->bias = true;
	l->groups = 1;
	n->spec.layer_count++;
	return l;
}

static inline struct layer_spec *
nets_linear(struct nets *n, const char *name, uint32_t out)
{
	struct layer_spec *l = nets_add(n, LAYER_LINEAR, name);

	l->out = out;
	return l;
}

static inline struct layer_spec *
nets_window(struct nets *n, enum layer_type type, const char *name, uint32_t kernel,
    uint32_t stride, uint32_t padding)
{
	struct layer_spec *l = nets_add(n, type, name);

	for (int i = 0; i < 2; i++) {
		l->kernel[i] = kernel;
		l->stride[i] = stride;
		l->padding[i] = padding;
	}
	return l;
}

static inline struct layer_spec *
nets_conv(struct nets *n, const char *name, uint32_t out, uint32_t kernel, uint32_t padding)
{
	struct layer_spec *l = nets_window(n, LAYER_CONV2D, name, kernel, 1, padding);

	l->out = out;
	return l;
}

/* 784-200-200-10 of the FedAvg paper. */
static inline void
nets_2nn(struct nets *n)
{
	nets_start(n, 1, 28, 28, LOSS_CROSS_ENTROPY);
	nets_add(n, LAYER_FLATTEN, "flatten");
	nets_linear(n, "fc1", 200);
	nets_add(n, LAYER_RELU, "relu1");
	nets_linear(n, "fc2", 200);
	nets_add(n, LAYER_RELU, "relu2");
	nets_linear(n, "fc3", 10);
}

/* The CNN of the FedAvg paper, 1,663,370 parameters. */
static inline void
nets_cnn(struct nets *n)
{
	nets_start(n, 1, 28, 28, LOSS_CROSS_ENTROPY);
	nets_conv(n, "conv1", 32, 5, 2);
	nets_add(n, LAYER_RELU, "relu1");
	nets_window(n, LAYER_MAXPOOL2D, "pool1", 2, 2, 0);
	nets_conv(n, "conv2", 64, 5, 2);
	nets_add(n, LAYER_RELU, "relu2");
	nets_window(n, LAYER_MAXPOOL2D, "pool2", 2, 2, 0);
	nets_add(n, LAYER_FLATTEN, "flatten");
	nets_linear(n, "fc1", 512);
	nets_add(n, LAYER_RELU, "relu3");
	nets_linear(n, "fc2", 10);
}

/* LeNet-5 as drawn today: 6@5x5, pool, 16@5x5, pool, 120, 84, 10, ReLU. */
static inline void
nets_lenet(struct nets *n)
{
	nets_start(n, 1, 28, 28, LOSS_CROSS_ENTROPY);
	nets_conv(n, "conv1", 6, 5, 2);
	nets_add(n, LAYER_RELU, "relu1");
	nets_window(n, LAYER_MAXPOOL2D, "pool1", 2, 2, 0);
	nets_conv(n, "conv2", 16, 5, 0);
	nets_add(n, LAYER_RELU, "relu2");
	nets_window(n, LAYER_MAXPOOL2D, "pool2", 2, 2, 0);
	nets_add(n, LAYER_FLATTEN, "flatten");
	nets_linear(n, "fc1", 120);
	nets_add(n, LAYER_RELU, "relu3");
	nets_linear(n, "fc2", 84);
	nets_add(n, LAYER_RELU, "relu4");
	nets_linear(n, "fc3", 10);
}

#endif
