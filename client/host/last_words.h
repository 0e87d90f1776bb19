#ifndef LAST_WORDS_H
#define LAST_WORDS_H
#include <stddef.h>

/* The end of a program's output, of any length. */
struct last_words {
	char *text; /* the caller's, room bytes; NUL-terminated */
	size_t room, len;
};

/* Begins with an empty text. room: at least 1. */
void last_words_init(struct last_words *l, char *text, size_t room);
/* Keeps the last room - 1 bytes. */
void last_words_add(struct last_words *l, const char *data, size_t n);

#endif
