#include "blocks.h"

#include "layer.h"
#include "net_spec.h"

void
blocks_cuts(const struct blocks_in *in, bool *cut)
{
	for (size_t c = 1; c < in->count; c++)
		cut[c] = !in->layers[c].uncut;
	/* What crosses must not be written over behind the place. */
	for (size_t i = 0; i < in->count; i++)
		for (size_t c = in->root[i] + 1; c <= i; c++)
			cut[c] = false;
}

struct stretch {
	size_t bytes;
	bool trains;
};

static struct stretch
look(const struct blocks_in *in, size_t from, size_t to)
{
	struct stretch s = {0};

	for (size_t i = from; i < to; i++) {
		s.bytes += in->bytes[i];
		s.trains |= in->layers[i].trains;
	}
	return s;
}

void
blocks_find(const struct blocks_in *in, const bool *cut, size_t limit, size_t *end)
{
	size_t first = 0, last = 0; /* of the block so far */

	for (size_t i = 0; i < in->count; i++)
		end[i] = 0;
	for (size_t c = 1; c <= in->count; c++) {
		if (c < in->count && !cut[c])
			continue;
		struct stretch s = look(in, first, c);
		if (last > first && s.bytes > limit) {
			for (size_t i = first; i < last; i++)
				end[i] = last;
			first = last;
		} else if (!s.trains) {
			first = c;
		}
		last = c;
	}
}
