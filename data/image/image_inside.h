#ifndef IMAGE_INSIDE_H
#define IMAGE_INSIDE_H
#include "image.h"

/* One decoder each, as image_decode. */
ERR_MUST_USE enum err image_png_decode(struct image *out, const void *file, size_t len,
    const struct image_wanted *wanted, struct why *why);
ERR_MUST_USE enum err image_jpeg_decode(struct image *out, const void *file, size_t len,
    const struct image_wanted *wanted, struct why *why);
/* Checks what a header claims, then makes room for the pixels, each of so many values. */
ERR_MUST_USE enum err image_room(
    struct image *out, unsigned values, const struct image_wanted *wanted, struct why *why);

/* Each turns n pixels into such of fewer values, which may lie at the same place. */
void image_colour_grey(uint8_t *out, const uint8_t *rgb, size_t n);
void image_colour_cmyk(uint8_t *rgb, const uint8_t *inverted, size_t n);
/* colours: 1 or 3, which the opacity follows. */
void image_colour_over_white(uint8_t *out, const uint8_t *in, unsigned colours, size_t n);

#endif
