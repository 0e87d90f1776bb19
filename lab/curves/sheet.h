#ifndef SHEET_H
#define SHEET_H
#include "buf.h"
#include "err.h"
#include "scalars.h"

/*
 * Rounds as rows of a table of comma-separated values (RFC 4180, but lines end with a newline alone): columns of the round and its job,
 * then one column per tag that any round has. sheet_look sees all rounds first; rows are written when all tags are known.
 */
#define SHEET_TAGS_MAX 256

struct sheet {
	char (*tags)[SCALARS_TAG_MAX];
	size_t count;
	enum err err; /* of sheet_look, sticky */
};

void sheet_deinit(struct sheet *s);
/* Notes the tags of a round. ERR_LIMIT for more than SHEET_TAGS_MAX of them in all. */
ERR_MUST_USE enum err sheet_look(struct sheet *s, const struct json *round, struct why *why);
/* Append the line of column heads; the line of a round. job: a JOB. Values that are not known are empty. */
ERR_MUST_USE enum err sheet_heads(struct buf *out, const struct sheet *s);
ERR_MUST_USE enum err sheet_row(
    struct buf *out, const struct sheet *s, const struct json *job, const struct json *round);

#endif
