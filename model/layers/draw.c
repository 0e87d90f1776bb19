#include "draw.h"

#include "prng.h"

struct place {
	uint32_t key[2], counter[4];
};

static void
four(struct place *p, uint64_t block, uint32_t layer, float out[4])
{
	uint32_t words[4];

	p->counter[0] = (uint32_t)block;
	p->counter[1] = (uint32_t)(block >> 32 & 0xffff) | layer << 16;
	prng_philox(p->counter, p->key, words);
	for (int i = 0; i < 4; i++)
		out[i] = (float)(words[i] >> 8) * 0x1p-24f;
}

void
draw_floats(const struct draw *d, uint32_t layer, size_t size, float *out, size_t n)
{
	if (d->stream) {
		prng_floats(d->stream, out, n);
		return;
	}
	struct place p = {.key = {(uint32_t)d->seed, (uint32_t)(d->seed >> 32)},
	    .counter = {0, 0, (uint32_t)d->step,
		(uint32_t)(d->step >> 32) << 16 | (d->micro_batch & 0xffff)}};
	uint64_t first = d->example * size;
	/* The first and the last four may belong to other passes in part. */
	for (size_t i = 0; i < n;) {
		float some[4];
		four(&p, (first + i) / 4, layer, some);
		for (size_t k = (first + i) % 4; k < 4 && i < n; k++)
			out[i++] = some[k];
	}
}
