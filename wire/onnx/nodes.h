#ifndef NODES_H
#define NODES_H
#include "onnx.h"
#include "protobuf.h"
#include "recipe.h"
#include "tensor.h"

/*
 * The ONNX graph while it is written: values, the nodes that make them, constants. One layer is written at a time, by the functions of the
 * other files, which add its nodes with nodes_add; the node whose `what` is NULL makes the layer's output. Within wire/onnx.
 *
 * Values are plain structs. A value that is neither a tensor of the model, `input` nor `output` is called /WHAT/LAYER: no layer's name
 * holds a slash. The first error sticks in `err` and `why`; later calls do nothing of use, and the values that they return name nothing.
 */

/* Room for "/", a word, "/", a layer's name, a number. */
#define NODES_NAME_MAX (TENSOR_NAME_MAX + 32)
#define NODES_INPUTS_MAX (RECIPE_INPUTS_MAX + 1)
#define NODES_ATTRIBUTES_MAX 5
#define NODES_INTS_MAX 8

/* The names of constants that belong to no layer. */
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
	/* The word WHAT of the output's name; NULL: the output is the layer's output. */
	const char *what;
	bool second; /* the output is the node's second one; its first is not used */
	const struct nodes_value *inputs[NODES_INPUTS_MAX];
	size_t input_count;
	struct nodes_attribute attributes[NODES_ATTRIBUTES_MAX]; /* by name, ascending */
	size_t attribute_count;
	/* Rank and rows of the output; rank 0: both as of the first input. */
	enum nodes_rank rank;
	uint64_t rows;
};

struct nodes {
	struct protobuf to; /* the file */
	struct protobuf constants; /* the graph's constants, which go behind the nodes */
	const struct onnx_model *m;
	size_t at; /* the current layer */
	struct nodes_shape shapes[RECIPE_LAYERS_MAX]; /* of the outputs of layers before `at` */
	bool reshapes; /* the constant NODES_TO_PLANES is there */
	bool used[TENSOR_COUNT_MAX]; /* tensors of the model that nodes read as they are */
	enum err err;
	struct why *why;
};

const struct layer_spec *nodes_layer(const struct nodes *g);
/* The shape of the current layer's input i. */
struct nodes_shape nodes_shape(const struct nodes *g, size_t i);
/* The rank that suits all inputs of the current layer: RANK_FLAT if one input is flat. */
enum nodes_rank nodes_rank(const struct nodes *g);
/* Input i of the current layer with rank `rank`; a node is added where the input has another rank. Rows become planes of height 1. */
struct nodes_value nodes_input(struct nodes *g, size_t i, enum nodes_rank rank);
/* Is the network's input whole numbers, as embeddings alone read them? */
bool nodes_tokens(const struct nodes *g);
/* Writes the nodes that normalise the network's input. */
void nodes_normalise(struct nodes *g);

/* The current layer's tensor "LAYER.suffix" as a value, unchanged; ERR_NOTFOUND. */
struct nodes_value nodes_tensor(struct nodes *g, const char *suffix);
/* The current layer's tensor "LAYER.suffix", to read its elements. NULL with ERR_NOTFOUND, or ERR_INVALID if its first dimension is not
 * `length`. */
const struct tensor *nodes_find(struct nodes *g, const char *suffix, uint64_t length);
/* The first dimension of the current layer's tensor "LAYER.suffix"; 0 if there is none. */
uint64_t nodes_length(struct nodes *g, const char *suffix);
const float *nodes_elements(const struct nodes *g, const struct tensor *t);

/* Constants, copied: whole numbers in one dimension, one number without any, floats of a shape. */
struct nodes_value nodes_ints(struct nodes *g, const char *what, const int64_t *v, size_t n);
struct nodes_value nodes_index(struct nodes *g, const char *what, int64_t v);
struct nodes_value nodes_float(struct nodes *g, const char *what, float v);
struct nodes_value nodes_floats(
    struct nodes *g, const char *what, const float *v, const uint64_t *shape, unsigned dims);
/* A constant of `n` times v. */
struct nodes_value nodes_fill(struct nodes *g, const char *what, float v, uint64_t n);

struct nodes_attribute nodes_int(const char *name, int64_t v);
struct nodes_value nodes_add(struct nodes *g, const struct nodes_node *n);
/* nodes_add for a node of one or two inputs and no attributes. */
struct nodes_value nodes_one(
    struct nodes *g, const char *op, const char *what, const struct nodes_value *x);
struct nodes_value nodes_two(struct nodes *g, const char *op, const char *what,
    const struct nodes_value *a, const struct nodes_value *b);
/* nodes_two with the number `by`, a constant called /WHAT.by/LAYER, as the second input. what: not NULL. */
struct nodes_value nodes_by(
    struct nodes *g, const char *op, const char *what, const struct nodes_value *x, float by);
/* x with its n axes in the order `axes` (Transpose). */
struct nodes_value nodes_turn(
    struct nodes *g, const char *what, const struct nodes_value *x, const int64_t *axes, size_t n);
/* An operator that takes a shape or axes as a constant, which is called /WHAT.by/LAYER: Reshape, Unsqueeze, Squeeze. */
struct nodes_value nodes_reshape(struct nodes *g, const char *op, const char *what,
    const struct nodes_value *x, const int64_t *v, size_t n, enum nodes_rank rank);
/* x times the transposed weight, with its bias (NULL: none): of rows. */
struct nodes_value nodes_project(struct nodes *g, const char *what, const struct nodes_value *x,
    const char *weight, const char *bias);

/* Writes what goes behind the nodes: the model's tensors that the nodes read, the normalisation, the constants. */
void nodes_initializers(struct nodes *g);
struct nodes_shape nodes_input_shape(const struct net_spec *net);

#endif
