#ifndef IMAGE_INSIDE_H
#define IMAGE_INSIDE_H
#include "image.h"

/* The decoder of each format; contract of image_decode. */
ERR_MUST_USE enum err image_png_decode(struct image *out, const void *file, size_t len,
    const struct image_wanted *wanted, struct why *why);
ERR_MUST_USE enum err image_jpeg_decode(struct image *out, const void *file, size_t len,
    const struct image_wanted *wanted, struct why *why);
/* Checks the size that a header claims against `wanted`, then allocates the pixels, each of `values` bytes. */
ERR_MUST_USE enum err image_room(
    struct image *out, unsigned values, const struct image_wanted *wanted, struct why *why);

/* Each converts n pixels to pixels of fewer values; output and input may be the same memory. */
void image_colour_grey(uint8_t *out, const uint8_t *rgb, size_t n);
void image_colour_cmyk(uint8_t *rgb, const uint8_t *inverted, size_t n);
/* Lays n pixels over white. colours: 1 or 3 values of a pixel, followed by its opacity. */
void image_colour_over_white(uint8_t *out, const uint8_t *in, unsigned colours, size_t n);

#endif
