#ifndef BUF_H
#define BUF_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * A growable byte buffer whose maximum is fixed at birth. Appending past that maximum gives ERR_LIMIT and
 * leaves the buffer unchanged. `data` is always followed by a zero byte that `len` does not count,
 * so text may be used as a C string. Owned by the caller; `buf_deinit` frees it.
 */
struct buf {
	char *data; /* NULL until the first append; use buf_str for a C string */
	size_t len;
	size_t room;
	size_t max;
};

void buf_init(struct buf *b, size_t max);
void buf_deinit(struct buf *b);
/* Forgets the content, keeps the memory. */
void buf_reset(struct buf *b);
/* Drops the first n bytes (n <= len). */
void buf_consume(struct buf *b, size_t n);
ERR_MUST_USE enum err buf_append(struct buf *b, const void *data, size_t len);
ERR_MUST_USE enum err buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Makes room for n more bytes and returns where they go in *at; `len` grows by n. */
ERR_MUST_USE enum err buf_extend(struct buf *b, size_t n, void **at);
/* The content as a C string; "" when empty. */
const char *buf_str(const struct buf *b);

/* Fixes malloc's bound for mapped blocks at 128 KiB; a long-running program calls this first. Freed blocks of that size and more then go
 * back to the system at once, models among them. Without the call glibc raises the bound at the first freed block and keeps later blocks
 * of that size in a heap for each thread. */
void buf_give_back(void);

#endif
