#ifndef DATASET_IO_H
#define DATASET_IO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

/*
 * The bytes of a data set file in order, unpacked on the way if they are gzip (one member or several). For the
 * formats behind dataset.h only. The file's bytes stay the caller's and must outlive the reader.
 */
struct dataset_io;

ERR_MUST_USE enum err dataset_io_open(
    struct dataset_io **out, const void *file, size_t len, struct why *why);
void dataset_io_close(struct dataset_io *io);
/* No more bytes than this can come out, judging by the file's size. */
uint64_t dataset_io_most(const struct dataset_io *io);
/* Reads exactly n bytes to out, or skips them if out is NULL. ERR_INVALID if the file ends before. */
ERR_MUST_USE enum err dataset_io_take(
    struct dataset_io *io, void *out, uint64_t n, struct why *why);
/* Reads a line without its line end into `line` (reset before). *end is set instead when no bytes are left.
 * ERR_LIMIT if it does not fit. */
ERR_MUST_USE enum err dataset_io_line(
    struct dataset_io *io, struct buf *line, bool *end, struct why *why);
/* ERR_INVALID if bytes are left. */
ERR_MUST_USE enum err dataset_io_end(struct dataset_io *io, struct why *why);

/* ERR_INVALID unless keep is NULL or ascending without repeats. */
ERR_MUST_USE enum err dataset_io_check_keep(
    const uint32_t *keep, size_t keep_count, struct why *why);

#endif
