#ifndef IMAGE_H
#define IMAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Pictures to pixels: PNG and JPEG, told by their first bytes. The decoders are libraries that read what strangers made: call this in a
 * process that has nothing to lose, with a limit of memory and time.
 */
#define IMAGE_SIDE_MAX 65535

struct image {
	uint32_t width, height;
	unsigned channels; /* 1: grey, 3: red, green, blue */
	uint8_t *pixels; /* row by row, a pixel's channels side by side */
};

/* Transparent pixels lie over white. ERR_LIMIT, before a pixel is decoded, if the header claims more than most_pixels; ERR_INVALID if it
 * is no picture, or a damaged one. image_deinit frees *out. */
ERR_MUST_USE enum err image_decode(struct image *out, const void *file, size_t len, bool grey,
    uint64_t most_pixels, struct why *why);
void image_deinit(struct image *i);
/* Scales to width x height (each pixel the mean of what it covers) and writes channel after channel. */
void image_fit(const struct image *i, uint32_t width, uint32_t height, uint8_t *out);

#endif
