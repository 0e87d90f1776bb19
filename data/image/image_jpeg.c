#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "image_inside.h"

/* The library leaves by longjmp where it would have ended the process. */
struct failure {
	struct jpeg_error_mgr manager; /* first: the library points here */
	jmp_buf leave;
	char text[JMSG_LENGTH_MAX];
};

static void
fail(j_common_ptr info)
{
	struct failure *f = (struct failure *)(void *)info->err;

	info->err->format_message(info, f->text);
	longjmp(f->leave, 1);
}

/* A damaged picture is no picture: its warnings, but not what it traces, end the decoding. */
static void
warn(j_common_ptr info, int level)
{
	if (level < 0)
		fail(info);
}

/* Asks for values as the file has them, but for YCbCr, and says how many a pixel has; 0 if there are as many as in no picture. */
static unsigned
choose_form(struct jpeg_decompress_struct *jpeg)
{
	jpeg->dct_method = JDCT_ISLOW;
	switch (jpeg->num_components) {
	case 1:
		jpeg->out_color_space = JCS_GRAYSCALE;
		return 1;
	case 3:
		jpeg->out_color_space = JCS_RGB;
		return 3;
	case 4:
		jpeg->out_color_space = JCS_CMYK;
		return 4;
	default:
		return 0;
	}
}

/* A row as the file has it becomes one of the picture. */
static void
put_row(uint8_t *to, uint8_t *row, unsigned values, const struct image *out)
{
	size_t n = out->width;

	if (values == 4)
		image_colour_cmyk(row, row, n);
	if (values == 1 && out->channels == 3)
		for (size_t i = 0; i < n; i++, to += 3)
			memset(to, row[i], 3);
	else if (values != 1 && out->channels == 1)
		image_colour_grey(to, row, n);
	else
		memcpy(to, row, n * out->channels);
}

static enum err
decode(struct jpeg_decompress_struct *jpeg, struct image *out, const struct image_wanted *wanted,
    struct why *why)
{
	(void)jpeg_read_header(jpeg, TRUE);
	out->width = jpeg->image_width;
	out->height = jpeg->image_height;
	unsigned values = choose_form(jpeg);
	if (values == 0)
		return err_set(why, ERR_INVALID,
		    "JPEG: %d values a pixel, neither grey nor colours nor CMYK",
		    jpeg->num_components);
	enum err e = image_room(out, out->channels, wanted, why);
	if (e)
		return e;
	(void)jpeg_start_decompress(jpeg);
	JSAMPARRAY rows = jpeg->mem->alloc_sarray(
	    (j_common_ptr)jpeg, JPOOL_IMAGE, jpeg->output_width * values, 1);
	while (jpeg->output_scanline < jpeg->output_height) {
		size_t at = (size_t)jpeg->output_scanline * out->width * out->channels;
		(void)jpeg_read_scanlines(jpeg, rows, 1);
		put_row(out->pixels + at, rows[0], values, out);
	}
	(void)jpeg_finish_decompress(jpeg);
	return ERR_OK;
}

enum err
image_jpeg_decode(struct image *out, const void *file, size_t len,
    const struct image_wanted *wanted, struct why *why)
{
	struct failure failure;
	struct jpeg_decompress_struct jpeg = {.err = jpeg_std_error(&failure.manager)};
	enum err e;

	failure.manager.error_exit = fail;
	failure.manager.emit_message = warn;
	if (setjmp(failure.leave)) {
		e = err_set(why, ERR_INVALID, "JPEG: %.100s", failure.text);
	} else {
		jpeg_create_decompress(&jpeg);
		jpeg_mem_src(&jpeg, file, len);
		e = decode(&jpeg, out, wanted, why);
	}
	jpeg_destroy_decompress(&jpeg);
	return e;
}
