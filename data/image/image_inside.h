#ifndef IMAGE_INSIDE_H
#define IMAGE_INSIDE_H
#include "image.h"

/* One decoder each, as image_decode. */
ERR_MUST_USE enum err image_png_decode(struct image *out, const void *file, size_t len, bool grey,
    uint64_t most_pixels, struct why *why);
ERR_MUST_USE enum err image_jpeg_decode(struct image *out, const void *file, size_t len, bool grey,
    uint64_t most_pixels, struct why *why);
/* Checks what a header claims, then makes room for the pixels. */
ERR_MUST_USE enum err image_room(struct image *out, uint64_t most_pixels, struct why *why);

#endif
