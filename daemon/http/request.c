#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bytes.h"
#include "http.h"
#include "member.h"
#include "num.h"

#define DIGITS_MAX 18 /* of a number, which 64 bits then hold */

/* Headers that mean something here; those before FIELD_PROXY come once at most. */
enum field {
	FIELD_AUTHORIZATION, /* and what follows are kept as they are */
	FIELD_RANGE,
	FIELD_NONE_MATCH,
	FIELD_BEGAN,
	FIELD_MANIFEST,
	FIELD_REPORT,
	FIELD_HOST,
	FIELD_LENGTH,
	FIELD_OFFSET,
	FIELD_EXPECT,
	FIELD_TRANSFER,
	FIELD_PROXY,
	FIELD_CONNECTION,
	FIELD_UPGRADE,
	FIELD_OTHER
};

static const struct {
	const char *name;
	size_t offset, size; /* of what is kept */
} fields[FIELD_OTHER] = {{"authorization", MEMBER(http_request, authorization)},
    {"range", MEMBER(http_request, range)}, {"if-none-match", MEMBER(http_request, if_none_match)},
    {"rivulet-began", MEMBER(http_request, began)},
    {"rivulet-manifest", MEMBER(http_request, manifest)},
    {"rivulet-report", MEMBER(http_request, report)}, {"host", 0, 0}, {"content-length", 0, 0},
    {"upload-offset", 0, 0}, {"expect", 0, 0}, {"transfer-encoding", 0, 0},
    {"proxy-connection", 0, 0}, {"connection", 0, 0}, {"upgrade", 0, 0}};

struct reader {
	struct http_request *out;
	unsigned seen; /* a bit for each field */
	bool close, upgrade, tunnel, encoded; /* Connection; CONNECT; Transfer-Encoding... */
	unsigned form_status, status;
	const char *bad; /* the first mistake in lines whose form is right */
};

static void
refuse(struct reader *r, unsigned status, const char *bad)
{
	if (!r->bad) {
		r->status = status;
		r->bad = bad;
	}
}

/* METHOD SP /path SP HTTP/1.1, visible ASCII only. */
static const char *
read_request_line(struct reader *r, const char *line, size_t len)
{
	const char *first = memchr(line, ' ', len), *last = memrchr(line, ' ', len);
	const char *question;

	if (!first || first == last || memchr(first + 1, ' ', (size_t)(last - first - 1)))
		return "malformed request line";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < 0x20 || (unsigned char)line[i] > 0x7e)
			return "byte outside ASCII in the request line";
	const char *target = first + 1;
	size_t target_len = (size_t)(last - target);
	question = memchr(target, '?', target_len);
	size_t path_len = question ? (size_t)(question - target) : target_len;
	if (*target != '/' || memchr(target, '%', path_len) || memchr(target, '#', target_len))
		return "the path must be absolute and without escapes";
	if (question && !http_query_sound(question + 1, (size_t)(last - question - 1)))
		return "an escape in the query is none, or of no character of UTF-8";
	if (line + len - last != 9 || memcmp(last, " HTTP/1.1", 9) != 0) {
		r->form_status = 505;
		return "HTTP/1.1 is needed";
	}
	r->tunnel = first - line == 7 && memcmp(line, "CONNECT", 7) == 0;
	if (!http_verb_find(&r->out->method, line, (size_t)(first - line))) {
		refuse(r, 400, "invalid HTTP method");
	} else if (target_len >= HTTP_PATH_MAX) {
		refuse(r, 414, "path too long");
	} else {
		memcpy(r->out->path, target, path_len);
		if (question)
			memcpy(r->out->query, question + 1, (size_t)(last - question - 1));
	}
	return NULL;
}

/* How many bytes from here on are letters, digits or among the others? */
static size_t
span(const char *at, size_t len, const char *others)
{
	size_t n = 0;

	while (n < len && (isalnum((unsigned char)at[n]) || strchr(others, at[n])))
		n++;
	return n;
}

static bool
is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(at, word, len) == 0;
}

/* A list of words (RFC 9110, 7.6.1). */
static void
read_connection(struct reader *r, const char *at, const char *end)
{
	for (const char *comma; at < end; at = comma + 1) {
		comma = memchr(at, ',', (size_t)(end - at));
		comma = comma ? comma : end;
		size_t len = bytes_trim(&at, comma);
		r->close |= is_word(at, len, "close");
		r->upgrade |= is_word(at, len, "upgrade");
	}
}

static void
keep(struct reader *r, enum field f, const char *at, size_t len)
{
	char *text = (char *)r->out + fields[f].offset, **copy = (char **)(void *)text;

	if (len >= (f < FIELD_MANIFEST ? fields[f].size : HTTP_VALUE_MAX))
		refuse(r, 431, "header value too long");
	else if (f < FIELD_MANIFEST)
		memcpy(text, at, len); /* zeros follow */
	else if (!(*copy = strndup(at, len)))
		refuse(r, 503, "no memory");
}

