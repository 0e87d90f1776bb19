#ifndef TEXT_H
#define TEXT_H
#include "numbering.h"

struct dataset;
struct file_map;
struct shard;

/*
 * Text as tokens: its bytes, or the words of a vocabulary. Examples are windows of tokens that follow each other, their targets the
 * tokens that come one later. A shard is a stretch of the text.
 */
#define TEXT_WORD_MAX 256 /* bytes */
#define TEXT_WORDS_MAX (1u << 20)
#define TEXT_COPY_MAX (64u << 20) /* bytes: what is longer stays mapped */

/* A vocabulary file: one word a line, numbered from 0; \n, \t, \r and \\ stand for what they do in C. Blank lines may
 * follow the last word. ERR_INVALID names the line of a word that is there twice, too long or wrongly escaped, and a blank line before
 * a word, which would shift the numbers behind it. */
ERR_MUST_USE enum err text_vocabulary(
    struct numbering *out, const void *file, size_t len, struct why *why);
/* Cuts the text greedily into the longest words that fit; the caller frees *tokens. ERR_INVALID names the byte with which no word
 * begins. */
ERR_MUST_USE enum err text_tokens(int32_t **tokens, size_t *count,
    const struct numbering *vocabulary, const uint8_t *text, size_t len, struct why *why);

/* The text as a set of windows: *file is the set's afterwards, zeroed, also after a failure. vocabulary NULL: bytes, which stay mapped.
 * shard NULL: all of it. A byte order mark of UTF-8 is no part of a text; one in UTF-16 is ERR_INVALID. A text of at most `window` tokens, but
 * two at least, is one example that is as long as itself. */
ERR_MUST_USE enum err text_load(struct dataset *out, struct file_map *file,
    const struct numbering *vocabulary, const struct shard *shard, uint64_t window,
    struct why *why);

#endif
