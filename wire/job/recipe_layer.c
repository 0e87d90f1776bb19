#include "recipe_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {
    [LAYER_LINEAR] = "linear",
    [LAYER_CONV2D] = "conv2d",
    [LAYER_MAXPOOL2D] = "maxpool2d",
    [LAYER_AVGPOOL2D] = "avgpool2d",
    [LAYER_RELU] = "relu",
    [LAYER_FLATTEN] = "flatten",
    [LAYER_DROPOUT] = "dropout",
    [LAYER_ADD] = "add",
    NULL,
};
static const char *const init_names[] = {
    [INIT_HE] = "he", [INIT_GLOROT] = "glorot", [INIT_ZERO] = "zero", [INIT_TORCH] = "torch", NULL};
static const char *const loss_names[] = {
    [LOSS_CROSS_ENTROPY] = "cross_entropy", [LOSS_MSE] = "mse", NULL};

const char *
recipe_layer_type_name(enum layer_type type)
{
	return type_names[type];
}

const char *const *
recipe_layer_names(void)
{
	return type_names;
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
		out[0] = out[1] = (uint32_t)field_u64(o, key, min, RECIPE_WINDOW_MAX, min);
		return;
	}
	field_array(&list, o, key, 2, 2);
	while (field_each(&list, &item))
		out[i++] = (uint32_t)field_u64(&item, NULL, min, RECIPE_WINDOW_MAX, min);
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

static void
read_weights(struct layer_spec *l, struct field *o)
{
	l->out = (uint32_t)field_u64(o, "out", 1, RECIPE_OUT_MAX, FIELD_MUST_U64);
	l->bias = field_bool(o, "bias", true);
	l->init = (enum layer_init)field_choice(o, "init", init_names, INIT_HE);
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
	char def[RECIPE_NAME_MAX];

	snprintf(def, sizeof(def), "%s%zu", type_names[l->type], at + 1);
	field_string(o, "name", FIELD_NAME, l->name, sizeof(l->name), def);
	if (find_layer(net->layers, at, l->name) != (int)at)
		field_fail(o, "name", "\"%s\" is taken", l->name);
}

static void
read_inputs(struct net_spec *net, size_t at, struct field *o)
{
	struct layer_spec *l = &net->layers[at];
	struct field_list list;
	struct field item;
	char name[RECIPE_NAME_MAX];
	size_t most = l->type == LAYER_ADD ? RECIPE_INPUTS_MAX : 1;
	size_t least = l->type == LAYER_ADD ? 2 : 0;

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
read_layer(struct net_spec *net, size_t at, struct field *item)
{
	struct field o = field_object(item, NULL);
	struct layer_spec *l = &net->layers[at];

	l->type = (enum layer_type)field_choice(&o, "type", type_names, FIELD_MUST_CHOICE);
	read_name(net, at, &o);
	read_inputs(net, at, &o);
	switch (l->type) {
	case LAYER_LINEAR:
		read_weights(l, &o);
		break;
	case LAYER_CONV2D:
		read_weights(l, &o);
		read_window(l, &o);
		break;
	case LAYER_MAXPOOL2D:
	case LAYER_AVGPOOL2D:
		read_window(l, &o);
		break;
	case LAYER_DROPOUT:
		l->rate = (float)field_double(&o, "rate", 0, RECIPE_SHARE_MAX, 0.5);
		break;
	case LAYER_RELU:
	case LAYER_FLATTEN:
	case LAYER_ADD:
		break;
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

void
recipe_layer_read(struct recipe *out, struct field *doc)
{
	struct field model = field_object(doc, "model");

	if (!field_has(doc, "model"))
		field_fail(doc, "model", "missing");
	read_layers(&out->net, &model);
	out->net.loss = (enum loss_type)field_choice(&model, "loss", loss_names,
	    out->net.layer_count ? FIELD_MUST_CHOICE : LOSS_CROSS_ENTROPY);
	field_hex(&model, "init", out->init, sizeof(out->init), "");
	field_end(&model);
	if (out->net.layer_count == 0 && !out->init[0])
		field_fail(doc, "model", "needs \"layers\", \"init\" or both");
}
