#include "text.h"

#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "err.h"
#include "file.h"
#include "shard.h"
#include "text_file.h"
#include "unpack.h"

/* Undoes the escapes of a word; false if there is another. */
static bool
unescape(char *word, size_t *len)
{
	static const char from[] = "ntr\\", to[] = "\n\t\r\\";
	size_t n = 0;

	for (size_t i = 0; i < *len; i++) {
		char c = word[i];
		if (c == '\\') {
			const char *at = i + 1 < *len ? strchr(from, word[++i]) : NULL;
			if (!at || !*at)
				return false;
			c = to[at - from];
		}
		word[n++] = c;
	}
	*len = n;
	return true;
}

static enum err
add_word(struct numbering *out, char *word, size_t len, uint64_t line, struct why *why)
{
	const char *wrong = NULL;
	uint32_t number;
	size_t before = out->count;
	enum err e = ERR_INVALID;

	if (!unescape(word, &len))
		wrong = "holds an escape other than \\n, \\t, \\r and \\\\";
	else if (len > TEXT_WORD_MAX)
		wrong = "is longer than 256 bytes";
	else if ((e = numbering_add(out, word, len, TEXT_WORDS_MAX, &number)))
		wrong = e == ERR_LIMIT ? "is one word too many" : "has no memory left";
	else if (number < before) {
		wrong = "repeats an earlier word";
		e = ERR_INVALID;
	}
	return wrong ? err_set(why, e, "line %llu %s", (unsigned long long)line, wrong) : ERR_OK;
}
_Static_assert(TEXT_WORD_MAX == 256, "add_word names the longest word");

/* Does a carriage return end some lines and a line feed others? Then it may be meant as a word, or a part of one. */
static bool
mixes(const char *end, bool *cr, bool *lf)
{
	*cr = *cr || (end[0] == '\r' && !end[1]);
	*lf = *lf || strchr(end, '\n');
	return *cr && *lf;
}

/* Words in lines. Blank lines may follow the last, and are nowhere else: they would shift the numbers of what follows. */
static enum err
read_words(struct numbering *out, struct unpack *io, struct buf *line, struct why *why)
{
	bool cr = false, lf = false;
	uint64_t blank = 0;

	for (uint64_t number = 1;; number++) {
		const char *end;
		buf_reset(line);
		enum err e = unpack_line(io, line, &end, why);
		if (e == ERR_LIMIT)
			return err_set(why, e, "line %llu is too long", (unsigned long long)number);
		if (e || !end)
			return e;
		if (mixes(end, &cr, &lf))
			return err_set(why, ERR_INVALID,
			    "line %llu ends with a carriage return, others with a line feed; \\r "
			    "stands for one in a word",
			    (unsigned long long)number);
		if (line->len > 0 && blank > 0)
			return err_set(why, ERR_INVALID,
			    "line %llu is blank, and would shift the numbers of the words behind "
			    "it; \\n stands for a line feed",
			    (unsigned long long)blank);
		if (line->len == 0 && blank == 0)
			blank = number;
		e = line->len > 0 ? add_word(out, line->data, line->len, number, why) : ERR_OK;
		if (e)
			return e;
	}
}

enum err
text_vocabulary(struct numbering *out, const void *file, size_t len, struct why *why)
{
	struct unpack *io;
	struct buf line;
	enum err e = unpack_open(&io, file, len, why);

	if (e)
		return e;
	numbering_init(out);
	buf_init(&line, 4 * TEXT_WORD_MAX);
	e = unpack_text(io, why);
	if (!e)
		e = read_words(out, io, &line, why);
	if (!e && out->count == 0)
		e = err_set(why, ERR_INVALID, "the vocabulary holds no words");
	buf_deinit(&line);
	unpack_close(io);
	if (e)
		numbering_deinit(out);
	return e;
}

/* The word that the text begins with, the longest of them; NUMBERING_NONE if none does. */
static uint32_t
longest(const struct numbering *v, const uint8_t *lengths, const uint8_t *text, size_t len,
    size_t *took)
{
	size_t most = (size_t)lengths[text[0]] + 1;

	for (size_t n = len < most ? len : most; n > 0; n--) {
		uint32_t number = numbering_find(v, (const char *)text, n);
		if (number != NUMBERING_NONE) {
			*took = n;
			return number;
		}
	}
	return NUMBERING_NONE;
}

/* Of the words that begin with each byte, the longest; less one. */
static void
measure(const struct numbering *v, uint8_t lengths[256])
{
	memset(lengths, 0, 256);
	for (size_t i = 0; i < v->count; i++) {
		uint8_t *most = &lengths[(uint8_t)numbering_text(v, i)[0]];
		if (v->items[i].len - 1 > *most)
			*most = (uint8_t)(v->items[i].len - 1);
	}
}

