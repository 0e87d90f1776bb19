#ifndef CONV_FORWARD_H
#define CONV_FORWARD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backend_pass;
struct layer;
struct team;

/*
 * The forward pass of a convolution without groups. The inputs of all outputs are laid out in slabs of input channels (im2col); each slab's
 * products are a sum of their own, ascending, which is added to the slabs before. Neither threads nor examples side by side change a sum.
 */
struct conv_forward {
	size_t height, width; /* of a padded plane */
	size_t kernel_area;
	uint32_t channels, rows; /* of a full slab */
	/* Small planes: `joined` examples side by side, `some` channels of a slab at a time in rows of `pitch`. joined 1: each example
	 * alone. */
	size_t joined, pitch;
	uint32_t some;
	/* A thread's memory, in floats: where its parts begin, and all. */
	size_t planes, slab, under, sums;
	size_t lane;
};

/* False if a size overflows. */
bool conv_forward_plan(struct conv_forward *f, const struct layer *l);
void conv_forward_run(const struct layer *l, const struct backend_pass *pass, struct team *team);

#endif
