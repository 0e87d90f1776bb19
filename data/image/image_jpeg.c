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

static enum err
decode(struct jpeg_decompress_struct *jpeg, struct image *out, bool grey, uint64_t most_pixels,
    struct why *why)
{
	(void)jpeg_read_header(jpeg, TRUE);
	out->width = jpeg->image_width;
	out->height = jpeg->image_height;
	enum err e = image_room(out, most_pixels, why);
	if (e)
		return e;
	jpeg->out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
	jpeg->dct_method = JDCT_ISLOW;
	(void)jpeg_start_decompress(jpeg);
	while (jpeg->output_scanline < jpeg->output_height) {
		JSAMPROW row =
		    out->pixels + (size_t)jpeg->output_scanline * out->width * out->channels;
		(void)jpeg_read_scanlines(jpeg, &row, 1);
	}
	(void)jpeg_finish_decompress(jpeg);
	return ERR_OK;
}

enum err
image_jpeg_decode(struct image *out, const void *file, size_t len, bool grey, uint64_t most_pixels,
    struct why *why)
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
		e = decode(&jpeg, out, grey, most_pixels, why);
	}
	jpeg_destroy_decompress(&jpeg);
	return e;
}
