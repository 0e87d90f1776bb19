#include "excerpt.h"

#include <stdio.h>
#include <string.h>

#define CLASS_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."
#define FILE_CHARS CLASS_CHARS "-<>"
#define WORD_MAX 100
#define LINE "\", line " /* behind a file's path */

/* The last `  File "PATH", line N` of a traceback; NULL: there is none. */
static const char *
last_frame(const char *text)
{
	static const char mark[] = "  File \"";
	const char *found = NULL;

	for (const char *p = text; (p = strstr(p, mark)); p += sizeof(mark) - 1)
		if (p == text || p[-1] == '\n')
			found = p + sizeof(mark) - 1;
	return found;
}

/* The line behind it that is not indented begins with the class. */
static const char *
class_line(const char *frame)
{
	const char *p = frame;

	while ((p = strchr(p, '\n'))) {
		p++;
		if (*p != ' ' && *p != '\t' && *p != '\n')
			return p;
	}
	return NULL;
}

/* So many bytes that a class or file name has, and no others up to one of `ends`; 0: it is no such name. */
static size_t
name_length(const char *p, const char *chars, const char *ends)
{
	size_t len = strspn(p, chars);

	return len > 0 && len <= WORD_MAX && (strchr(ends, p[len]) != NULL) ? len : 0;
}

/* Only the file's own name: where it lies is the owner's. */
static void
tell_exception(char *out, size_t room, const char *frame)
{
	const char *class = class_line(frame), *end = strchr(frame, '"'), *file = frame;

	if (!class || !end)
		return;
	for (const char *p = frame; p < end; p++)
		if (*p == '/')
			file = p + 1;
	size_t class_len = name_length(class, CLASS_CHARS, ":\r\n");
	size_t file_len = name_length(file, FILE_CHARS, "\"");
	size_t digits =
	    strncmp(end, LINE, strlen(LINE)) == 0 ? strspn(end + strlen(LINE), "0123456789") : 0;
	if (class_len == 0)
		return;
	if (file_len > 0 && digits > 0 && digits < 10)
		snprintf(out, room, "%.*s, %.*s line %.*s", (int)class_len, class, (int)file_len,
		    file, (int)digits, end + strlen(LINE));
	else
		snprintf(out, room, "%.*s", (int)class_len, class);
}

void
excerpt_make(char *out, size_t room, enum settings_log log, const char *text)
{
	const char *frame = log == SETTINGS_LOG_REASON ? last_frame(text) : NULL;

	out[0] = '\0';
	if (log == SETTINGS_LOG_TAIL)
		snprintf(out, room, "%s", text);
	else if (frame)
		tell_exception(out, room, frame);
}
