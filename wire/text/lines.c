#include "lines.h"

#include <string.h>

void
lines_init(struct lines *l, size_t max)
{
	buf_init(&l->begun, max);
}

void
lines_deinit(struct lines *l)
{
	buf_deinit(&l->begun);
}

enum err
lines_feed(struct lines *l, const char *data, size_t n,
    enum err (*each)(void *context, const char *line, size_t len), void *context)
{
	enum err e = ERR_OK;

	while (!e && n > 0) {
		const char *end = memchr(data, '\n', n);
		size_t len = end ? (size_t)(end - data) : n;
		e = buf_append(&l->begun, data, len);
		if (!e && end) {
			e = each(context, buf_str(&l->begun), l->begun.len);
			buf_reset(&l->begun);
		}
		len += end ? 1 : 0;
		data += len;
		n -= len;
	}
	return e;
}
