#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "image_inside.h"

#define CHUNK_BYTES_MAX (8u << 20) /* of one that is unpacked or kept */

struct reading {
	png_structp png;
	png_infop info;
	const uint8_t *at; /* what is left of the file */
	size_t left;
	char text[80]; /* what was wrong */
};

static void PNGCBAPI __attribute__((noreturn)) fail(png_structp png, png_const_charp text)
{
	struct reading *r = png_get_error_ptr(png);

	snprintf(r->text, sizeof(r->text), "%s", text);
	png_longjmp(png, 1);
}

/* A warning is about what plays no part here, or could be read all the same. */
static void PNGCBAPI
pass_over(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static void PNGCBAPI
give(png_structp png, png_bytep out, size_t len)
{
	struct reading *r = png_get_io_ptr(png);

	if (len > r->left)
		png_error(png, "the file ends early");
	memcpy(out, r->at, len);
	r->at += len;
	r->left -= len;
}

static void
set_limits(struct reading *r)
{
	/* image_room says what is too large, and names it. */
	png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	png_set_chunk_malloc_max(r->png, CHUNK_BYTES_MAX);
	/* Texts, profiles of colours and notes about light are not even unpacked; transparency and the palette stay. */
	png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
	png_set_crc_action(r->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
}

/* Asks for 8 bits a value, and says how many a pixel has. */
static unsigned
choose_form(struct reading *r, const struct image_wanted *wanted)
{
	int type = png_get_color_type(r->png, r->info);
	bool colour = type & PNG_COLOR_MASK_COLOR;
	bool alpha = (type & PNG_COLOR_MASK_ALPHA) || png_get_valid(r->png, r->info, PNG_INFO_tRNS);

	png_set_expand(r->png);
	png_set_strip_16(r->png);
	if (!colour && !wanted->grey)
		png_set_gray_to_rgb(r->png);
	if (alpha && wanted->alpha == IMAGE_ALPHA_DROP)
		png_set_strip_alpha(r->png);
	unsigned values = colour || !wanted->grey ? 3 : 1;
	return alpha && wanted->alpha != IMAGE_ALPHA_DROP ? values + 1 : values;
}

static void
read_pixels(struct reading *r, const struct image *out, unsigned values)
{
	size_t row = (size_t)out->width * values;
	int passes = png_set_interlace_handling(r->png);

	png_read_update_info(r->png, r->info);
	if (png_get_rowbytes(r->png, r->info) != row)
		png_error(r->png, "pixels of an unknown form");
	for (int pass = 0; pass < passes; pass++)
		for (size_t y = 0; y < out->height; y++)
			png_read_row(r->png, out->pixels + y * row, NULL);
	/* What was cut off behind the pixels is missing, too. */
	png_read_end(r->png, NULL);
}

static enum err
decode(struct reading *r, struct image *out, const struct image_wanted *wanted, struct why *why)
{
	set_limits(r);
	png_read_info(r->png, r->info);
	out->width = png_get_image_width(r->png, r->info);
	out->height = png_get_image_height(r->png, r->info);
	unsigned values = choose_form(r, wanted);
	enum err e = image_room(out, values, wanted, why);
	if (e)
		return e;
	read_pixels(r, out, values);
	size_t n = (size_t)out->width * out->height;
	if (values == 2 || values == 4)
		image_colour_over_white(out->pixels, out->pixels, values - 1, n);
	if (wanted->grey && values >= 3)
		image_colour_grey(out->pixels, out->pixels, n);
	return ERR_OK;
}

enum err
image_png_decode(struct image *out, const void *file, size_t len, const struct image_wanted *wanted,
    struct why *why)
{
	struct reading r = {.at = file, .left = len};
	enum err e;

	r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, fail, pass_over);
	r.info = r.png ? png_create_info_struct(r.png) : NULL;
	if (!r.info) {
		e = err_set(why, ERR_NOMEM, "no memory for the picture");
	} else if (setjmp(png_jmpbuf(r.png))) {
		e = err_set(why, ERR_INVALID, "PNG: %s", r.text);
	} else {
		png_set_read_fn(r.png, &r, give);
		e = decode(&r, out, wanted, why);
	}
	png_destroy_read_struct(&r.png, &r.info, NULL);
	return e;
}
