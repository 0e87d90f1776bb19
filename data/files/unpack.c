#include "unpack.h"

#include <stdlib.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

#include "buf.h"
#include "dataset.h"
#include "text_file.h"

#define PIECE 65536
#define FEED_MAX ((size_t)1 << 30)
/* Deflate makes at most 258 bytes of two bits: no stream grows more than this. */
#define DEFLATE_RATIO 1032

struct unpack {
	const uint8_t *piece; /* unpacked and not yet taken */
	size_t piece_len;
	const uint8_t *lf; /* the first line feed of the piece, or its end; NULL: not looked for */
	const uint8_t *file; /* not yet handed to zlib */
	size_t file_len;
	uint64_t most;
	uint64_t unpacked;
	bool gzip;
	bool inside; /* a gzip member has begun and not ended */
	z_stream z;
	uint8_t out[PIECE];
};

enum err
unpack_open(struct unpack **out, const void *file, size_t len, struct why *why)
{
	static const uint8_t magic[] = {0x1f, 0x8b};
	struct unpack *io = malloc(sizeof(*io));

	if (!io)
		return err_set(why, ERR_NOMEM, "no memory to read the file");
	memset(io, 0, offsetof(struct unpack, out));
	io->gzip = len >= sizeof(magic) && memcmp(file, magic, sizeof(magic)) == 0;
	if (!io->gzip) {
		io->piece = file;
		io->piece_len = len;
		io->most = len;
	} else {
		io->file = file;
		io->file_len = len;
		io->most =
		    len > UINT64_MAX / DEFLATE_RATIO ? UINT64_MAX : (uint64_t)len * DEFLATE_RATIO;
		if (inflateInit2(&io->z, 15 + 16) != Z_OK) {
			free(io);
			return err_set(why, ERR_NOMEM, "no memory to unpack the file");
		}
	}
	*out = io;
	return ERR_OK;
}

void
unpack_close(struct unpack *io)
{
	if (io && io->gzip)
		inflateEnd(&io->z);
	free(io);
}

uint64_t
unpack_most(const struct unpack *io)
{
	return io->most;
}

static void
feed(struct unpack *io)
{
	size_t n = io->file_len < FEED_MAX ? io->file_len : FEED_MAX;

	if (io->z.avail_in > 0 || n == 0)
		return;
	io->z.next_in = io->file;
	io->z.avail_in = (uInt)n;
	io->file += n;
	io->file_len -= n;
}

/* Unpacks some bytes to io->out. */
static enum err
unpack(struct unpack *io, size_t *n, struct why *why)
{
	feed(io);
	io->z.next_out = io->out;
	io->z.avail_out = PIECE;
	io->inside = true;
	int result = inflate(&io->z, Z_NO_FLUSH);
	*n = PIECE - io->z.avail_out;
	if (result == Z_STREAM_END) {
		io->inside = false;
		result = inflateReset(&io->z);
	}
	if (result == Z_MEM_ERROR)
		return err_set(why, ERR_NOMEM, "no memory to unpack the file");
	if (result == Z_BUF_ERROR)
		return err_set(why, ERR_INVALID, "the gzip data ends early");
	if (result != Z_OK)
		return err_set(why, ERR_INVALID, "the gzip data is damaged");
	io->unpacked += *n;
	if (io->unpacked > DATASET_BYTES_MAX)
		return err_set(why, ERR_LIMIT, "the unpacked data is too large");
	return ERR_OK;
}

/* Makes sure that a piece is at hand, or that the data is at its end (piece_len 0). */
static enum err
refill(struct unpack *io, struct why *why)
{
	while (io->gzip && io->piece_len == 0 &&
	    (io->inside || io->z.avail_in > 0 || io->file_len > 0)) {
		size_t n;
		enum err e = unpack(io, &n, why);
		if (e)
			return e;
		io->piece = io->out;
		io->piece_len = n;
		io->lf = NULL;
	}
	return ERR_OK;
}

enum err
unpack_take(struct unpack *io, void *out, uint64_t n, struct why *why)
{
	uint8_t *to = out;

	while (n > 0) {
		enum err e = refill(io, why);
		if (e)
			return e;
		if (io->piece_len == 0)
			return err_set(why, ERR_INVALID, "the data ends early");
		size_t now = n < io->piece_len ? (size_t)n : io->piece_len;
		if (to) {
			memcpy(to, io->piece, now);
			to += now;
		}
		io->piece += now;
		io->piece_len -= now;
		n -= now;
	}
	return ERR_OK;
}

enum err
unpack_text(struct unpack *io, struct why *why)
{
	enum err e = refill(io, why);

	if (!e)
		e = text_file_check(io->piece, io->piece_len, why);
	if (e)
		return e;
	size_t mark = text_file_mark(io->piece, io->piece_len);
	io->piece += mark;
	io->piece_len -= mark;
	return ERR_OK;
}

/* The end of the line that begins in the piece; NULL if that is not in it. A file without line feeds is looked through once. */
static const uint8_t *
find_end(struct unpack *io)
{
	const uint8_t *end = io->piece + io->piece_len;

	if (!io->lf || io->lf < io->piece) {
		const uint8_t *lf = memchr(io->piece, '\n', io->piece_len);
		io->lf = lf ? lf : end;
	}
	const uint8_t *cr = memchr(io->piece, '\r', (size_t)(io->lf - io->piece));
	return cr ? cr : io->lf < end ? io->lf : NULL;
}

/* Takes the line end at hand. */
static enum err
take_end(struct unpack *io, const char **end, struct why *why)
{
	bool cr = *io->piece == '\r';

	io->piece++;
	io->piece_len--;
	*end = cr ? "\r" : "\n";
	enum err e = cr ? refill(io, why) : ERR_OK;
	if (!e && cr && io->piece_len > 0 && *io->piece == '\n') {
		io->piece++;
		io->piece_len--;
		*end = "\r\n";
	}
	return e;
}

enum err
unpack_line(struct unpack *io, struct buf *line, const char **end, struct why *why)
{
	const uint8_t *stop = NULL;

	*end = NULL;
	while (!stop) {
		enum err e = refill(io, why);
		if (e)
			return e;
		if (io->piece_len == 0)
			return ERR_OK;
		*end = "";
		stop = find_end(io);
		size_t n = stop ? (size_t)(stop - io->piece) : io->piece_len;
		e = buf_append(line, io->piece, n);
		if (e)
			return err_set(
			    why, e, e == ERR_LIMIT ? "a line is too long" : "no memory for a line");
		io->piece += n;
		io->piece_len -= n;
	}
	return take_end(io, end, why);
}

enum err
unpack_end(struct unpack *io, struct why *why)
{
	enum err e = refill(io, why);

	if (!e && io->piece_len > 0)
		e = err_set(why, ERR_INVALID, "bytes follow the data");
	return e;
}

enum err
unpack_check_keep(const uint32_t *keep, size_t keep_count, struct why *why)
{
	for (size_t i = 1; keep && i < keep_count; i++)
		if (keep[i] <= keep[i - 1])
			return err_set(
			    why, ERR_INVALID, "the examples to keep are not in ascending order");
	return ERR_OK;
}
