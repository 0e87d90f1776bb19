#include "http.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "hex.h"
#include "json_scan.h"

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

void
http_request_deinit(struct http_request *r)
{
	free(r->manifest);
	free(r->report);
	r->manifest = r->report = NULL;
}

static const char *const verbs[] = {"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OTHER"};
/* The other methods that are registered, or widely used. */
static const char other_verbs[] =
    "ACL BIND CHECKOUT CONNECT COPY LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE "
    "NOTIFY OPTIONS PROPFIND PROPPATCH PURGE REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND "
    "UNLINK UNLOCK UNSUBSCRIBE";

const char *
http_verb_name(enum http_verb m)
{
	return verbs[m];
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
http_verb_find(enum http_verb *out, const char *word, size_t len)
{
	unsigned m = 0;

	while (m < VERB_OTHER && (strlen(verbs[m]) != len || strncmp(verbs[m], word, len) != 0))
		m++;
	*out = m;
	return m < VERB_OTHER || stands_in(other_verbs, word, len);
}

const char *
http_reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} reasons[] = {{100, "Continue"}, {200, "OK"}, {201, "Created"}, {204, "No Content"},
	    {206, "Partial Content"}, {304, "Not Modified"}, {400, "Bad Request"},
	    {401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
	    {405, "Method Not Allowed"}, {409, "Conflict"}, {411, "Length Required"},
	    {413, "Payload Too Large"}, {414, "URI Too Long"}, {416, "Range Not Satisfiable"},
	    {417, "Expectation Failed"}, {422, "Unprocessable Entity"}, {429, "Too Many Requests"},
	    {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"},
	    {503, "Service Unavailable"}, {505, "HTTP Version Not Supported"},
	    {507, "Insufficient Storage"}};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "<unknown>";
}

/* --- queries */

/* Decodes the byte at *p, which it moves on; a plus is a space, as forms, browsers and curl have it. False: no escape begins with this percent
 * sign. */
static bool
take_byte(const char **p, const char *end, unsigned char *out)
{
	const char *at = *p;
	char digits[3] = "";

	*out = *at == '+' ? ' ' : (unsigned char)*at;
	*p = at + 1;
	if (*at != '%')
		return true;
	if (end - at < 3)
		return false;
	/* Digits are lower-case everywhere else, but not where others escape. */
	for (int i = 0; i < 2; i++)
		digits[i] = (char)tolower((unsigned char)at[i + 1]);
	*p = at + 3;
	return hex_decode(out, 1, digits, 2);
}

bool
http_query_sound(const char *query, size_t len)
{
	unsigned char text[HTTP_PATH_MAX];
	size_t n = 0;

	for (const char *p = query; p < query + len && n < sizeof(text); n++)
		if (!take_byte(&p, query + len, &text[n]) || text[n] < 0x20 || text[n] == 0x7f)
			return false;
	for (size_t i = 0, one; i < n; i += one)
		if (!(one = json_scan_utf8(text + i, n - i)))
			return false;
	return true;
}

static void
decode(const char *p, size_t len, char *out, size_t room)
{
	const char *end = p + len;
	size_t n = 0;

	while (p < end && n < room)
		(void)take_byte(&p, end, (unsigned char *)&out[n++]);
	out[n < room ? n : 0] = '\0';
}

/* The next value of `name` from p on, as it came; NULL: there is none. */
static const char *
next_value(const char *p, const char *name, size_t *value_len)
{
	size_t name_len = strlen(name);

	while (*p) {
		size_t len = strcspn(p, "&");
		*value_len = len - name_len - 1;
		if (len > name_len && p[name_len] == '=' && strncmp(p, name, name_len) == 0)
			return p + name_len + 1;
		p += len + (p[len] == '&');
	}
	return NULL;
}

bool
http_query(const struct http_request *r, const char *name, char *out, size_t room)
{
	size_t len;
	const char *value = next_value(r->query, name, &len);

	if (value)
		decode(value, len, out, room);
	return value;
}

bool
http_query_item(const struct http_request *r, const char *name, size_t nth, char *out, size_t room)
{
	size_t len;

	for (const char *p = next_value(r->query, name, &len); p; p = next_value(p, name, &len)) {
		for (;;) {
			size_t n = strcspn(p, ",&");
			if (nth-- == 0) {
				decode(p, n, out, room);
				return true;
			}
			p += n;
			if (*p != ',')
				break;
			p++;
		}
		p += *p == '&';
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
	if (!e && h->request)
		e = buf_printf(out, "Rivulet-Request: %s\r\n", h->request);
	if (!e && h->now > 0)
		e = put_date(out, h->now);
	if (!e && h->close)
		e = buf_printf(out, "Connection: close\r\n");
	if (!e)
		e = buf_printf(out, "%s\r\n", h->extra ? h->extra : "");
	return e;
}
