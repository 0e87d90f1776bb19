#ifndef GZIP_H
#define GZIP_H
#include <stdlib.h>
#include <zlib.h>

/* Packs data as one gzip member; the caller frees it. */
static inline uint8_t *
gzip(const void *data, size_t len, size_t *packed)
{
	z_stream z = {0};
	uint8_t *out = malloc(len + 1024);

	assert_non_null(out);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)len;
	z.next_out = out;
	z.avail_out = (uInt)len + 1024;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	*packed = z.total_out;
	deflateEnd(&z);
	return out;
}

#endif
