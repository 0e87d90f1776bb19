#include "net_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field.h"
#include "json.h"

static const char *const type_names[] = {
    [LAYER_LINEAR] = "linear",
    [LAYER_CONV2D] = "conv2d",
    [LAYER_MAXPOOL2D] = "maxpool2d",
    [LAYER_AVGPOOL2D] = "avgpool2d",
    [LAYER_RELU] = "relu",
    [LAYER_FLATTEN] = "flatten",
    [LAYER_DROPOUT] = "dropout",
    [LAYER_ADD] = "add",
    [LAYER_CONV1D] = "conv1d",
    [LAYER_GLOBAL_AVGPOOL] = "global_avgpool",
    [LAYER_RELU6] = "relu6",
    [LAYER_SIGMOID] = "sigmoid",
    [LAYER_TANH] = "tanh",
    [LAYER_GELU] = "gelu",
    [LAYER_SILU] = "silu",
    [LAYER_HARDSWISH] = "hardswish",
    [LAYER_GROUPNORM] = "groupnorm",
    [LAYER_LAYERNORM] = "layernorm",
    [LAYER_RMSNORM] = "rmsnorm",
    [LAYER_BATCHNORM] = "batchnorm",
    [LAYER_EMBEDDING] = "embedding",
    [LAYER_POSITIONS] = "positions",
    [LAYER_LSTM] = "lstm",
    [LAYER_GRU] = "gru",
    [LAYER_ATTENTION] = "attention",
    [LAYER_CONCAT] = "concat",
    [LAYER_MULTIPLY] = "multiply",
    [LAYER_LEAKY_RELU] = "leaky_relu",
    [LAYER_ELU] = "elu",
    [LAYER_DROPOUT2D] = "dropout2d",
    [LAYER_REVERSE] = "reverse",
    [LAYER_POOL_STEPS] = "pool_steps",
    [LAYER_SCALE] = "scale",
    [LAYER_TYPES] = NULL,
};
static const char *const init_names[] = {[INIT_HE] = "he",
    [INIT_GLOROT] = "glorot",
    [INIT_ZERO] = "zero",
    [INIT_TORCH] = "torch",
    [INIT_NORMAL] = "normal",
    NULL};
static const char *const pool_names[] = {
    [POOL_MEAN] = "mean", [POOL_MAX] = "max", [POOL_FIRST] = "first", [POOL_LAST] = "last", NULL};
static const char *const loss_names[] = {
    [LOSS_CROSS_ENTROPY] = "cross_entropy", [LOSS_MSE] = "mse", [LOSS_BCE] = "bce", NULL};

const char *
net_spec_type_name(enum layer_type type)
{
	return type_names[type];
}

const char *const *
net_spec_type_names(void)
{
	return type_names;
}

bool
net_spec_labels(const struct net_spec *s)
{
	return s->loss == LOSS_CROSS_ENTROPY;
}

bool
net_spec_weighs(const struct net_spec *s)
{
	return s->ignores || s->class_weights;
}

bool
net_spec_has(const struct net_spec *s, enum layer_type type)
{
	for (size_t i = 0; i < s->layer_count; i++)
		if (s->layers[i].type == type)
			return true;
	return false;
}

static bool
grouped(const struct layer_spec *l)
{
	return (l->type == LAYER_CONV2D || l->type == LAYER_CONV1D) && l->groups > 1;
}

/* A linear layer that says more than its own weight. */
static bool
adapted(const struct layer_spec *l)
{
	return l->tied > 0 || l->rank > 0;
}

bool
net_spec_modern(const struct net_spec *s)
{
	for (size_t i = 0; i < s->layer_count; i++)
		if (s->layers[i].type > LAYER_ADD || grouped(&s->layers[i]) ||
		    adapted(&s->layers[i]))
			return true;
	return s->input_dims == 2;
}

bool
net_spec_ties(const struct net_spec *s)
{
	for (size_t i = 0; i < s->layer_count; i++)
		if (s->layers[i].tied > 0)
			return true;
	return false;
}

