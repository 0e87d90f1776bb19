#include "layer.h"

#include "num.h"

enum err
layer_shape_set(
    struct layer_shape *s, uint64_t c, uint64_t h, uint64_t w, const char *name, struct why *why)
{
	size_t size;

	if (c == 0 || h == 0 || w == 0)
		return err_set(why, ERR_INVALID, "layer \"%s\": its output is empty", name);
	if (c > UINT32_MAX || h > UINT32_MAX || w > UINT32_MAX || !num_mul(c, h, &size) ||
	    !num_mul(size, w, &size) || size > SIZE_MAX / sizeof(float))
		return err_set(why, ERR_LIMIT, "layer \"%s\": its output is too large", name);
	*s = (struct layer_shape){(uint32_t)c, (uint32_t)h, (uint32_t)w, size};
	return ERR_OK;
}

/* Output extents of a window that slides over in[0]. */
static enum err
window(const struct layer *l, uint64_t *height, uint64_t *width, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	uint64_t extent[2] = {l->in[0].h, l->in[0].w};

	for (int i = 0; i < 2; i++) {
		if (s->kernel[i] == 0 || s->stride[i] == 0)
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": kernel and stride must be at least 1", s->name);
		extent[i] += 2 * (uint64_t)s->padding[i];
		if (extent[i] < s->kernel[i])
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": the kernel is larger than its padded input", s->name);
		extent[i] = (extent[i] - s->kernel[i]) / s->stride[i] + 1;
	}
	*height = extent[0];
	*width = extent[1];
	return ERR_OK;
}

static enum err
check_linear(struct layer *l, struct why *why)
{
	const struct layer_shape *in = &l->in[0];
	enum err e = layer_shape_set(&l->out, l->spec.out, 1, 1, l->spec.name, why);

	if (e)
		return e;
	if (in->h != 1 || in->w != 1)
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": linear needs a flat input; put a flatten layer before it",
		    l->spec.name);
	if (!num_mul(in->c, l->out.c, &l->weights))
		return err_set(why, ERR_LIMIT, "layer \"%s\": too many weights", l->spec.name);
	l->biases = l->spec.bias ? l->out.c : 0;
	l->weight_dims = 2;
	l->weight_shape[0] = l->out.c;
	l->weight_shape[1] = in->c;
	l->fan_in = in->c;
	l->fan_out = l->out.c;
	return ERR_OK;
}

static enum err
check_conv(struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	size_t area = (size_t)s->kernel[0] * s->kernel[1];
	uint64_t h = 0, w = 0;
	enum err e = window(l, &h, &w, why);

	if (!e)
		e = layer_shape_set(&l->out, s->out, h, w, s->name, why);
	if (e)
		return e;
	if (!num_mul(area, l->in[0].c, &l->fan_in) || !num_mul(area, s->out, &l->fan_out) ||
	    !num_mul(l->fan_in, s->out, &l->weights))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", s->name);
	l->biases = s->bias ? s->out : 0;
	l->weight_dims = 4;
	l->weight_shape[0] = s->out;
	l->weight_shape[1] = l->in[0].c;
	l->weight_shape[2] = s->kernel[0];
	l->weight_shape[3] = s->kernel[1];
	return ERR_OK;
}

static enum err
check_pool(struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	uint64_t h = 0, w = 0;
	enum err e = window(l, &h, &w, why);

	if (e)
		return e;
	if (s->padding[0] > s->kernel[0] / 2 || s->padding[1] > s->kernel[1] / 2)
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": the padding is more than half the kernel", s->name);
	return layer_shape_set(&l->out, l->in[0].c, h, w, s->name, why);
}

static enum err
check_relu(struct layer *l, struct why *why)
{
	(void)why;
	l->out = l->in[0];
	return ERR_OK;
}

static enum err
check_dropout(struct layer *l, struct why *why)
{
	if (!(l->spec.rate >= 0 && l->spec.rate < 1))
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": rate must be at least 0 and below 1", l->spec.name);
	l->out = l->in[0];
	return ERR_OK;
}

static enum err
check_flatten(struct layer *l, struct why *why)
{
	return layer_shape_set(&l->out, l->in[0].size, 1, 1, l->spec.name, why);
}

static enum err
check_add(struct layer *l, struct why *why)
{
	for (size_t i = 1; i < l->spec.input_count; i++)
		if (l->in[i].c != l->in[0].c || l->in[i].h != l->in[0].h ||
		    l->in[i].w != l->in[0].w)
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": its inputs are of different shapes", l->spec.name);
	l->out = l->in[0];
	return ERR_OK;
}

static const struct {
	enum err (*check)(struct layer *l, struct why *why);
	struct layer_traits traits;
} types[] = {
    [LAYER_LINEAR] = {check_linear, {0}},
    [LAYER_CONV2D] = {check_conv, {0}},
    [LAYER_MAXPOOL2D] = {check_pool, {0}},
    [LAYER_AVGPOOL2D] = {check_pool, {0}},
    [LAYER_RELU] = {check_relu, {.may_alias = true}},
    [LAYER_FLATTEN] = {check_flatten, {.same_bytes = true}},
    [LAYER_DROPOUT] = {check_dropout, {.may_alias = true}},
    [LAYER_ADD] = {check_add, {.many_inputs = true}},
};

enum err
layer_check_type(const struct layer *l, struct why *why)
{
	if (l->spec.type < 0 || (size_t)l->spec.type >= sizeof(types) / sizeof(types[0]))
		return err_set(why, ERR_UNSUPPORTED, "layer \"%s\": unknown type", l->spec.name);
	return ERR_OK;
}

const struct layer_traits *
layer_traits(enum layer_type type)
{
	return &types[type].traits;
}

double
layer_work(const struct layer *l)
{
	const struct layer_spec *s = &l->spec;
	const struct layer_shape *in = &l->in[0];
	double out = (double)l->out.h * l->out.w;

	switch (s->type) {
	case LAYER_LINEAR:
		return (double)l->weights;
	case LAYER_CONV2D:
		return (double)l->weights * out +
		    (double)in->c * ((double)in->h + 2.0 * s->padding[0]) *
		    ((double)in->w + 2.0 * s->padding[1]);
	case LAYER_MAXPOOL2D:
	case LAYER_AVGPOOL2D:
		return (double)l->out.size * s->kernel[0] * s->kernel[1];
	default:
		return (double)l->out.size;
	}
}

enum err
layer_check(struct layer *l, struct why *why)
{
	return types[l->spec.type].check(l, why);
}
