#include "http.h"

#include <ctype.h>
#include <http_parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "buf.h"

size_t
http_head_length(const char *data, size_t len, size_t *seen)
{
	const char *lf;

	while (*seen < len && (lf = memchr(data + *seen, '\n', len - *seen))) {
		size_t n = (size_t)(lf - data) + 1;
		*seen = n;
		if (n < 2 || lf[-1] != '\r' || (n >= 4 && memcmp(lf - 3, "\r\n\r\n", 4) == 0))
			return n;
	}
	*seen = len;
	return 0;
}

static bool
is_token(unsigned char c)
{
	return isalnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* One header line without CRLF: a token, a colon, printable bytes. */
static const char *
check_line(const char *line, size_t len)
{
	size_t i = 0;

	if (len > 0 && (line[0] == ' ' || line[0] == '\t'))
		return "folded header line";
	while (i < len && is_token((unsigned char)line[i]))
		i++;
	if (i == 0 || i == len || line[i] != ':')
		return "malformed header name";
	for (; i < len; i++) {
		unsigned char c = (unsigned char)line[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return "control character in a header";
	}
	return NULL;
}

/* METHOD SP /path SP HTTP/1.1, visible ASCII only. */
static const char *
check_request_line(const char *line, size_t len, unsigned *status)
{
	const char *first = memchr(line, ' ', len);
	const char *last = memrchr(line, ' ', len);

	if (!first || first == last || memchr(first + 1, ' ', (size_t)(last - first - 1)))
		return "malformed request line";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < 0x20 || (unsigned char)line[i] > 0x7e)
			return "byte outside ASCII in the request line";
	if (first[1] != '/' || memchr(first, '%', (size_t)(last - first)) ||
	    memchr(first, '#', (size_t)(last - first)))
		return "the path must be absolute and without escapes";
	size_t version = len - (size_t)(last + 1 - line);
	if (version != 8 || memcmp(last + 1, "HTTP/1.1", 8) != 0) {
		*status = 505;
		return "HTTP/1.1 is needed";
	}
	return NULL;
}

/* What http-parser would let through. */
static const char *
raw_check(const char *head, size_t len, unsigned *status)
{
	bool first = true;

	*status = 400;
	if (len > 0 && head[len - 1] == '\n' && (len == 1 || head[len - 2] != '\r'))
		return "line does not end in CRLF";
	if (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0)
		return "incomplete header block";
	for (size_t at = 0; at + 2 < len;) {
		const char *lf = memchr(head + at, '\n', len - at);
		if (!lf || lf == head + at || lf[-1] != '\r')
			return "line does not end in CRLF";
		size_t n = (size_t)(lf - head) - at - 1;
		if (memchr(head + at, '\r', n) || memchr(head + at, '\0', n))
			return "stray carriage return or NUL";
		const char *bad =
		    first ? check_request_line(head + at, n, status) : check_line(head + at, n);
		if (bad)
			return bad;
		first = false;
		at += n + 2;
	}
	return NULL;
}

/* --- http-parser callbacks collect one header at a time. */
enum field {
	FIELD_OTHER,
	FIELD_HOST,
	FIELD_LENGTH,
	FIELD_AUTHORIZATION,
	FIELD_RANGE,
	FIELD_NONE_MATCH,
	FIELD_MANIFEST,
	FIELD_REPORT,
	FIELD_EXPECT,
	FIELD_TRANSFER,
	FIELD_OFFSET,
	FIELD_COUNT,
};
static const char *const field_names[FIELD_COUNT] = {"", "host", "content-length", "authorization",
    "range", "if-none-match", "rivulet-manifest", "rivulet-report", "expect", "transfer-encoding",
    "upload-offset"};

struct collector {
	struct http_request *out;
	enum field field;
	unsigned seen; /* bit per field: none of these may come twice */
	unsigned status;
	const char *bad;
};

static int
refuse(struct collector *c, unsigned status, const char *bad)
{
	if (!c->bad) {
		c->status = status;
		c->bad = bad;
	}
	return 1;
}

static int
on_url(http_parser *p, const char *at, size_t len)
{
	struct collector *c = p->data;
	const char *question = memchr(at, '?', len);
	size_t path = question ? (size_t)(question - at) : len;

	if (len >= HTTP_PATH_MAX)
		return refuse(c, 414, "path too long");
	memcpy(c->out->path, at, path);
	c->out->path[path] = '\0';
	if (question)
		memcpy(c->out->query, question + 1, len - path - 1);
	return 0;
}

static int
on_field(http_parser *p, const char *at, size_t len)
{
	struct collector *c = p->data;

	c->field = FIELD_OTHER;
	for (int f = 1; f < FIELD_COUNT; f++)
		if (strlen(field_names[f]) == len && strncasecmp(field_names[f], at, len) == 0)
			c->field = (enum field)f;
	if (c->field != FIELD_OTHER && (c->seen & 1u << c->field))
		return refuse(c, 400, "a header came twice");
	c->seen |= 1u << c->field;
	return 0;
}

static int
keep(struct collector *c, char *to, size_t room, const char *at, size_t len)
{
	if (len >= room)
		return refuse(c, 431, "header value too long");
	memcpy(to, at, len);
	to[len] = '\0';
	return 0;
}

static int
keep_long(struct collector *c, char **to, const char *at, size_t len)
{
	if (len >= HTTP_VALUE_MAX)
		return refuse(c, 431, "header value too long");
	*to = strndup(at, len);
	return *to ? 0 : refuse(c, 503, "no memory");
}

/* Digits alone, few enough for 64 bits. */
static int
keep_number(struct collector *c, uint64_t *to, const char *at, size_t len)
{
	*to = 0;
	for (size_t i = 0; i < len && i < 18 && isdigit((unsigned char)at[i]); i++)
		*to = *to * 10 + (uint64_t)(at[i] - '0');
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)at[i]))
			return refuse(c, 400, "a number is malformed");
	return len == 0 || len > 18 ? refuse(c, 400, "a number is malformed") : 0;
}

