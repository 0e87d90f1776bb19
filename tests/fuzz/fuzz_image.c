/* Pictures: the head's claims, the ends of the decoders, and scaling. */
#include "fuzz.h"
#include "image.h"

#define PIXELS_MAX 65536

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t small[3 * 5 * 7];
	struct image image;
	struct why why;

	for (int form = 0; form < 4; form++) {
		bool grey = form & 1;
		const struct image_wanted wanted = {.grey = grey,
		    .alpha = form & 2 ? IMAGE_ALPHA_DROP : IMAGE_ALPHA_WHITE,
		    .most_pixels = PIXELS_MAX};
		enum err e = image_decode(&image, data, len, &wanted, &why);
		require(!e || !image.pixels);
		if (e)
			continue;
		require((uint64_t)image.width * image.height <= PIXELS_MAX);
		require(image.channels == (grey ? 1 : 3));
		image_fit(&image, 7, 5, small);
		image_deinit(&image);
	}
	return 0;
}