enum err
text_tokens(int32_t **tokens, size_t *count, const struct numbering *vocabulary,
    const uint8_t *text, size_t len, struct why *why)
{
	uint8_t lengths[256];
	int32_t *out = len <= SIZE_MAX / sizeof(*out) ? malloc(len * sizeof(*out)) : NULL;
	size_t n = 0;

	if (!out)
		return err_set(why, ERR_NOMEM, "no memory for the tokens of %zu bytes", len);
	measure(vocabulary, lengths);
	for (size_t at = 0, took = 0; at < len; at += took) {
		uint32_t word = longest(vocabulary, lengths, text + at, len - at, &took);
		if (word == NUMBERING_NONE) {
			free(out);
			return err_set(why, ERR_INVALID,
			    text[at] == '\r'
				? "byte %zu: no word of the vocabulary begins there: it is a "
				  "carriage return, \\r in a vocabulary"
				: "byte %zu: no word of the vocabulary begins there",
			    at + 1);
		}
		out[n++] = (int32_t)word;
	}
	void *less = realloc(out, n > 0 ? n * sizeof(*out) : 1);
	*tokens = less ? less : out;
	*count = n;
	return ERR_OK;
}

static bool
is_big_endian(void)
{
	const uint16_t one = 1;

	return *(const uint8_t *)&one == 0;
}

/* Only the shard's stretch of them counts from here on. */
static enum err
take_stretch(struct dataset_rows *r, const struct shard *s, struct why *why)
{
	size_t n = r->items, size = dataset_type_size(r->type);

	if (!s || s->count <= 1)
		return ERR_OK;
	if (s->index < 1 || s->index > s->count)
		return err_set(why, ERR_INVALID, "shard %u/%u does not exist", s->index, s->count);
	size_t from = (size_t)((uint64_t)n * (s->index - 1) / s->count);
	size_t to = (size_t)((uint64_t)n * s->index / s->count);
	r->values += from * size;
	r->items = to - from;
	return ERR_OK;
}

static enum err
make_tokens(struct dataset_rows *r, const struct numbering *vocabulary, struct why *why)
{
	int32_t *tokens = NULL;
	enum err e = text_tokens(&tokens, &r->items, vocabulary, r->values, r->items, why);

	if (e)
		return e;
	file_unmap(&r->map);
	r->map = (struct file_map){0};
	r->heap = tokens;
	r->values = (const uint8_t *)tokens;
	r->type = DATASET_I32;
	r->big_endian = is_big_endian();
	return ERR_OK;
}

static enum err
copy_text(struct dataset_rows *r, struct why *why)
{
	r->heap = malloc(r->items + 1);
	if (!r->heap)
		return err_set(why, ERR_NOMEM, "no memory for %zu bytes", r->items);
	memcpy(r->heap, r->values, r->items);
	file_unmap(&r->map);
	r->map = (struct file_map){0};
	r->values = r->heap;
	return ERR_OK;
}

/* The text that the mapped bytes are. */
static enum err
begin(struct dataset_rows *r, struct why *why)
{
	if (r->map.len >= 2 && memcmp(r->values, "\x1f\x8b", 2) == 0)
		return err_set(why, ERR_UNSUPPORTED, "a text is read plain: unpack it with gunzip");
	size_t mark = text_file_mark(r->values, r->items);
	enum err e = text_file_check(r->values, r->items, why);
	r->values += mark;
	r->items -= mark;
	return e;
}

/* A network may have fewer tokens than there are bytes, or words. */
static void
find_token_end(struct dataset_rows *r)
{
	const uint8_t *bytes = r->values;
	size_t size = dataset_type_size(r->type);
	uint32_t most = 0;

	for (size_t i = 0; i < r->items; i++, bytes += size) {
		uint32_t token = *bytes;
		if (size == sizeof(token))
			memcpy(&token, bytes, sizeof(token));
		most = token > most ? token : most;
	}
	r->token_end = (size_t)most + 1;
}

enum err
text_load(struct dataset *out, struct file_map *file, const struct numbering *vocabulary,
    const struct shard *shard, uint64_t window, struct why *why)
{
	struct dataset all = {.classes = vocabulary ? vocabulary->count : 256};
	enum err e = ERR_OK;

	all.rows = calloc(1, sizeof(*all.rows));
	if (!all.rows) {
		file_unmap(file);
		return err_set(why, ERR_NOMEM, "no memory to read the file");
	}
	*all.rows = (struct dataset_rows){.users = 1,
	    .map = *file,
	    .values = file->data,
	    .type = DATASET_U8,
	    .tokens = true,
	    .items = file->len};
	*file = (struct file_map){0};
	struct dataset_rows *r = all.rows;
	e = begin(r, why);
	if (!e && vocabulary)
		e = make_tokens(r, vocabulary, why);
	else if (!e && r->map.len <= TEXT_COPY_MAX)
		e = copy_text(r, why);
	if (!e)
		e = take_stretch(r, shard, why);
	if (!e) {
		find_token_end(r);
		/* A job may want shorter windows than the owner says. */
		bool shorter = r->items >= 2 && r->items <= window;
		e = dataset_cut(out, &all, shorter ? r->items - 1 : window, why);
	}
	dataset_deinit(&all);
	return e;
}
