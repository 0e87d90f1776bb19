#include "buf.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_BLOCK (128 << 10)

void
buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void
buf_deinit(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->room = 0;
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

void
buf_consume(struct buf *b, size_t n)
{
	if (n >= b->len) {
		buf_reset(b);
		return;
	}
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}

/* Makes the allocation hold `need` content bytes and the final zero. */
static enum err
grow(struct buf *b, size_t need)
{
	if (b->data && need <= b->room)
		return ERR_OK;
	size_t room = b->room < 64 ? 64 : b->room;
	while (room < need)
		room = room > b->max / 2 ? b->max : room * 2;
	if (room == SIZE_MAX)
		return ERR_NOMEM;
	char *data = realloc(b->data, room + 1);
	if (!data)
		return ERR_NOMEM;
	b->data = data;
	b->room = room;
	return ERR_OK;
}

enum err
buf_extend(struct buf *b, size_t n, void **at)
{
	if (n > b->max - b->len)
		return ERR_LIMIT;
	enum err e = grow(b, b->len + n);
	if (e)
		return e;
	*at = b->data + b->len;
	b->len += n;
	b->data[b->len] = '\0';
	return ERR_OK;
}

enum err
buf_append(struct buf *b, const void *data, size_t len)
{
	void *at = NULL;
	enum err e = buf_extend(b, len, &at);

	if (!e && len > 0)
		memcpy(at, data, len);
	return e;
}

enum err
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	void *at = NULL;

	va_start(ap, fmt);
	int need = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (need < 0)
		return ERR_INVALID;
	enum err e = buf_extend(b, (size_t)need, &at);
	if (e)
		return e;
	va_start(ap, fmt);
	vsnprintf(at, (size_t)need + 1, fmt, ap);
	va_end(ap);
	return ERR_OK;
}

const char *
buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

void
buf_give_back(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
}
