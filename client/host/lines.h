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
/* Hands each line that is whole now to `each`, without its end, until that fails; `line` lives until it returns. ERR_LIMIT for a longer
 * line, ERR_NOMEM, or what `each` returned: the stream is of no use then. */
ERR_MUST_USE enum err lines_feed(struct lines *l, const char *data, size_t n,
    enum err (*each)(void *context, const char *line, size_t len), void *context);

#endif
