#include <png.h>
#include <stdio.h>
#include <string.h>

#include "image_inside.h"

enum err
image_png_decode(struct image *out, const void *file, size_t len, bool grey, uint64_t most_pixels,
    struct why *why)
{
	png_image png = {.version = PNG_IMAGE_VERSION};
	static const png_color white = {255, 255, 255};

	/* The header alone. */
	if (!png_image_begin_read_from_memory(&png, file, len))
		return err_set(why, ERR_INVALID, "PNG: %.64s", png.message);
	out->width = png.width;
	out->height = png.height;
	png.format = grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
	enum err e = image_room(out, most_pixels, why);
	if (!e && !png_image_finish_read(&png, &white, out->pixels, 0, NULL))
		e = err_set(why, ERR_INVALID, "PNG: %.64s", png.message);
	png_image_free(&png);
	return e;
}
