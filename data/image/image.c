#include "image_inside.h"

#include <stdlib.h>
#include <string.h>

void
image_deinit(struct image *i)
{
	free(i->pixels);
	*i = (struct image){.width = 0};
}

enum err
image_room(struct image *out, unsigned values, const struct image_wanted *wanted, struct why *why)
{
	uint64_t pixels = (uint64_t)out->width * out->height;

	if (out->width < 1 || out->height < 1)
		return err_set(why, ERR_INVALID, "the picture has no pixels");
	if (out->width > IMAGE_SIDE_MAX || out->height > IMAGE_SIDE_MAX ||
	    pixels > wanted->most_pixels)
		return err_set(why, ERR_LIMIT,
		    "the header claims %u x %u pixels, more than %llu are not decoded", out->width,
		    out->height, (unsigned long long)wanted->most_pixels);
	out->pixels = malloc((size_t)pixels * values);
	return out->pixels ? ERR_OK : err_set(why, ERR_NOMEM, "no memory for the picture");
}

enum err
image_decode(struct image *out, const void *file, size_t len, const struct image_wanted *wanted,
    struct why *why)
{
	enum err e = ERR_INVALID;

	*out = (struct image){.channels = wanted->grey ? 1 : 3};
	if (len >= 8 && memcmp(file, "\x89PNG\r\n\x1a\n", 8) == 0)
		e = image_png_decode(out, file, len, wanted, why);
	else if (len >= 3 && memcmp(file, "\xff\xd8\xff", 3) == 0)
		e = image_jpeg_decode(out, file, len, wanted, why);
	else
		err_set(why, e, "this is neither PNG nor JPEG");
	if (e)
		image_deinit(out);
	return e;
}

/* The mean of one channel over a rectangle, rounded. */
static uint8_t
mean(const struct image *i, unsigned channel, const uint32_t from[2], const uint32_t to[2])
{
	uint64_t sum = 0, n = (uint64_t)(to[0] - from[0]) * (to[1] - from[1]);

	for (uint32_t y = from[0]; y < to[0]; y++)
		for (uint32_t x = from[1]; x < to[1]; x++)
			sum += i->pixels[((size_t)y * i->width + x) * i->channels + channel];
	return (uint8_t)((sum + n / 2) / n);
}

/* What pixel `at` of `size` covers of `of`: one pixel at least. */
static void
cover(uint32_t at, uint32_t size, uint32_t of, uint32_t *from, uint32_t *to)
{
	*from = (uint32_t)((uint64_t)at * of / size);
	*to = (uint32_t)(((uint64_t)at + 1) * of / size);
	if (*to <= *from)
		*to = *from + 1;
}

void
image_fit(const struct image *i, uint32_t width, uint32_t height, uint8_t *out)
{
	for (unsigned c = 0; c < i->channels; c++)
		for (uint32_t y = 0; y < height; y++)
			for (uint32_t x = 0; x < width; x++) {
				uint32_t from[2], to[2];
				cover(y, height, i->height, &from[0], &to[0]);
				cover(x, width, i->width, &from[1], &to[1]);
				*out++ = mean(i, c, from, to);
			}
}
