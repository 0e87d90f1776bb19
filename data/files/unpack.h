#ifndef UNPACK_H
#define UNPACK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct buf;

/*
 * The bytes of a data set file in order, unpacked on the way if they are gzip (one member or several). The
 * file's bytes stay the caller's and must outlive the reader.
 */
struct unpack;

ERR_MUST_USE enum err unpack_open(
    struct unpack **out, const void *file, size_t len, struct why *why);
void unpack_close(struct unpack *io);
/* An upper bound of the unpacked bytes, from the file's size. */
uint64_t unpack_most(const struct unpack *io);
/* Reads exactly n bytes to out, or skips n bytes if out is NULL. ERR_INVALID if the data ends before. */
ERR_MUST_USE enum err unpack_take(struct unpack *io, void *out, uint64_t n, struct why *why);
/* Skips a byte order mark of UTF-8; called first if the data is text. ERR_INVALID if the data is in another encoding. */
ERR_MUST_USE enum err unpack_text(struct unpack *io, struct why *why);
/* Appends the next line, without its line end, to `line`. *end: the line end (LF, CRLF or CR), "" where the data ends without one, NULL
 * when no bytes were left. ERR_LIMIT if the line does not fit. */
ERR_MUST_USE enum err unpack_line(
    struct unpack *io, struct buf *line, const char **end, struct why *why);
/* ERR_INVALID if bytes are left. */
ERR_MUST_USE enum err unpack_end(struct unpack *io, struct why *why);

/* ERR_INVALID unless keep is NULL or ascending without repeats. */
ERR_MUST_USE enum err unpack_check_keep(const uint32_t *keep, size_t keep_count, struct why *why);

#endif