bool
net_spec_adapted(const struct net_spec *s)
{
	for (size_t i = 0; i < s->layer_count; i++)
		if (adapted(&s->layers[i]))
			return true;
	return false;
}

bool
net_spec_drops_weights(const struct net_spec *s)
{
	for (size_t i = 0; i < s->layer_count; i++)
		if (s->layers[i].type == LAYER_ATTENTION && s->layers[i].rate > 0)
			return true;
	return false;
}

bool
net_spec_widened(const struct net_spec *s)
{
	for (size_t i = 0; i < s->layer_count; i++)
		if (grouped(&s->layers[i]) || s->layers[i].init == INIT_NORMAL)
			return true;
	return s->loss > LOSS_MSE || s->target_input || s->ignores || s->smoothing > 0 ||
	    s->class_weights || s->arithmetic != ARITHMETIC_DEFAULT || s->input_dims == 2;
}

/* A pair of height and width, or one number for both. def NULL: must be there. */
static void
read_pair(struct field *o, const char *key, uint32_t out[2], uint32_t min, const uint32_t *def)
{
	struct field_list list;
	struct field item;
	double both;
	size_t i = 0;

	if (!field_has(o, key) && def) {
		memcpy(out, def, 2 * sizeof(*out));
		return;
	}
	if (json_double(json_get(o->value, key), &both)) {
		out[0] = out[1] = (uint32_t)field_u64(o, key, min, NET_SPEC_WINDOW_MAX, min);
		return;
	}
	field_array(&list, o, key, 2, 2);
	while (field_each(&list, &item))
		out[i++] = (uint32_t)field_u64(&item, NULL, min, NET_SPEC_WINDOW_MAX, min);
}

static uint32_t
read_count(struct field *o, const char *key, uint32_t max, uint64_t def)
{
	return (uint32_t)field_u64(o, key, 1, max, def);
}

static void
read_window(struct layer_spec *l, struct field *o)
{
	static const uint32_t one[2] = {1, 1}, zero[2] = {0, 0};
	bool pool = l->type != LAYER_CONV2D;

	read_pair(o, "kernel", l->kernel, 1, NULL);
	read_pair(o, "stride", l->stride, 1, pool ? l->kernel : one);
	read_pair(o, "padding", l->padding, 0, zero);
	if (pool && (l->padding[0] > l->kernel[0] / 2 || l->padding[1] > l->kernel[1] / 2))
		field_fail(o, "padding", "must be at most half the kernel");
}

/* Of one dimension: a window of height 1. */
static void
read_length(struct layer_spec *l, struct field *o)
{
	l->kernel[0] = l->stride[0] = 1;
	l->kernel[1] = read_count(o, "kernel", NET_SPEC_WINDOW_MAX, FIELD_MUST_U64);
	l->stride[1] = read_count(o, "stride", NET_SPEC_WINDOW_MAX, 1);
	l->padding[1] = (uint32_t)field_u64(o, "padding", 0, NET_SPEC_WINDOW_MAX, 0);
}

static void
read_init(struct layer_spec *l, struct field *o, enum layer_init def, double deviation)
{
	l->init = (enum layer_init)field_choice(o, "init", init_names, (int)def);
	if (l->init == INIT_NORMAL)
		l->deviation = (float)field_double(o, "deviation", 0, 100, deviation);
}

static void
read_weights(struct layer_spec *l, struct field *o, enum layer_init def)
{
	l->out = read_count(o, "out", NET_SPEC_OUT_MAX, FIELD_MUST_U64);
	l->bias = field_bool(o, "bias", true);
	read_init(l, o, def, 1);
}

