#ifndef NET_SPEC_H
#define NET_SPEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct field;

/*
 * A network as a job describes it: layers, what each reads, the loss. Plain structs that model/ takes. Names, layouts and formulas are
 * PyTorch's; docs/jobs.md says what each key means.
 */
#define NET_SPEC_NAME_MAX 64
#define RECIPE_LAYERS_MAX 256
#define RECIPE_INPUTS_MAX 8
#define RECIPE_CLASSES_MAX 4096
/* Limits of numbers. */
#define NET_SPEC_OUT_MAX 1000000
#define NET_SPEC_WINDOW_MAX 1024
#define NET_SPEC_STACK_MAX 4 /* recurrent layers in one */
#define NET_SPEC_EPSILON_MIN 1e-12
#define NET_SPEC_RANK_MAX 4096 /* of lora */
#define NET_SPEC_SCALE_MAX 1e6 /* either sign */
#define NET_SPEC_ALPHA_MIN 1e-6
#define NET_SPEC_ALPHA_MAX 1e6
#define NET_SPEC_SLOPE_MAX 1e3 /* below 0, of leaky_relu and elu */
#define NET_SPEC_RATE_MAX 0.999 /* of dropout: below 1 in f32 as well */
#define NET_SPEC_IGNORE_MAX 2147483647

enum layer_type {
	LAYER_LINEAR, /* of the last dimension */
	LAYER_CONV2D,
	LAYER_MAXPOOL2D,
	LAYER_AVGPOOL2D, /* padding counts as zeros, as in PyTorch's default */
	LAYER_RELU,
	LAYER_FLATTEN,
	LAYER_DROPOUT,
	LAYER_ADD, /* sum of its inputs, all of one shape */
	LAYER_CONV1D, /* of an input of channels and length */
	LAYER_GLOBAL_AVGPOOL, /* the mean of each channel */
	LAYER_RELU6,
	LAYER_SIGMOID,
	LAYER_TANH,
	LAYER_GELU,
	LAYER_SILU,
	LAYER_HARDSWISH,
	LAYER_GROUPNORM,
	LAYER_LAYERNORM, /* over the last dimension */
	LAYER_RMSNORM, /* over the last dimension */
	LAYER_BATCHNORM, /* of channels */
	LAYER_EMBEDDING, /* whole numbers to rows */
	LAYER_POSITIONS, /* adds a trained row for each step of a sequence */
	LAYER_LSTM,
	LAYER_GRU,
	LAYER_ATTENTION, /* multi-head self-attention, its projections included */
	LAYER_CONCAT,
	LAYER_MULTIPLY, /* the second input may have one value for each channel */
	LAYER_LEAKY_RELU,
	LAYER_ELU,
	LAYER_DROPOUT2D, /* of whole channels */
	LAYER_REVERSE, /* a sequence from its last step to its first */
	LAYER_POOL_STEPS, /* one row of all steps */
	LAYER_SCALE, /* times a number */
	LAYER_TYPES
};

/* How first weights are drawn. Uniform with bound sqrt(6/fan_in) (He) or sqrt(6/(fan_in+fan_out)) (Glorot), biases zero; uniform with bound
 * 1/sqrt(fan_in), biases too (Torch). Normal: mean 0, deviation layer_spec.deviation, from the sum of twelve uniform numbers. */
enum layer_init { INIT_HE, INIT_GLOROT, INIT_ZERO, INIT_TORCH, INIT_NORMAL };

enum layer_rotation {
	ROTATION_NONE,
	ROTATION_ROTARY /* rotary position embedding; pairs are the two halves of a head's vector */
};

/* What pool_steps makes of the rows of a sequence. */
enum layer_pool { POOL_MEAN, POOL_MAX, POOL_FIRST, POOL_LAST };

#define LAYER_INPUT (-1) /* the network's input, called "input" */