/* A name or an address, and a port: nothing that another parser could take for more. */
static int
check_host(struct collector *c, const char *at, size_t len)
{
	if (len == 0)
		return refuse(c, 400, "Host is empty");
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)at[i]) && !strchr(".-_:[]", at[i]))
			return refuse(c, 400, "Host is malformed");
	return 0;
}

static int
on_value(http_parser *p, const char *at, size_t len)
{
	struct collector *c = p->data;
	struct http_request *r = c->out;

	/* Blanks after a value are no part of it; http-parser drops only those before it. */
	while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
		len--;
	switch (c->field) {
	case FIELD_HOST:
		return check_host(c, at, len);
	case FIELD_AUTHORIZATION:
		return keep(c, r->authorization, sizeof(r->authorization), at, len);
	case FIELD_RANGE:
		return keep(c, r->range, sizeof(r->range), at, len);
	case FIELD_NONE_MATCH:
		return keep(c, r->if_none_match, sizeof(r->if_none_match), at, len);
	case FIELD_MANIFEST:
		return keep_long(c, &r->manifest, at, len);
	case FIELD_REPORT:
		return keep_long(c, &r->report, at, len);
	case FIELD_TRANSFER:
		r->chunked = true;
		return 0;
	case FIELD_LENGTH:
		return keep_number(c, &r->length, at, len);
	case FIELD_OFFSET:
		r->has_offset = true;
		return keep_number(c, &r->offset, at, len);
	case FIELD_EXPECT:
		r->expect_continue = len == 12 && strncasecmp(at, "100-continue", 12) == 0;
		return r->expect_continue ? 0 : refuse(c, 417, "unknown expectation");
	default:
		return 0;
	}
}

/* The head is all we want of http-parser: pausing here keeps it away from the body. */
static int
on_complete(http_parser *p)
{
	struct collector *c = p->data;

	c->out->keep_alive = http_should_keep_alive(p) != 0;
	c->out->has_length = (c->seen & 1u << FIELD_LENGTH) != 0;
	c->out->length = c->out->has_length ? p->content_length : 0;
	http_parser_pause(p, 1);
	return 0;
}

static enum http_verb
method_of(unsigned m)
{
	switch (m) {
	case HTTP_GET:
		return VERB_GET;
	case HTTP_HEAD:
		return VERB_HEAD;
	case HTTP_PUT:
		return VERB_PUT;
	case HTTP_POST:
		return VERB_POST;
	case HTTP_DELETE:
		return VERB_DELETE;
	case HTTP_PATCH:
		return VERB_PATCH;
	default:
		return VERB_OTHER;
	}
}