static void
read_norm(struct layer_spec *l, struct field *o, double epsilon)
{
	if (l->type == LAYER_GROUPNORM)
		l->groups = read_count(o, "groups", NET_SPEC_OUT_MAX, FIELD_MUST_U64);
	if (l->type == LAYER_BATCHNORM)
		l->rate = (float)field_double(o, "momentum", 0, 1, 0.1);
	l->epsilon = (float)field_double(o, "epsilon", NET_SPEC_EPSILON_MIN, 1, epsilon);
	l->bias = field_bool(o, "affine", true);
}

static void
read_recurrent(struct layer_spec *l, struct field *o)
{
	static const char *const outputs[] = {"sequence", "last", NULL};

	read_weights(l, o, INIT_TORCH);
	l->stack = read_count(o, "layers", NET_SPEC_STACK_MAX, 1);
	l->last = field_choice(o, "output", outputs, 0) == 1;
}

static void
read_attention(struct layer_spec *l, struct field *o)
{
	static const char *const rotations[] = {"none", "rotary", NULL};

	l->heads = read_count(o, "heads", NET_SPEC_OUT_MAX, FIELD_MUST_U64);
	l->causal = field_bool(o, "causal", false);
	l->rotation = (enum layer_rotation)field_choice(o, "positions", rotations, ROTATION_NONE);
	l->bias = field_bool(o, "bias", true);
	l->rate = (float)field_double(o, "dropout", 0, NET_SPEC_RATE_MAX, 0);
	read_init(l, o, INIT_GLOROT, 1);
}

static void
read_gelu(struct layer_spec *l, struct field *o)
{
	static const char *const forms[] = {"none", "tanh", NULL};

	l->tanh_form = field_choice(o, "approximate", forms, 0) == 1;
}

static void
read_slope(struct layer_spec *l, struct field *o)
{
	double most = l->type == LAYER_SCALE ? NET_SPEC_SCALE_MAX : NET_SPEC_SLOPE_MAX;
	double alpha;

	if (l->type == LAYER_SCALE)
		alpha = field_double(o, "by", -most, most, FIELD_MUST_DOUBLE);
	else if (l->type == LAYER_LEAKY_RELU)
		alpha = field_double(o, "slope", 0, most, 0.01);
	else
		alpha = field_double(o, "alpha", 0, most, 1);
	l->alpha = (float)alpha;
}

/* Index of an earlier layer by name, LAYER_INPUT for "input", `count` if there is none. */
static int
find_layer(const struct layer_spec *layers, size_t count, const char *name)
{
	if (strcmp(name, "input") == 0)
		return LAYER_INPUT;
	for (size_t i = 0; i < count; i++)
		if (strcmp(layers[i].name, name) == 0)
			return (int)i;
	return (int)count;
}

static void
read_name(struct net_spec *net, size_t at, struct field *o)
{
	struct layer_spec *l = &net->layers[at];
	char def[NET_SPEC_NAME_MAX];

	snprintf(def, sizeof(def), "%s%zu", type_names[l->type], at + 1);
	field_string(o, "name", FIELD_NAME, l->name, sizeof(l->name), def);
	if (find_layer(net->layers, at, l->name) != (int)at)
		field_fail(o, "name", "\"%s\" is taken", l->name);
}

/* A matrix [out, in] of its own, which a linear layer can use as well. */
static bool
lends(const struct layer_spec *l)
{
	return l->type == LAYER_EMBEDDING || (l->type == LAYER_LINEAR && l->tied == 0);
}

static void
read_tie(struct net_spec *net, size_t at, struct field *o)
{
	char name[NET_SPEC_NAME_MAX];

	if (!field_has(o, "weights"))
		return;
	field_string(o, "weights", FIELD_NAME, name, sizeof(name), NULL);
	int from = find_layer(net->layers, at, name);
	if (from == LAYER_INPUT || from == (int)at)
		field_fail(o, "weights", "\"%s\" is no earlier layer", name);
	else if (!lends(&net->layers[from]))
		field_fail(o, "weights",
		    "\"%s\" is neither an embedding nor a linear layer with a weight of its own",
		    name);
	else
		net->layers[at].tied = (uint32_t)from + 1;
}