static uint64_t
read_number(struct reader *r, const char *at, size_t len)
{
	char text[DIGITS_MAX + 1] = "";
	uint64_t n = 0;

	if (len <= DIGITS_MAX)
		memcpy(text, at, len);
	if (!num_u64(text, UINT64_MAX, &n))
		refuse(r, 400, "a number is malformed");
	return n;
}

static void
read_value(struct reader *r, enum field f, const char *at, size_t len)
{
	if (f < FIELD_HOST) {
		keep(r, f, at, len);
	} else if (f == FIELD_HOST) {
		/* A name or an address, and a port: nothing that another parser could take for more. */
		if (span(at, len, ".-_:[]") < len || len == 0)
			refuse(r, 400, len ? "Host is malformed" : "Host is empty");
	} else if (f == FIELD_LENGTH) {
		r->out->has_length = true;
		r->out->length = read_number(r, at, len);
	} else if (f == FIELD_OFFSET) {
		r->out->has_offset = true;
		r->out->offset = read_number(r, at, len);
	} else if (f == FIELD_EXPECT) {
		r->out->expect_continue = is_word(at, len, "100-continue");
		if (!r->out->expect_continue)
			refuse(r, 417, "unknown expectation");
	} else if (f == FIELD_CONNECTION || f == FIELD_PROXY) {
		read_connection(r, at, at + len);
	}
}

/* A token, a colon, printable bytes. */
static const char *
read_line(struct reader *r, const char *line, size_t len)
{
	const size_t name = span(line, len, "!#$%&'*+-.^_`|~");
	unsigned f = 0;

	if (len > 0 && (line[0] == ' ' || line[0] == '\t'))
		return "folded header line";
	if (name == 0 || name == len || line[name] != ':')
		return "malformed header name";
	for (size_t i = name; i < len; i++)
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f)
			return "control character in a header";
	while (f < FIELD_OTHER && !is_word(line, name, fields[f].name))
		f++;
	if (f < FIELD_PROXY && (r->seen & 1u << f))
		refuse(r, 400, "a header came twice");
	const char *at = line + name + 1, *end = line + len;
	size_t n = bytes_trim(&at, end);
	if (f == FIELD_LENGTH && memchr(at + n, '\t', (size_t)(end - at) - n))
		refuse(r, 400, "a number is malformed");
	/* A name that only begins so may be cut by others: it has no place beside a length. */
	r->encoded |= name >= 17 && is_word(line, 17, "transfer-encoding");
	r->seen |= f != FIELD_UPGRADE || n > 0 ? 1u << f : 0;
	if (!r->bad)
		read_value(r, f, at, n);
	return NULL;
}

/* A line of the wrong form, wherever it stands, counts before what other lines say. */
static const char *
read_head(struct reader *r, const char *head, size_t len)
{
	const char *bad = NULL;

	if (len > HTTP_HEAD_MAX)
		return "too many header bytes";
	if (len > 0 && head[len - 1] == '\n' && (len == 1 || head[len - 2] != '\r'))
		return "line does not end in CRLF";
	if (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0)
		return "incomplete header block";
	for (size_t at = 0, n; at + 2 < len && !bad; at += n + 2) {
		const char *line = head + at, *lf = memchr(line, '\n', len - at);
		if (!lf || lf == line || lf[-1] != '\r')
			return "line does not end in CRLF";
		n = (size_t)(lf - line) - 1;
		if (memchr(line, '\r', n) || memchr(line, '\0', n))
			return "stray carriage return or NUL";
		bad = at == 0 ? read_request_line(r, line, n) : read_line(r, line, n);
	}
	return bad;
}

enum err
http_request_parse(
    struct http_request *out, const char *head, size_t len, unsigned *status, struct why *why)
{
	struct reader r = {.out = out, .form_status = 400};

	*out = (struct http_request){.keep_alive = false};
	const char *bad = read_head(&r, head, len);
	*status = r.form_status;
	if (bad) {
		http_request_deinit(out);
		*out = (struct http_request){.keep_alive = false};
		return err_set(why, ERR_INVALID, "%s", bad);
	}
	if (r.encoded && out->has_length)
		refuse(&r, 400, "unexpected content-length header");
	if (r.tunnel || (r.upgrade && (r.seen & 1u << FIELD_UPGRADE)))
		refuse(&r, 400, "no upgrade here");
	if (!(r.seen & 1u << FIELD_HOST))
		refuse(&r, 400, "Host is missing");
	if (r.seen & 1u << FIELD_TRANSFER)
		refuse(&r, 411, "a body needs Content-Length, not Transfer-Encoding");
	out->keep_alive = !r.close;
	*status = r.status;
	return r.bad ? err_set(why, ERR_INVALID, "%s", r.bad) : ERR_OK;
}
