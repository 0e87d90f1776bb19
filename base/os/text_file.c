#include "text_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

#define LOOK_AT 4096 /* bytes */

/* Marks, the longer ones first, and what stands there instead of UTF-8; NULL: that is it. */
static const struct mark {
	const char *bytes;
	size_t len;
	const char *name;
} marks[] = {{"\xef\xbb\xbf", 3, NULL}, {"\xff\xfe\0\0", 4, "UTF-32"},
    {"\0\0\xfe\xff", 4, "UTF-32"}, {"\xff\xfe", 2, "UTF-16"}, {"\xfe\xff", 2, "UTF-16"}};

static const struct mark *
find_mark(const void *text, size_t len)
{
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (len >= marks[i].len && memcmp(text, marks[i].bytes, marks[i].len) == 0)
			return &marks[i];
	return NULL;
}

size_t
text_file_mark(const void *text, size_t len)
{
	const struct mark *m = find_mark(text, len);

	return m && !m->name ? m->len : 0;
}

/* Of text without a mark: one byte of nearly every pair is zero, the other never. */
static const char *
unmarked(const unsigned char *text, size_t len)
{
	size_t pairs = (len < LOOK_AT ? len : LOOK_AT) / 2, zeros[2] = {0, 0};

	for (size_t i = 0; i < 2 * pairs; i++)
		zeros[i % 2] += text[i] == 0;
	if (pairs < 2 || (zeros[0] > 0) == (zeros[1] > 0) ||
	    zeros[0] + zeros[1] < pairs - pairs / 4)
		return NULL;
	return zeros[1] > 0 ? "UTF-16LE" : "UTF-16BE";
}

enum err
text_file_check(const void *text, size_t len, struct why *why)
{
	const struct mark *m = find_mark(text, len);
	const char *name = m ? m->name : unmarked(text, len);

	return name ? err_set(why, ERR_INVALID,
			  "this is %s; UTF-8 is read, which \"iconv -f %s -t UTF-8\" makes of it",
			  name, name)
		    : ERR_OK;
}

enum err
text_file_strip(char *text, size_t *len, struct why *why)
{
	size_t mark = text_file_mark(text, *len);
	enum err e = text_file_check(text, *len, why);

	if (e || mark == 0)
		return e;
	*len -= mark;
	memmove(text, text + mark, *len + 1);
	return ERR_OK;
}

enum err
text_file_read(const char *path, size_t max, char **text, size_t *len, struct why *why)
{
	struct why inner = {""};
	enum err e = file_read(path, max, text, len, why);

	if (!e && (e = text_file_strip(*text, len, &inner))) {
		free(*text);
		*text = NULL;
		err_set(why, e, "%.120s: %.120s", path, inner.text);
	}
	return e;
}

size_t
text_file_line(const char *text, size_t len, size_t *next)
{
	size_t n = 0;

	/* One pass for both: the next LF may be as far away as the end of the file, at every line. */
	while (n < len && text[n] != '\n' && text[n] != '\r')
		n++;
	*next = n + (n < len) + (n + 1 < len && text[n] == '\r' && text[n + 1] == '\n');
	return n;
}
