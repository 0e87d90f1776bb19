#ifndef CAPABILITIES_H
#define CAPABILITIES_H
#include "messages.h"

/*
 * What a program that stands in for the built-in trainer can do, as `PROGRAM --offer` prints it (FORMAT.md). Read like a message:
 * unknown fields are ignored.
 */
#define CAPABILITIES_MAX (64u << 10) /* bytes of text */
#define CAPABILITIES_THREADS_MAX 1024

struct capabilities {
	bool trains, evaluates; /* the program does tasks of this kind */
	message_name layers[MESSAGES_LIST_MAX];
	size_t layer_count; /* at least 1 */
	message_name features[MESSAGES_LIST_MAX];
	size_t feature_count;
	uint64_t memory_bytes; /* 0: not said */
	uint64_t threads; /* 0: not said */
};

/* ERR_LIMIT for a longer text, ERR_INVALID naming the field, ERR_NOMEM; then *out is all zero. */
ERR_MUST_USE enum err capabilities_decode(
    struct capabilities *out, const char *text, size_t len, struct why *why);

#endif
