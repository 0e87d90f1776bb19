#include "json_scan.h"
#include "json.h"

#include <ctype.h>
#include <string.h>

static void
fail(struct json_scan *s, enum err e, const char *why)
{
	if (!s->why) {
		s->why = why;
		s->err = e;
	}
}

static unsigned char
peek(const struct json_scan *s, size_t ahead)
{
	return ahead < (size_t)(s->end - s->at) ? s->at[ahead] : 0;
}

size_t
json_scan_utf8(const unsigned char *p, size_t left)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (left == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (left < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Steps over an escape. */
static void
scan_escape(struct json_scan *s)
{
	size_t n = 0;

	if (peek(s, 1) != 'u') {
		s->at += peek(s, 1) == '"' || peek(s, 1) == '\\' ? 2 : 1;
		return;
	}
	while (n < 4 && peek(s, 2 + n) < 0x80 && isxdigit(peek(s, 2 + n)))
		n++;
	if (n < 4)
		fail(s, ERR_INVALID, "malformed escape");
	else if (memcmp(s->at + 2, "0000", 4) == 0)
		fail(s, ERR_INVALID, "NUL character in a string");
	s->at += 2 + n;
}

/* Steps over one character of a string; the closing quote is not one. */
static void
scan_char(struct json_scan *s)
{
	size_t n = json_scan_utf8(s->at, (size_t)(s->end - s->at));

	if (s->at == s->end)
		fail(s, ERR_INVALID, "string has no end");
	else if (n == 0)
		fail(s, ERR_INVALID, "invalid UTF-8");
	else if (*s->at < 0x20)
		fail(s, ERR_INVALID, "control character in a string");
	else if (*s->at == '\\')
		scan_escape(s);
	else
		s->at += n;
}

static void
scan_string(struct json_scan *s)
{
	s->at++;
	while (!s->why && peek(s, 0) != '"')
		scan_char(s);
	s->at++;
}

static bool
digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static size_t
digits(const struct json_scan *s, size_t from)
{
	size_t n = 0;

	while (digit(peek(s, from + n)))
		n++;
	return n;
}

/* RFC 8259 section 6; 0 if there is no number. */
static size_t
number_length(const struct json_scan *s)
{
	size_t n = peek(s, 0) == '-', more;

	more = peek(s, n) == '0' ? 1 : digits(s, n);
	if (more == 0)
		return 0;
	n += more;
	if (peek(s, n) == '.') {
		more = digits(s, n + 1);
		if (more == 0)
			return 0;
		n += 1 + more;
	}
	if (peek(s, n) == 'e' || peek(s, n) == 'E') {
		size_t sign = peek(s, n + 1) == '+' || peek(s, n + 1) == '-';
		more = digits(s, n + 1 + sign);
		if (more == 0)
			return 0;
		n += 1 + sign + more;
	}
	return n;
}

static void
scan_number(struct json_scan *s)
{
	size_t n = number_length(s);
	unsigned char next = peek(s, n);

	if (n == 0 || digit(next) || (next != 0 && strchr(".+-eE", next)))
		fail(s, ERR_INVALID, "malformed number");
	else if (n > JSON_SCAN_NUMBER_MAX)
		fail(s, ERR_INVALID, "number too long");
	s->at += n;
}

void
json_scan_word(struct json_scan *s)
{
	unsigned char c = *s->at;

	if (c == '"') {
		scan_string(s);
		return;
	}
	if (c == '-' || digit(c)) {
		scan_number(s);
		return;
	}
	if (c == '{' || c == '[') {
		if (++s->depth > JSON_DEPTH_MAX)
			fail(s, ERR_LIMIT, "nested too deeply");
	} else if (c == '}' || c == ']') {
		if (s->depth-- == 0)
			fail(s, ERR_INVALID, "closing bracket without an opening one");
	} else if (c == 0 || !strchr(" \t\r\n,:abcdefghijklmnopqrstuvwxyz", c)) {
		fail(s, ERR_INVALID, "unexpected character");
	}
	s->at++;
}

size_t
json_scan_values(const char *text, size_t len)
{
	const unsigned char *start = (const unsigned char *)text;
	struct json_scan s = {.at = start, .end = start + len};
	size_t n = 1;

	/* Each but the first comes after one of these. */
	while (!s.why && s.at < s.end) {
		n += *s.at == ',' || *s.at == '[' || *s.at == '{';
		json_scan_word(&s);
	}
	return n;
}

void
json_scan_label(char *out, size_t room, const char *text)
{
	size_t n = 0;

	for (; text[n] && n + 1 < room; n++)
		out[n] = text[n] >= 0x20 && text[n] < 0x7f ? text[n] : '?';
	out[n] = '\0';
}
