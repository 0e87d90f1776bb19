#ifndef EDIT_H
#define EDIT_H
#include "json.h"

/*
 * Changes to a job document before it is submitted: "local.optimizer.rate=0.01". A path is keys with dots between them; a key's own dot
 * is written "\.". The value is JSON or, where it is none, a string as it stands. Objects that are missing on the way are made; what
 * stands on the way and is no object is an error. Everything else stays, in its order.
 */
#define EDIT_PATH_MAX 256
#define EDIT_KEYS_MAX 16
#define EDIT_KEY_MAX 128

/* "PATH=VALUE" in two. ERR_INVALID without either's beginning. *value points into the text. */
ERR_MUST_USE enum err edit_split(
    const char *text, char path[EDIT_PATH_MAX], const char **value, struct why *why);
/* *document is an object, and is replaced by one that has the value at the path; on failure it stays. */
ERR_MUST_USE enum err edit_put(
    struct json **document, const char *path, const struct json *value, struct why *why);
/* The value as the text says it. */
ERR_MUST_USE enum err edit_value(struct json **out, const char *text, struct why *why);
/* All three. */
ERR_MUST_USE enum err edit_set(struct json **document, const char *text, struct why *why);

#endif
