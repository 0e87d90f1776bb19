#ifndef EDIT_H
#define EDIT_H
#include "json.h"

/*
 * Changes to a job document before it is submitted: "local.optimizer.rate=0.01". A path is keys with dots between them; a dot in a key
 * is written "\.". The value is JSON; a text that is not JSON is taken as a string. Objects that are missing on the path are made; a value
 * on the path that is not an object is an error. Everything else stays, in its order.
 */
#define EDIT_PATH_MAX 256
#define EDIT_KEYS_MAX 16
#define EDIT_KEY_MAX 128

/* Splits "PATH=VALUE". ERR_INVALID without "=" or with an empty path. *value points into the text. */
ERR_MUST_USE enum err edit_split(
    const char *text, char path[EDIT_PATH_MAX], const char **value, struct why *why);
/* Replaces *document, an object, by one that has the value at the path; on failure *document is unchanged. */
ERR_MUST_USE enum err edit_put(
    struct json **document, const char *path, const struct json *value, struct why *why);
/* *out: the text as a JSON value, or as a string; the caller frees it. */
ERR_MUST_USE enum err edit_value(struct json **out, const char *text, struct why *why);
/* edit_split, edit_value and edit_put: applies "PATH=VALUE" to the document. */
ERR_MUST_USE enum err edit_set(struct json **document, const char *text, struct why *why);

#endif
