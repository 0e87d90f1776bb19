#include "augment.h"

#include <string.h>

#include "draw.h"
#include "prng.h"
#include "recipe.h"

/* Of the sum of eight bytes. */
#define NOISE_MEAN 1020.0f
#define NOISE_DEVIATION 209.022328f /* sqrt(8 (256^2 - 1) / 12) */

struct picture {
	size_t channels, height, width;
	float *x, *scratch;
};

static void
words(const struct draw *d, uint64_t block, uint32_t out[4])
{
	const uint32_t key[2] = {(uint32_t)d->seed, (uint32_t)(d->seed >> 32)};
	const uint32_t counter[4] = {(uint32_t)block,
	    (uint32_t)(block >> 32 & 0xffff) | (uint32_t)AUGMENT_LAYER << 16, (uint32_t)d->step,
	    (uint32_t)(d->step >> 32) << 16 | (d->micro_batch & 0xffff)};

	prng_philox(counter, key, out);
}

/* 0..n-1. */
static uint32_t
below(uint32_t word, uint32_t n)
{
	return (uint32_t)((uint64_t)word * n >> 32);
}

static void
mirror(const struct picture *p)
{
	for (size_t row = 0; row < p->channels * p->height; row++) {
		float *at = p->x + row * p->width;
		for (size_t i = 0, k = p->width - 1; i < k; i++, k--) {
			float other = at[i];
			at[i] = at[k];
			at[k] = other;
		}
	}
}

/* By at most the picture's own height and width. */
static void
shift(const struct picture *p, long down, long right)
{
	long height = (long)p->height, width = (long)p->width;
	size_t plane = p->height * p->width;

	memcpy(p->scratch, p->x, p->channels * plane * sizeof(float));
	memset(p->x, 0, p->channels * plane * sizeof(float));
	long from = right > 0 ? 0 : -right, to = right > 0 ? width - right : width;
	for (size_t c = 0; c < p->channels; c++)
		for (long y = 0; y < height && to > from; y++)
			if (y + down >= 0 && y + down < height)
				memcpy(
				    p->x + c * plane + (size_t)((y + down) * width + from + right),
				    p->scratch + c * plane + (size_t)(y * width + from),
				    (size_t)(to - from) * sizeof(float));
}

static float
noise(const uint32_t two[2])
{
	uint32_t sum = 0;

	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 32; k += 8)
			sum += two[i] >> k & 0xff;
	return ((float)sum - NOISE_MEAN) / NOISE_DEVIATION;
}

static void
add_noise(const struct picture *p, const struct draw *d, uint64_t block, float deviation)
{
	size_t n = p->channels * p->height * p->width;
	uint32_t w[4];

	for (size_t i = 0; i < n; i += 2, block++) {
		words(d, block, w);
		p->x[i] += deviation * noise(w);
		if (i + 1 < n)
			p->x[i + 1] += deviation * noise(w + 2);
	}
}

static void
cut_out(const struct picture *p, uint32_t side, uint32_t word)
{
	long y = (long)((word >> 16) * p->height >> 16) - side / 2;
	long x = (long)((word & 0xffff) * p->width >> 16) - side / 2;
	size_t top = y > 0 ? (size_t)y : 0, left = x > 0 ? (size_t)x : 0;
	size_t bottom = (size_t)(y + (long)side), right = (size_t)(x + (long)side);

	bottom = bottom < p->height ? bottom : p->height;
	right = right < p->width ? right : p->width;
	for (size_t c = 0; c < p->channels; c++)
		for (size_t row = top; row < bottom; row++)
			for (size_t i = left; i < right; i++)
				p->x[(c * p->height + row) * p->width + i] = 0;
}

void
augment_example(const struct augment_spec *a, const uint32_t shape[3], const struct draw *draw,
    uint64_t example, float *x, float *scratch)
{
	const struct picture p = {shape[0], shape[1], shape[2], x, scratch};
	uint64_t blocks = 1 + ((uint64_t)shape[0] * shape[1] * shape[2] + 1) / 2;
	uint32_t w[4];

	words(draw, example * blocks, w);
	if (a->flip && w[0] >> 31)
		mirror(&p);
	if (a->crop > 0)
		shift(&p, (long)below(w[1], 2 * a->crop + 1) - (long)a->crop,
		    (long)below(w[2], 2 * a->crop + 1) - (long)a->crop);
	if (a->noise > 0)
		add_noise(&p, draw, example * blocks + 1, (float)a->noise);
	if (a->cutout > 0)
		cut_out(&p, a->cutout, w[3]);
}
