/* jpegs DIR CLASSES COUNT SIDE: writes DIR/class-C/N.jpg, COUNT pictures of each class: a bright stripe whose place is the class's, and
 * noise. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <jpeglib.h>

#include "prng.h"

static void
draw(uint8_t *pixels, int class, int classes, int side, struct prng *rng)
{
	int from = class * side / classes, to = (class + 1) * side / classes;

	for (int y = 0; y < side; y++)
		for (int x = 0; x < side; x++)
			for (int c = 0; c < 3; c++)
				*pixels++ = (uint8_t)(prng_below(rng, 96) +
				    (y >= from && y < to ? 120 : 0) + (c == class % 3 ? 30 : 0));
}

static int
write_one(const char *path, uint8_t *pixels, int side)
{
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr errors;
	FILE *f = fopen(path, "wb");

	if (!f)
		return 1;
	jpeg.err = jpeg_std_error(&errors);
	jpeg_create_compress(&jpeg);
	jpeg_stdio_dest(&jpeg, f);
	jpeg.image_width = jpeg.image_height = (JDIMENSION)side;
	jpeg.input_components = 3;
	jpeg.in_color_space = JCS_RGB;
	jpeg_set_defaults(&jpeg);
	jpeg_set_quality(&jpeg, 85, TRUE);
	jpeg_start_compress(&jpeg, TRUE);
	for (int y = 0; y < side; y++) {
		JSAMPROW row = pixels + (size_t)y * (size_t)side * 3;
		jpeg_write_scanlines(&jpeg, &row, 1);
	}
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
	return fclose(f) != 0;
}

int
main(int argc, char **argv)
{
	struct prng rng;
	char path[4096];

	if (argc != 5)
		return 2;
	int classes = atoi(argv[2]), count = atoi(argv[3]), side = atoi(argv[4]);
	uint8_t *pixels = malloc((size_t)side * (size_t)side * 3);
	if (!pixels || classes < 1 || side < 1)
		return 2;
	prng_seed(&rng, 1);
	for (int c = 0; c < classes; c++) {
		snprintf(path, sizeof(path), "%s/class-%02d", argv[1], c);
		mkdir(path, 0755);
		for (int i = 0; i < count; i++) {
			snprintf(path, sizeof(path), "%s/class-%02d/%05d.jpg", argv[1], c, i);
			draw(pixels, c, classes, side, &rng);
			if (write_one(path, pixels, side))
				return 1;
		}
	}
	free(pixels);
	return 0;
}
