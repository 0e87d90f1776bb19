#ifndef LINES_H
#define LINES_H
#include "buf.h"

/* Lines of bounded length out of a stream that comes in pieces. */
struct lines {
	struct buf begun; /* the line whose end has not come yet */
};

/* max: bytes of a line, without its end. */
void lines_init(struct lines *l, size_t max);
void lines_deinit(struct lines *l);
/* Adds n bytes and calls `each` for every line that is complete now, without its line end; `line` lives until `each` returns. ERR_LIMIT for
 * a line above max, ERR_NOMEM, or the first error of `each`; after an error the stream cannot be used. */
ERR_MUST_USE enum err lines_feed(struct lines *l, const char *data, size_t n,
    enum err (*each)(void *context, const char *line, size_t len), void *context);

#endif
