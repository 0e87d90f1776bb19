#ifndef IMAGE_H
#define IMAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Pictures to pixels: PNG and JPEG, told by their first bytes. The decoders are libraries and the files may be hostile: decode in a
 * process without secrets, with a limit of memory and time.
 *
 * Values are those of the file, as Pillow's convert("RGB") and convert("L") give them: colour profiles (gAMA, cHRM, sRGB, iCCP, sBIT) and
 * orientation (EXIF) are ignored; grey of less than 8 bits is stretched, of 16 bits the high byte counts; CMYK is read inverted, as Adobe
 * writes it; colours become grey by ITU-R 601: (19595 R + 38470 G + 7471 B) / 65536.
 */
#define IMAGE_SIDE_MAX 65535

enum image_alpha {
	IMAGE_ALPHA_WHITE, /* transparent pixels lie over white */
	IMAGE_ALPHA_DROP, /* opacity is ignored, as by Pillow's convert */
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

/* Decodes a picture; image_deinit frees *out. ERR_LIMIT, before a pixel is decoded, if the header claims more than most_pixels; ERR_INVALID
 * if the file is no picture, damaged or cut short. */
ERR_MUST_USE enum err image_decode(struct image *out, const void *file, size_t len,
    const struct image_wanted *wanted, struct why *why);
void image_deinit(struct image *i);
/* Scales to width x height (each new pixel is the mean of the area that it covers) and writes channel after channel to out. */
void image_fit(const struct image *i, uint32_t width, uint32_t height, uint8_t *out);

#endif