static void
read_lora(struct layer_spec *l, struct field *o)
{
	if (!field_has(o, "lora"))
		return;
	struct field lora = field_object(o, "lora");
	if (l->tied > 0)
		field_fail(o, "lora", "does not go with \"weights\"");
	l->rank = read_count(&lora, "rank", NET_SPEC_RANK_MAX, FIELD_MUST_U64);
	l->alpha = (float)field_double(
	    &lora, "alpha", NET_SPEC_ALPHA_MIN, NET_SPEC_ALPHA_MAX, (double)l->rank);
	field_end(&lora);
}

static bool
joins(enum layer_type type)
{
	return type == LAYER_ADD || type == LAYER_CONCAT || type == LAYER_MULTIPLY;
}

static void
read_inputs(struct net_spec *net, size_t at, struct field *o)
{
	struct layer_spec *l = &net->layers[at];
	struct field_list list;
	struct field item;
	char name[NET_SPEC_NAME_MAX];
	size_t most = l->type == LAYER_MULTIPLY ? 2 : joins(l->type) ? RECIPE_INPUTS_MAX : 1;
	size_t least = joins(l->type) ? 2 : 0;

	l->input_count = 1;
	l->inputs[0] = (int)at - 1; /* LAYER_INPUT for the first */
	if (field_array(&list, o, "inputs", least, most) == 0) {
		if (list.self.value)
			field_fail(o, "inputs", "must not be empty");
		return;
	}
	l->input_count = 0;
	while (field_each(&list, &item)) {
		field_string(&item, NULL, FIELD_NAME, name, sizeof(name), NULL);
		int from = find_layer(net->layers, at, name);
		if (from == (int)at)
			field_fail(&item, NULL, "\"%s\" is no earlier layer", name);
		l->inputs[l->input_count++] = from;
	}
}

static void
read_keys(struct layer_spec *l, struct field *o)
{
	switch (l->type) {
	case LAYER_LINEAR:
		read_weights(l, o, INIT_HE);
		break;
	case LAYER_CONV2D:
	case LAYER_CONV1D:
		read_weights(l, o, INIT_HE);
		l->groups = read_count(o, "groups", NET_SPEC_OUT_MAX, 1);
		(l->type == LAYER_CONV2D ? read_window : read_length)(l, o);
		break;
	case LAYER_MAXPOOL2D:
	case LAYER_AVGPOOL2D:
		read_window(l, o);
		break;
	case LAYER_DROPOUT:
	case LAYER_DROPOUT2D:
		l->rate = (float)field_double(o, "rate", 0, NET_SPEC_RATE_MAX, 0.5);
		break;
	case LAYER_GELU:
		read_gelu(l, o);
		break;
	case LAYER_LEAKY_RELU:
	case LAYER_ELU:
	case LAYER_SCALE:
		read_slope(l, o);
		break;
	case LAYER_POOL_STEPS:
		l->pool = (enum layer_pool)field_choice(o, "by", pool_names, FIELD_MUST_CHOICE);
		break;
	case LAYER_GROUPNORM:
	case LAYER_LAYERNORM:
	case LAYER_BATCHNORM:
		read_norm(l, o, 1e-5);
		break;
	case LAYER_RMSNORM:
		read_norm(l, o, 1e-6);
		break;
	case LAYER_EMBEDDING:
		l->vocabulary = read_count(o, "vocabulary", NET_SPEC_OUT_MAX, FIELD_MUST_U64);
		l->out = read_count(o, "out", NET_SPEC_OUT_MAX, FIELD_MUST_U64);
		read_init(l, o, INIT_NORMAL, 1);
		break;
	case LAYER_POSITIONS:
		read_init(l, o, INIT_NORMAL, 0.02);
		break;
	case LAYER_LSTM:
	case LAYER_GRU:
		read_recurrent(l, o);
		break;
	case LAYER_ATTENTION:
		read_attention(l, o);
		break;
	case LAYER_CONCAT:
		l->dim = read_count(o, "dim", 3, 1);
		break;
	default:
		break;
	}
}

