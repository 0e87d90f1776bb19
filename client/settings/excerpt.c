#include "excerpt.h"

#include <stdio.h>
#include <string.h>

#define CLASS_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."
#define FILE_CHARS CLASS_CHARS "-<>"
#define WORD_MAX 100
#define LINE "\", line " /* behind a file's path */

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

/* The next `  File "PATH", line N` of a traceback, at PATH; NULL: there is none. */
static const char *
next_frame(const char *text, const char *p)
{
	static const char mark[] = "  File \"";

	for (; (p = strstr(p, mark)); p += sizeof(mark) - 1)
		if (p == text || p[-1] == '\n')
			return p + sizeof(mark) - 1;
	return NULL;
}

static bool
path_has(const char *path, size_t len, const char *part)
{
	const char *found = strstr(path, part);

	return found && found + strlen(part) <= path + len;
}

/* Of Python or installed, and so not of the owner's program. */
static bool
is_library(const char *path)
{
	static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3.",
	    "/lib64/python3.", "/lib/python3/"};
	size_t len = strcspn(path, "\"\n");

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (path_has(path, len, parts[i]))
			return true;
	return strncmp(path, "<frozen", strlen("<frozen")) == 0;
}

/* Of the last traceback: its last frame, and the last one of the owner's program; else that is the last one, too. */
static void
find_frames(const char *text, const char **last, const char **own)
{
	const char *found = NULL;

	*last = NULL;
	for (const char *p = text; (p = next_frame(text, p)); *last = p) {
		const char *class = *last ? class_line(*last) : NULL;
		if (class && class < p)
			found = NULL;
		if (!is_library(p))
			found = p;
	}
	*own = found ? found : *last;
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
tell_exception(char *out, size_t room, const char *class, const char *frame)
{
	const char *end = strchr(frame, '"'), *file = frame;

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
	const char *last = NULL, *own = NULL;

	if (log == SETTINGS_LOG_REASON)
		find_frames(text, &last, &own);
	out[0] = '\0';
	if (log == SETTINGS_LOG_TAIL)
		snprintf(out, room, "%s", text);
	else if (last)
		tell_exception(out, room, class_line(last), own);
}
