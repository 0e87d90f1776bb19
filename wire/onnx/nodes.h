#ifndef NODES_H
#define NODES_H
#include "onnx.h"
#include "protobuf.h"
#include "recipe.h"
#include "tensor.h"

/*
 * The graph on its way: values, the nodes that make them, constants. One layer is written at a time, by the functions of the other files,
 * which say with nodes_add what stands for it; the node whose `what` is NULL makes the layer's output. Within wire/onnx.
 *
 * Values are plain structs. A value that is neither a tensor of the model, `input` nor `output` is called /WHAT/LAYER: no layer's name
 * holds a slash. The first error sticks in `err` and `why`; after it calls do nothing of use, and values that they give name nothing.
 */

/* Room for "/", a word, "/", a layer's name, a number. */
#define NODES_NAME_MAX (TENSOR_NAME_MAX + 32)
#define NODES_INPUTS_MAX (RECIPE_INPUTS_MAX + 1)
#define NODES_ATTRIBUTES_MAX 5
#define NODES_INTS_MAX 8

/* The names of constants that are no layer's. */
#define NODES_MEAN "/normalise/mean"
#define NODES_STD "/normalise/std"
#define NODES_TO_PLANES "/planes/shape"

/* Dimensions, the batch included. ONNX tells [batch, n] and [batch, n, 1, 1] apart, the built-in network does not. */
enum nodes_rank { RANK_FLAT = 2, RANK_ROWS = 3, RANK_PLANES = 4 };

struct nodes_value {
	char name[NODES_NAME_MAX];
	enum nodes_rank rank;
	uint64_t rows; /* of RANK_ROWS: steps or channels; other ranks: 0 */
};

struct nodes_shape {
	enum nodes_rank rank;
	uint64_t rows;
};

enum nodes_kind { KIND_INT, KIND_INTS, KIND_FLOAT };

struct nodes_attribute {
	const char *name;
	enum nodes_kind kind;
	int64_t ints[NODES_INTS_MAX]; /* KIND_INT: the first */
	size_t count; /* KIND_INTS */
	float f;
};

struct nodes_node {
	const char *op;
	const char *what; /* of the output's name; NULL: it is the layer's own */
	bool second; /* the node's first output goes nowhere, the second is this one */
	const struct nodes_value *inputs[NODES_INPUTS_MAX];
	size_t input_count;
	struct nodes_attribute attributes[NODES_ATTRIBUTES_MAX]; /* by name, ascending */
	size_t attribute_count;
	/* Of the output; 0: as the first input. */
	enum nodes_rank rank;
	uint64_t rows;
};

struct nodes {
	struct protobuf to; /* the file */
	struct protobuf constants; /* what goes behind the nodes, as fields of the graph */
	const struct onnx_model *m;
	size_t at; /* the layer that is written */
	struct nodes_shape shapes[RECIPE_LAYERS_MAX]; /* of the outputs of those before */
	bool reshapes; /* the constant that nodes_input shapes by is there */
	bool used[TENSOR_COUNT_MAX]; /* tensors of the model that nodes read as they are */
	enum err err;
	struct why *why;
};

const struct layer_spec *nodes_layer(const struct nodes *g);
/* Of its input i. */
struct nodes_shape nodes_shape(const struct nodes *g, size_t i);
/* The rank that suits all inputs of the layer: flat if one is. */
enum nodes_rank nodes_rank(const struct nodes *g);
/* Input i of the layer with that rank; a node goes between where it has another. Rows become planes of height 1. */
struct nodes_value nodes_input(struct nodes *g, size_t i, enum nodes_rank rank);
/* Is the network's input whole numbers, as embeddings alone read them? */
bool nodes_tokens(const struct nodes *g);
/* The network's input, behind its normalisation, for which it writes the nodes. */
void nodes_normalise(struct nodes *g);

/* A tensor of the layer, as the model has it; ERR_NOTFOUND. */
struct nodes_value nodes_tensor(struct nodes *g, const char *suffix);
/* The same for those who read its elements. ERR_NOTFOUND, or ERR_INVALID if its first dimension has not that length, and NULL. */
const struct tensor *nodes_find(struct nodes *g, const char *suffix, uint64_t length);
/* How long it is in its first dimension; 0 if it is missing. */
uint64_t nodes_length(struct nodes *g, const char *suffix);
const float *nodes_elements(const struct nodes *g, const struct tensor *t);

/* Constants, copied: whole numbers in one dimension, one number without any, floats of a shape. */
struct nodes_value nodes_ints(struct nodes *g, const char *what, const int64_t *v, size_t n);
struct nodes_value nodes_index(struct nodes *g, const char *what, int64_t v);
struct nodes_value nodes_float(struct nodes *g, const char *what, float v);
struct nodes_value nodes_floats(
    struct nodes *g, const char *what, const float *v, const uint64_t *shape, unsigned dims);
/* `n` times the same. */
struct nodes_value nodes_fill(struct nodes *g, const char *what, float v, uint64_t n);

struct nodes_attribute nodes_int(const char *name, int64_t v);
struct nodes_value nodes_add(struct nodes *g, const struct nodes_node *n);
/* Of one or two inputs and no attributes. */
struct nodes_value nodes_one(
    struct nodes *g, const char *op, const char *what, const struct nodes_value *x);
struct nodes_value nodes_two(struct nodes *g, const char *op, const char *what,
    const struct nodes_value *a, const struct nodes_value *b);
/* With a number for the second: the constant is called /WHAT.by/LAYER. what: not NULL. */
struct nodes_value nodes_by(
    struct nodes *g, const char *op, const char *what, const struct nodes_value *x, float by);
/* Axes in another order, as many as x has. */
struct nodes_value nodes_turn(
    struct nodes *g, const char *what, const struct nodes_value *x, const int64_t *axes, size_t n);
/* What takes a shape or axes as a constant, /WHAT.by/LAYER: Reshape, Unsqueeze, Squeeze. */
struct nodes_value nodes_reshape(struct nodes *g, const char *op, const char *what,
    const struct nodes_value *x, const int64_t *v, size_t n, enum nodes_rank rank);
/* x times the transposed weight, with its bias (NULL: none): of rows. */
struct nodes_value nodes_project(struct nodes *g, const char *what, const struct nodes_value *x,
    const char *weight, const char *bias);

/* Behind the nodes: the model's tensors that they read, the normalisation, the constants. */
void nodes_initializers(struct nodes *g);
struct nodes_shape nodes_input_shape(const struct net_spec *net);

#endif
