#include "image_inside.h"

const char *const image_alphas[] = {
    [IMAGE_ALPHA_WHITE] = "white", [IMAGE_ALPHA_DROP] = "drop", [IMAGE_ALPHAS] = NULL};

/* a x b / 255, rounded. */
static unsigned
share(unsigned a, unsigned b)
{
	return (a * b + 127) / 255;
}

void
image_colour_grey(uint8_t *out, const uint8_t *rgb, size_t n)
{
	for (; n > 0; n--, rgb += 3)
		*out++ =
		    (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

void
image_colour_cmyk(uint8_t *rgb, const uint8_t *inverted, size_t n)
{
	for (; n > 0; n--, inverted += 4) {
		unsigned light = inverted[3];
		for (unsigned c = 0; c < 3; c++)
			*rgb++ = (uint8_t)(light - share(255u - inverted[c], light));
	}
}

void
image_colour_over_white(uint8_t *out, const uint8_t *in, unsigned colours, size_t n)
{
	for (; n > 0; n--, in += colours + 1) {
		unsigned opacity = in[colours];
		for (unsigned c = 0; c < colours; c++)
			*out++ = (uint8_t)(255 - share(255u - in[c], opacity));
	}
}