struct layer_spec {
	enum layer_type type;
	char name[NET_SPEC_NAME_MAX]; /* given, or type and 1-based position: "linear3" */
	/* Indices of earlier layers or LAYER_INPUT; default: the layer before. */
	int inputs[RECIPE_INPUTS_MAX];
	size_t input_count;
	uint32_t out; /* features or channels; of an embedding: width of a row */
	uint32_t kernel[2], stride[2], padding[2]; /* height, width; conv1d: 1, length */
	uint32_t groups; /* conv, groupnorm */
	uint32_t vocabulary; /* embedding: rows */
	uint32_t stack; /* lstm, gru: layers on top of each other */
	uint32_t heads; /* attention */
	uint32_t dim; /* concat: 1 is the first after the batch */
	/* linear: 1 + the index of the earlier layer whose weight this layer uses; 0: the layer has a weight of its own. */
	uint32_t tied;
	/* linear: rank of the product of two matrices that is added to the weight, times alpha / rank (LoRA); 0: no such product. */
	uint32_t rank;
	/* linear: see rank; elu: alpha; leaky_relu: the slope below 0; scale: the factor. */
	float alpha;
	bool bias; /* of norms: trained scale and shift */
	bool last; /* lstm, gru: only the output of the last step */
	bool causal; /* attention: a step sees itself and earlier steps only */
	bool tanh_form; /* gelu: the approximation by tanh */
	enum layer_rotation rotation;
	enum layer_pool pool; /* pool_steps */
	enum layer_init init;
	float deviation; /* INIT_NORMAL */
	/* dropout, attention (of its weights): probability of zero, 0 <= rate < 1; batchnorm: share of a batch in the running statistics */
	float rate;
	float epsilon; /* norms */
};

enum loss_type {
	LOSS_CROSS_ENTROPY, /* softmax inside; of a sequence: for each step */
	LOSS_MSE, /* mean over elements */
	LOSS_BCE, /* sigmoid inside; mean over elements */
};

/* How products are made. */
enum net_arithmetic {
	/* Exact in a network with a layer that version 402de29 lacks; in others as in that version: large products by OpenBLAS. */
	ARITHMETIC_DEFAULT,
	ARITHMETIC_EXACT, /* the same bits on every CPU */
	ARITHMETIC_FAST, /* whatever is quickest: OpenBLAS, fused multiply-add */
};

struct net_spec {
	uint32_t input
	    [3]; /* channels, height, width; {n, 1, 1} of n features, {a, 1, b} of two dimensions */
	/* 1 to 3, the number of dimensions of data.shape; 0 without data.shape. */
	unsigned input_dims;
	struct layer_spec *layers;
	size_t layer_count; /* 0: the model is given by init only and needs an external trainer */
	enum loss_type loss;
	bool target_input; /* the loss compares the output with the input */
	bool ignores; /* cross-entropy: labels that are `ignored` do not count */
	int32_t ignored;
	float smoothing; /* cross-entropy: share of a label spread over all classes */
	float *class_weights; /* owned; NULL: all 1 */
	size_t class_weight_count;
	enum net_arithmetic arithmetic;
};

/* Reads "layers" and the keys of the loss from an object; errors stick in the reader. net_spec_deinit frees what *out owns. */
void net_spec_read(struct net_spec *out, struct field *model);
void net_spec_deinit(struct net_spec *s);
/* Does a layer use another layer's weight (layer_spec.tied), or add a low-rank product to its own (layer_spec.rank)? */
bool net_spec_adapted(const struct net_spec *s);
/* Does a layer use another layer's weight? */
bool net_spec_ties(const struct net_spec *s);
/* Has the network a setting that version 402de29 does not understand, other than layer types, `tied` and `rank`? */
bool net_spec_widened(const struct net_spec *s);
/* Has an attention layer dropout of its weights? */
bool net_spec_drops_weights(const struct net_spec *s);
/* Has the network a layer, or an input of two dimensions, that version 402de29 does not know? */
bool net_spec_modern(const struct net_spec *s);
bool net_spec_has(const struct net_spec *s, enum layer_type type);
const char *net_spec_type_name(enum layer_type type);
/* Names of all layer types, NULL-terminated, for the device's offer. */
const char *const *net_spec_type_names(void);
/* Do labels count unequally in the mean loss: not at all if they are ignored, or by their classes' weights? */
bool net_spec_weighs(const struct net_spec *s);
/* Has the loss a label for each example, or each step? Otherwise there are targets. */
bool net_spec_labels(const struct net_spec *s);

#endif
