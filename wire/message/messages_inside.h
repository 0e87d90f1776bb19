#ifndef MESSAGES_INSIDE_H
#define MESSAGES_INSIDE_H
#include "messages.h"

struct field_reader;

/* What the messages_*.c files share. Within wire/ only. */

#define TOKEN_PREFIX "rvt1-"
#define TOKEN_TEXT_LEN (5 + 16 + 1 + 64 + 1 + 64)

/* Prints the tree and frees it. */
ERR_MUST_USE enum err messages_finish(struct buf *out, struct json *tree);
/* Parses the text and opens its root; errors stick in the reader. The caller frees *tree. */
struct field messages_open(
    struct json **tree, struct field_reader *reader, const char *text, size_t len);
struct message {
	void *out;
	size_t size;
	/* Fills `out`, which is all zeros before, from the text's root. */
	void (*read)(void *out, struct field *root);
};

/* Fills m->out from the text; after an error m->out is all zeros again. For messages that own no memory. */
ERR_MUST_USE enum err messages_decode(
    const struct message *m, const char *text, size_t len, struct why *why);
/* Reads an array of `least` to MESSAGES_LIST_MAX names into `names`; returns their number. */
size_t messages_names(message_name *names, struct field *o, const char *key, size_t least);

#endif
