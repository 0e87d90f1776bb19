#ifndef RECIPE_TEXT_H
#define RECIPE_TEXT_H
#include <stdbool.h>
#include <stddef.h>

#include "err.h"

struct buf;
struct json;

/*
 * A recipe as JSON without white space, its keys in the order of FORMAT.md: what a task carries and a trainer reads. The text is kept
 * instead of the JSON tree, which takes up to 60 times the memory. Counted by reference and freed with the last user. Any thread.
 */
#define RECIPE_TEXT_MAX ((1u << 20) - 8192) /* so that messages of 1 MiB can carry it */
struct recipe_text;

/* Prints the recipe's keys of `doc`. central: without "evaluate", which training devices do not need and older ones do not know. ERR_LIMIT
 * past RECIPE_TEXT_MAX. */
ERR_MUST_USE enum err recipe_text_new(
    struct recipe_text **out, const struct json *doc, bool central, struct why *why);
/* Adds a user and returns t. NULL is legal. */
struct recipe_text *recipe_text_hold(struct recipe_text *t);
void recipe_text_free(struct recipe_text *t);
/* Zero-terminated; valid as long as the caller is a user. */
const char *recipe_text_all(const struct recipe_text *t);
size_t recipe_text_bytes(const struct recipe_text *t);
/* The JSON text of "params", or {}: a copy that the caller frees; NULL if memory is short. */
char *recipe_text_params(const struct recipe_text *t);
/* Appends the text to out. codec not "": with this one name as upload.codec. */
ERR_MUST_USE enum err recipe_text_print(
    struct buf *out, const struct recipe_text *t, const char *codec);

#endif
