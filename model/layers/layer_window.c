#include "layer_window.h"

#include "num.h"

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
check_groups(const struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;

	if (s->groups == 0 || l->in[0].c % s->groups != 0 || s->out % s->groups != 0)
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": its %u channels and the %u of its input do not fall into %u "
		    "groups",
		    s->name, s->out, l->in[0].c, s->groups);
	if ((s->type == LAYER_CONV1D) != (l->in[0].dims == 2))
		return err_set(why, ERR_INVALID,
		    s->type == LAYER_CONV1D
			? "layer \"%s\": conv1d needs an input of channels and length"
			: "layer \"%s\": conv2d needs an input of channels, height and width",
		    s->name);
	return ERR_OK;
}

enum err
layer_window_conv(struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	size_t area = (size_t)s->kernel[0] * s->kernel[1];
	struct layer_param p = {.suffix = "weight"};
	uint64_t h = 0, w = 0;
	enum err e = check_groups(l, why);

	if (!e)
		e = window(l, &h, &w, why);
	if (!e)
		e = s->type == LAYER_CONV1D ? layer_shape_rows(&l->out, s->out, w, s->name, why)
					    : layer_shape_set(&l->out, s->out, h, w, s->name, why);
	if (e)
		return e;
	const uint64_t deep = l->in[0].c / s->groups;
	if (!num_mul(area, (size_t)deep, &p.fan_in) ||
	    !num_mul(area, s->out / s->groups, &p.fan_out))
		return err_set(why, ERR_LIMIT, "layer \"%s\": it is too large", s->name);
	p.shape[p.dims++] = s->out;
	p.shape[p.dims++] = deep;
	for (int i = s->type == LAYER_CONV1D; i < 2; i++)
		p.shape[p.dims++] = s->kernel[i];
	e = layer_param_add(l, &p, why);
	p.suffix = "bias";
	p.dims = 1;
	p.start = START_BIAS;
	return e || !s->bias ? e : layer_param_add(l, &p, why);
}

enum err
layer_window_pool(struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	uint64_t h = 0, w = 0;
	enum err e = window(l, &h, &w, why);

	if (e)
		return e;
	if (s->padding[0] > s->kernel[0] / 2 || s->padding[1] > s->kernel[1] / 2)
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": the padding is more than half the kernel", s->name);
	if (l->in[0].dims == 2 && h == 1)
		return layer_shape_rows(&l->out, l->in[0].c, w, s->name, why);
	return layer_shape_set(&l->out, l->in[0].c, h, w, s->name, why);
}

enum err
layer_window_global(struct layer *l, struct why *why)
{
	return layer_shape_set(&l->out, l->in[0].c, 1, 1, l->spec.name, why);
}

double
layer_window_work(const struct layer *l)
{
	const struct layer_spec *s = &l->spec;
	const struct layer_shape *in = &l->in[0];

	if (s->type == LAYER_MAXPOOL2D || s->type == LAYER_AVGPOOL2D)
		return (double)l->out.size * s->kernel[0] * s->kernel[1];
	return (double)l->param[PARAM_WEIGHT].count * l->out.h * l->out.w +
	    (double)in->c * ((double)in->h + 2.0 * s->padding[0]) *
	    ((double)in->w + 2.0 * s->padding[1]);
}
