#ifndef TEXT_H
#define TEXT_H
#include "numbering.h"

struct dataset;
struct file_map;
struct shard;

/*
 * Text as tokens: its bytes, or the words of a vocabulary. An example is a window of consecutive tokens; its targets are the tokens one
 * place later. A shard is a contiguous part of the text.
 */
#define TEXT_WORD_MAX 256 /* bytes */
#define TEXT_WORDS_MAX (1u << 20)
#define TEXT_COPY_MAX (64u << 20) /* bytes: a longer text stays mapped */

/* Reads a vocabulary file: one word a line, numbered from 0; \n, \t, \r and \\ mean the same as in C. Blank lines may
 * follow the last word. ERR_INVALID names the line of a word that is there twice, too long or wrongly escaped, and of a blank line before
 * a word (the blank line would shift the numbers of later words). */
ERR_MUST_USE enum err text_vocabulary(
    struct numbering *out, const void *file, size_t len, struct why *why);
/* Cuts the text greedily into the longest words of the vocabulary; the caller frees *tokens. ERR_INVALID names the byte at which no word
 * fits. */
ERR_MUST_USE enum err text_tokens(int32_t **tokens, size_t *count,
    const struct numbering *vocabulary, const uint8_t *text, size_t len, struct why *why);

/* Makes a set of windows of the text. The set takes the mapping over: *file is zeroed, also after a failure. vocabulary NULL: tokens are
 * the bytes, which stay mapped. shard NULL: the whole text. A byte order mark of UTF-8 is no part of the text; a text in UTF-16 is
 * ERR_INVALID. A text of 2 to `window` tokens is one example. */
ERR_MUST_USE enum err text_load(struct dataset *out, struct file_map *file,
    const struct numbering *vocabulary, const struct shard *shard, uint64_t window,
    struct why *why);

#endif
