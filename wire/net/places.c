#include "places.h"

/* What an output has of each channel: height x width; in sequences and signals the first dimension is the channel. */
struct places {
	uint64_t h, w;
	bool rows; /* of two dimensions, even if one of them is 1 */
};

static struct places
flat(void)
{
	return (struct places){1, 1, false};
}

static struct places
rows(uint64_t width)
{
	return (struct places){1, width, true};
}

/* Of a window that slides over so many; 1 for what no network has. */
static uint64_t
slide(const struct layer_spec *l, int i, uint64_t extent)
{
	extent += 2 * (uint64_t)l->padding[i];
	return l->stride[i] > 0 && extent >= l->kernel[i]
	    ? (extent - l->kernel[i]) / l->stride[i] + 1
	    : 1;
}

static struct places
windowed(const struct layer_spec *l, struct places in)
{
	return (struct places){slide(l, 0, in.h), slide(l, 1, in.w), in.rows};
}

static struct places
joined(const struct layer_spec *l, const struct places *out, struct places first)
{
	struct places sum = first;

	for (size_t i = 1; first.rows && l->dim == 2 && i < l->input_count; i++)
		sum.w += out[l->inputs[i] + 1].w;
	return sum;
}

/* out[0] is the network's input, out[i + 1] layer i's output. */
static struct places
after(const struct layer_spec *l, const struct places *out)
{
	struct places in = out[l->inputs[0] + 1];

	switch (l->type) {
	case LAYER_LINEAR:
		return in.rows ? rows(l->out) : flat();
	case LAYER_CONV2D:
	case LAYER_CONV1D:
	case LAYER_MAXPOOL2D:
	case LAYER_AVGPOOL2D:
		return windowed(l, in);
	case LAYER_FLATTEN:
	case LAYER_GLOBAL_AVGPOOL:
	case LAYER_POOL_STEPS:
		return flat();
	case LAYER_EMBEDDING:
		return rows(l->out);
	case LAYER_LSTM:
	case LAYER_GRU:
		return l->last ? flat() : rows(l->out);
	case LAYER_CONCAT:
		return joined(l, out, in);
	default:
		return in;
	}
}

const struct layer_spec *
net_places_single(const struct net_spec *s)
{
	struct places out[RECIPE_LAYERS_MAX + 1];

	out[0] = s->input_dims == 2 ? rows(s->input[2])
				    : (struct places){s->input[1], s->input[2], false};
	for (size_t i = 0; i < s->layer_count && i < RECIPE_LAYERS_MAX; i++) {
		const struct layer_spec *l = &s->layers[i];
		for (size_t k = 0; k < l->input_count; k++)
			if (l->inputs[k] < LAYER_INPUT || l->inputs[k] >= (int)i)
				return NULL;
		const struct places *in = &out[l->inputs[0] + 1];
		if (l->type == LAYER_BATCHNORM && in->h * in->w == 1)
			return l;
		out[i + 1] = after(l, out);
	}
	return NULL;
}