enum err
http_request_parse(
    struct http_request *out, const char *head, size_t len, unsigned *status, struct why *why)
{
	static const http_parser_settings settings = {
	    .on_url = on_url,
	    .on_header_field = on_field,
	    .on_header_value = on_value,
	    .on_headers_complete = on_complete,
	};
	struct collector c = {.out = out, .status = 400};
	http_parser p;

	*out = (struct http_request){.keep_alive = false};
	const char *bad = raw_check(head, len, status);
	if (bad)
		return err_set(why, ERR_INVALID, "%s", bad);
	http_parser_init(&p, HTTP_REQUEST);
	p.data = &c;
	http_parser_execute(&p, &settings, head, len);
	out->method = method_of(p.method);
	if (!c.bad && HTTP_PARSER_ERRNO(&p) != HPE_PAUSED)
		refuse(&c, 400, http_errno_description(HTTP_PARSER_ERRNO(&p)));
	if (!c.bad && p.upgrade)
		refuse(&c, 400, "no upgrade here");
	if (!c.bad && !(c.seen & 1u << FIELD_HOST))
		refuse(&c, 400, "Host is missing");
	if (!c.bad && out->chunked)
		refuse(&c, 411, "a body needs Content-Length, not Transfer-Encoding");
	if (!c.bad)
		return ERR_OK;
	*status = c.status;
	return err_set(why, ERR_INVALID, "%s", c.bad);
}

void
http_request_deinit(struct http_request *r)
{
	free(r->manifest);
	free(r->report);
	r->manifest = r->report = NULL;
}

const char *
http_verb_name(enum http_verb m)
{
	static const char *const names[] = {
	    "GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OTHER"};

	return names[m];
}

const char *
http_reason(unsigned status)
{
	return http_status_str((enum http_status)status);
}

bool
http_query(const struct http_request *r, const char *name, char *out, size_t room)
{
	size_t name_len = strlen(name);

	for (const char *p = r->query; *p;) {
		size_t len = strcspn(p, "&");
		if (len > name_len && p[name_len] == '=' && strncmp(p, name, name_len) == 0) {
			size_t n = len - name_len - 1;
			if (n >= room)
				n = 0;
			memcpy(out, p + name_len + 1, n);
			out[n] = '\0';
			return true;
		}
		p += len + (p[len] == '&');
	}
	return false;
}

static bool
stands_in(const char *words, const char *word, size_t len)
{
	while (*words) {
		size_t n = strcspn(words, " ");
		if (n == len && strncmp(words, word, n) == 0)
			return true;
		words += n + (words[n] == ' ');
	}
	return false;
}

bool
http_query_knows(const struct http_request *r, const char *words, char unknown[HTTP_WORD_MAX])
{
	for (const char *p = r->query; *p;) {
		size_t len = strcspn(p, "&"), word = strcspn(p, "=&");
		if (len > 0 && !stands_in(words, p, word)) {
			snprintf(unknown, HTTP_WORD_MAX, "%.*s", (int)word, p);
			return false;
		}
		p += len + (p[len] == '&');
	}
	return true;
}

/* Devices compare their clock with it. */
static enum err
put_date(struct buf *out, int64_t now)
{
	char text[40];
	time_t t = (time_t)now;
	struct tm tm;

	if (!gmtime_r(&t, &tm) ||
	    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
		return ERR_INVALID;
	return buf_printf(out, "Date: %s\r\n", text);
}

enum err
http_head_print(struct buf *out, const struct http_head *h)
{
	enum err e = buf_printf(out, "HTTP/1.1 %u %s\r\n", h->status, http_reason(h->status));

	if (!e && h->content_type)
		e = buf_printf(out, "Content-Type: %s\r\n", h->content_type);
	if (!e && h->chunked)
		e = buf_printf(out, "Transfer-Encoding: chunked\r\n");
	else if (!e && h->status >= 200 && h->status != 204 && h->status != 304)
		e = buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)h->length);
	if (!e && h->now > 0)
		e = put_date(out, h->now);
	if (!e && h->close)
		e = buf_printf(out, "Connection: close\r\n");
	if (!e)
		e = buf_printf(out, "%s\r\n", h->extra ? h->extra : "");
	return e;
}
