/* jpegs DIR CLASSES COUNT SIDE: writes DIR/class-C/N.jpg, COUNT pictures of each class: a bright stripe whose place is the class's, and
 * noise.
 * jpegs DIR SIDE: writes DIR/ycc-HxV.jpg and DIR/ycck-HxV.jpg, with each sampling of colours that the format knows, every other one
 * progressive. */
#include <stdbool.h>
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

/* How a picture is stored. */
struct form {
	int across, down; /* pixels of brightness to one of colour */
	bool ycck, progressive;
};

static int
write_one(const char *path, uint8_t *pixels, int side, const struct form *form)
{
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr errors;
	FILE *f = fopen(path, "wb");
	int values = form->ycck ? 4 : 3;

	if (!f)
		return 1;
	jpeg.err = jpeg_std_error(&errors);
	jpeg_create_compress(&jpeg);
	jpeg_stdio_dest(&jpeg, f);
	jpeg.image_width = jpeg.image_height = (JDIMENSION)side;
	jpeg.input_components = values;
	jpeg.in_color_space = form->ycck ? JCS_CMYK : JCS_RGB;
	jpeg_set_defaults(&jpeg);
	if (form->ycck)
		jpeg_set_colorspace(&jpeg, JCS_YCCK);
	jpeg_set_quality(&jpeg, 85, TRUE);
	for (int c = 0; c < values; c += 3) {
		jpeg.comp_info[c].h_samp_factor = form->across;
		jpeg.comp_info[c].v_samp_factor = form->down;
	}
	if (form->progressive)
		jpeg_simple_progression(&jpeg);
	jpeg_start_compress(&jpeg, TRUE);
	for (int y = 0; y < side; y++) {
		JSAMPROW row = pixels + (size_t)y * (size_t)side * (size_t)values;
		jpeg_write_scanlines(&jpeg, &row, 1);
	}
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
	return fclose(f) != 0;
}

static int
write_classes(const char *dir, int classes, int count, int side)
{
	const struct form form = {.across = 2, .down = 2};
	struct prng rng;
	char path[4096];
	uint8_t *pixels = malloc((size_t)side * (size_t)side * 3);

	if (!pixels)
		return 1;
	prng_seed(&rng, 1);
	for (int c = 0; c < classes; c++) {
		snprintf(path, sizeof(path), "%s/class-%02d", dir, c);
		mkdir(path, 0755);
		for (int i = 0; i < count; i++) {
			snprintf(path, sizeof(path), "%s/class-%02d/%05d.jpg", dir, c, i);
			draw(pixels, c, classes, side, &rng);
			if (write_one(path, pixels, side, &form))
				return 1;
		}
	}
	free(pixels);
	return 0;
}

/* A unit of the format holds at most ten blocks. */
static int
write_samplings(const char *dir, int side)
{
	struct prng rng;
	char path[4096];
	size_t bytes = (size_t)side * (size_t)side * 4;
	uint8_t *pixels = malloc(bytes);

	if (!pixels)
		return 1;
	prng_seed(&rng, 2);
	for (int n = 0; n < 32; n++) {
		const struct form form = {.across = n % 4 + 1,
		    .down = n / 4 % 4 + 1,
		    .ycck = n >= 16,
		    .progressive = n % 2};
		if (form.across * form.down > (form.ycck ? 4 : 8))
			continue;
		/* Slopes, so that what lies between two pixels of colour matters. */
		for (size_t i = 0; i < bytes; i++)
			pixels[i] = (uint8_t)(i * (form.ycck ? 3 : 5) / 4 % 200 +
			    i / (size_t)side % 32 + prng_below(&rng, 20));
		snprintf(path, sizeof(path), "%s/%s-%dx%d.jpg", dir, form.ycck ? "ycck" : "ycc",
		    form.across, form.down);
		if (write_one(path, pixels, side, &form))
			return 1;
	}
	free(pixels);
	return 0;
}

int
main(int argc, char **argv)
{
	int side = argc > 1 ? atoi(argv[argc - 1]) : 0;

	if (argc == 3 && side > 0)
		return write_samplings(argv[1], side);
	if (argc != 5 || atoi(argv[2]) < 1 || side < 1)
		return 2;
	return write_classes(argv[1], atoi(argv[2]), atoi(argv[3]), side);
}
