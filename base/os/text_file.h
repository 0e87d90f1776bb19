#ifndef TEXT_FILE_H
#define TEXT_FILE_H
#include <stddef.h>

#include "err.h"

/*
 * Text files that people write: UTF-8, with a byte order mark or without. UTF-16 and UTF-32, which some editors write, are known by their
 * first bytes and refused with advice on how to convert the file, before a parser sees them.
 */

/* The bytes of the mark that a text begins with, 3 or 0: they are no part of it. */
size_t text_file_mark(const void *text, size_t len);
/* ERR_INVALID if the text begins like UTF-16 or UTF-32, marked or not; `why` names no file. */
ERR_MUST_USE enum err text_file_check(const void *text, size_t len, struct why *why);
/* text_file_check of a text in memory that ends with a zero byte (as file_read gives it), then removes the mark: the rest moves to the
 * beginning. */
ERR_MUST_USE enum err text_file_strip(char *text, size_t *len, struct why *why);
/* file_read, then text_file_strip: *text begins behind the mark. */
ERR_MUST_USE enum err text_file_read(
    const char *path, size_t max, char **text, size_t *len, struct why *why);
/* The length of the line at `text`, which LF, CRLF or CR ends; *next: from there to the next line. */
size_t text_file_line(const char *text, size_t len, size_t *next);

#endif