/* There are too many for an error to list. */
static enum layer_type
read_type(struct field *o)
{
	char word[NET_SPEC_NAME_MAX];

	field_string(o, "type", FIELD_LINE, word, sizeof(word), NULL);
	for (int i = 0; i < LAYER_TYPES; i++)
		if (strcmp(word, type_names[i]) == 0)
			return (enum layer_type)i;
	field_fail(o, "type", "no layer is called \"%.40s\"; docs/jobs.md lists them", word);
	return LAYER_FLATTEN;
}

static void
read_layer(struct net_spec *net, size_t at, struct field *item)
{
	struct field o = field_object(item, NULL);
	struct layer_spec *l = &net->layers[at];

	l->type = read_type(&o);
	read_name(net, at, &o);
	read_inputs(net, at, &o);
	read_keys(l, &o);
	if (l->type == LAYER_LINEAR) {
		read_tie(net, at, &o);
		read_lora(l, &o);
	}
	field_end(&o);
}

static void
read_layers(struct net_spec *net, struct field *model)
{
	struct field_list list;
	struct field item;
	size_t n = field_array(&list, model, "layers", 0, RECIPE_LAYERS_MAX);

	if (list.self.value && n == 0)
		field_fail(model, "layers", "must not be empty");
	if (n == 0)
		return;
	net->layers = calloc(n, sizeof(*net->layers));
	if (!net->layers) {
		field_no_memory(model);
		return;
	}
	net->layer_count = n;
	for (size_t i = 0; field_each(&list, &item); i++)
		read_layer(net, i, &item);
}

static void
read_class_weights(struct net_spec *out, struct field *model)
{
	struct field_list list;
	struct field item;
	size_t n = field_array(&list, model, "class_weights", 0, RECIPE_CLASSES_MAX);

	if (n == 0)
		return;
	out->class_weights = calloc(n, sizeof(*out->class_weights));
	if (!out->class_weights) {
		field_no_memory(model);
		return;
	}
	for (size_t i = 0; field_each(&list, &item); i++)
		out->class_weights[i] = (float)field_double(&item, NULL, 0, 1e6, FIELD_MUST_DOUBLE);
	out->class_weight_count = n;
	for (size_t i = 0; i < n; i++)
		if (out->class_weights[i] > 0)
			return;
	field_fail(model, "class_weights", "must not all be 0");
}

/* What only goes with labels. */
static void
read_label_keys(struct net_spec *out, struct field *model)
{
	static const char *const keys[] = {
	    "ignore_index", "label_smoothing", "class_weights", NULL};

	for (size_t i = 0; keys[i]; i++)
		if (field_has(model, keys[i]) && !net_spec_labels(out))
			field_fail(model, keys[i], "goes with cross_entropy");
	out->ignores = field_has(model, "ignore_index");
	out->ignored =
	    (int32_t)field_i64(model, "ignore_index", -NET_SPEC_IGNORE_MAX, NET_SPEC_IGNORE_MAX, 0);
	out->smoothing = (float)field_double(model, "label_smoothing", 0, 1, 0);
	read_class_weights(out, model);
}

void
net_spec_read(struct net_spec *out, struct field *model)
{
	static const char *const targets[] = {"input", NULL};

	read_layers(out, model);
	out->loss = (enum loss_type)field_choice(
	    model, "loss", loss_names, out->layer_count ? FIELD_MUST_CHOICE : LOSS_CROSS_ENTROPY);
	read_label_keys(out, model);
	out->target_input =
	    field_has(model, "target") && field_choice(model, "target", targets, 0) == 0;
	if (out->target_input && net_spec_labels(out))
		field_fail(model, "target", "goes with mse and bce");
}

void
net_spec_deinit(struct net_spec *s)
{
	free(s->layers);
	free(s->class_weights);
	*s = (struct net_spec){0};
}
