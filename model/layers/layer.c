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

enum err
layer_window(const struct layer *l, uint64_t *height, uint64_t *width, struct why *why)
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
