#ifndef IMAGE_H
#define IMAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Pictures to pixels: PNG and JPEG, told by their first bytes. The decoders are libraries that read what strangers made: call this in a
 * process that has nothing to lose, with a limit of memory and time.
 *
 * Values are those of the file, as Pillow's convert("RGB") and convert("L") have them: no note about light (gAMA, cHRM, sRGB, iCCP,
 * sBIT) and none about which way is up (EXIF) is heeded; grey of less than 8 bits is stretched, of 16 bits the high byte counts; CMYK
 * is read inverted, as Adobe writes it; grey of colours is ITU-R 601's (19595 R + 38470 G + 7471 B) / 65536.
 */
#define IMAGE_SIDE_MAX 65535

enum image_alpha {
	IMAGE_ALPHA_WHITE, /* transparent pixels lie over white */
	IMAGE_ALPHA_DROP, /* the colours below count, as with Pillow's convert */
	IMAGE_ALPHAS
};
extern const char *const image_alphas[]; /* ended by NULL */

struct image_wanted {
	bool grey;
	enum image_alpha alpha;
	uint64_t most_pixels;
};

struct image {
	uint32_t width, height;
	unsigned channels; /* 1: grey, 3: red, green, blue */
	uint8_t *pixels; /* row by row, a pixel's channels side by side */
};

/* ERR_LIMIT, before a pixel is decoded, if the header claims more than most_pixels; ERR_INVALID if it is no picture, or a damaged or
 * cut one. image_deinit frees *out. */
ERR_MUST_USE enum err image_decode(struct image *out, const void *file, size_t len,
    const struct image_wanted *wanted, struct why *why);
void image_deinit(struct image *i);
/* Scales to width x height (each pixel the mean of what it covers) and writes channel after channel. */
void image_fit(const struct image *i, uint32_t width, uint32_t height, uint8_t *out);

#endif
