#ifndef HTTP_H
#define HTTP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "request_id.h"

struct buf;

/*
 * HTTP/1.1 heads: from bytes to a request, from a response to bytes. The reader (RFC 9112) is strict: each line ends in CRLF, and there are no
 * folded lines, no space before a colon, no other version, no escapes and no bytes outside ASCII in the path, no Transfer-Encoding and no
 * upgrade; Host and what else decides something comes once. In the query %XX stands for a byte of a value and + for a space, where all
 * such bytes are UTF-8 without control characters. Bodies are the connection's business. No I/O.
 */
/* Bytes of a header block. The settings' header_bytes is less. */
#define HTTP_HEAD_MAX (80u << 10)
#define HTTP_PATH_MAX 1024
#define HTTP_VALUE_MAX 24576 /* the longest header value kept (a report in base64) */

enum http_verb { VERB_GET, VERB_HEAD, VERB_PUT, VERB_POST, VERB_DELETE, VERB_PATCH, VERB_OTHER };

struct http_request {
	enum http_verb method;
	char path[HTTP_PATH_MAX]; /* without the query; escapes are not allowed */
	char query[HTTP_PATH_MAX]; /* as it came: without '?', "" if none; http_query decodes */
	bool has_length;
	uint64_t length;
	bool expect_continue;
	bool keep_alive;
	char authorization[256];
	char range[64];
	char if_none_match[160];
	/* Rivulet-Began, from outside: request_id_valid says whether it is one. */
	char began[REQUEST_ID_MAX];
	bool has_offset;
	uint64_t offset; /* Upload-Offset */
	char *manifest; /* Rivulet-Manifest and Rivulet-Report; NULL if absent */
	char *report;
};

/* Looks for the end of a header block in data: returns the block's length with the empty line, 0 if the block is not complete. *seen is
 * where to look from, 0 at first, and moves on. A line that ends in a bare LF ends the block too: that much is enough for
 * http_request_parse to refuse it. */
size_t http_head_length(const char *data, size_t len, size_t *seen);
/* Parses one complete header block. On failure *status is 400, 411, 414, 417, 431, 503 or 505 and why says what was wrong.
 * The caller frees with http_request_deinit in either case. */
ERR_MUST_USE enum err http_request_parse(
    struct http_request *out, const char *head, size_t len, unsigned *status, struct why *why);
void http_request_deinit(struct http_request *r);
const char *http_verb_name(enum http_verb m);
/* The method of this name, which is not ended by a zero; VERB_OTHER is one without a handler, and false: it is no method. */
bool http_verb_find(enum http_verb *out, const char *word, size_t len);
const char *http_reason(unsigned status);
/* Is each "%XX" of the query an escape of a byte, and are the values UTF-8 without control characters when those are decoded? */
bool http_query_sound(const char *query, size_t len);
/* out: the value of `name` in the query "a=1&b=2", its escapes decoded; false if absent. A value longer than room gives "", which is no
 * number and no word. */
bool http_query(const struct http_request *r, const char *name, char *out, size_t room);
/* Likewise the nth item, from 0: an item is what lies between commas that are not escaped, in each value of `name` in turn. False: there
 * are not so many. */
bool http_query_item(
    const struct http_request *r, const char *name, size_t nth, char *out, size_t room);
/* Is every name in the query among `words`, which are separated by spaces? If not, `unknown` is the first other name, cut to fit. */
#define HTTP_WORD_MAX 32
bool http_query_knows(const struct http_request *r, const char *words, char unknown[HTTP_WORD_MAX]);

/* What a response head needs. Extra is complete header lines ("Retry-After: 5\r\n"), may be empty. */
struct http_head {
	unsigned status;
	const char *content_type; /* NULL: none */
	uint64_t length;
	bool close;
	const char *extra;
	const char *request; /* Rivulet-Request; NULL: none */
	int64_t now; /* Unix seconds for a Date line; 0: none */
	bool chunked; /* the length is not known yet: Transfer-Encoding */
};
ERR_MUST_USE enum err http_head_print(struct buf *out, const struct http_head *h);

#endif
