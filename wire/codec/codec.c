#include "codec.h"

#include <string.h>

#include "f32.h"
#include "half.h"
#include "int8.h"
#include "prng.h"
#include "rotated.h"
#include "sparse.h"

static const struct codec *const codecs[] = {
    &codec_f32,
    &codec_half_f16,
    &codec_half_bf16,
    &codec_int8,
    &codec_rotated_int4,
    &codec_rotated_sign,
    &codec_sparse,
};
#define CODECS (sizeof(codecs) / sizeof(codecs[0]))

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the table is used in place");

/* Elements read at a time: a multiple of every codec's block, none of which takes more than their floats and a scale each. */
#define PIECE 16384
#define PIECE_BYTES (PIECE * sizeof(float) + 64)

const struct codec *
codec_find(unsigned id)
{
	for (size_t i = 0; i < CODECS; i++)
		if (codecs[i]->id == id)
			return codecs[i];
	return NULL;
}

const struct codec *
codec_find_name(const char *name)
{
	for (size_t i = 0; i < CODECS; i++)
		if (strcmp(codecs[i]->name, name) == 0)
			return codecs[i];
	return NULL;
}

const char *const *
codec_names(void)
{
	static const char *const names[CODECS + 1] = {
	    "f32",
	    "f16",
	    "bf16",
	    "int8",
	    "int4",
	    "sign",
	    "sparse",
	};

	return names;
}

/* --- reading */

uint64_t
codec_table_bytes(const struct codec *c, uint64_t elements)
{
	if (c->fixed_size || c->block == 0)
		return 0;
	return (elements / c->block + (elements % c->block != 0)) * CODEC_TABLE_ENTRY;
}

enum err
codec_memory_read(void *memory, void *out, size_t len, uint64_t at)
{
	const struct codec_memory *m = memory;

	if (at > m->len || len > m->len - at)
		return ERR_CORRUPT;
	memcpy(out, (const uint8_t *)m->payload + at, len);
	return ERR_OK;
}

/* The bytes of a block, by the ends of it and of the one before. */
static enum err
find_block(const struct codec *c, const struct codec_params *p, const struct codec_source *source,
    uint64_t block, uint64_t *at, size_t *len)
{
	uint64_t table = codec_table_bytes(c, p->elements);
	uint32_t ends[2] = {0, 0};
	size_t before = block > 0 ? 1 : 0;

	enum err e = source->read(source->context, ends + 1 - before,
	    (before + 1) * CODEC_TABLE_ENTRY, (block - before) * CODEC_TABLE_ENTRY);
	if (e)
		return e;
	if (ends[0] > ends[1] || p->payload < table || ends[1] > p->payload - table)
		return ERR_INVALID;
	*at = table + ends[0];
	*len = ends[1] - ends[0];
	return ERR_OK;
}

static enum err
read_piece(const struct codec *c, const struct codec_params *p, const struct codec_source *source,
    uint64_t first, size_t count, float *out)
{
	uint8_t bytes[PIECE_BYTES];
	enum err e = ERR_OK;
	uint64_t at;
	size_t len;

	if (c->fixed_size)
		c->range(p, first, count, &at, &len);
	else
		e = find_block(c, p, source, first / c->block, &at, &len);
	if (!e && len > sizeof(bytes))
		e = ERR_INVALID;
	if (!e)
		e = source->read(source->context, bytes, len, at);
	return e ? e : c->decode(p, first, count, bytes, len, out);
}

enum err
codec_read(const struct codec *c, const struct codec_params *p, const struct codec_source *source,
    uint64_t first, size_t count, float *out)
{
	enum err e = ERR_OK;

	if (first > p->elements || count > p->elements - first)
		return ERR_INVALID;
	while (count > 0 && !e) {
		size_t room = PIECE - (size_t)(first % PIECE);
		size_t n = count < room ? count : room;
		e = read_piece(c, p, source, first, n, out);
		first += n;
		out += n;
		count -= n;
	}
	return e;
}

/* --- writing */

enum err
codec_write(const struct codec *c, const struct codec_params *p, const struct codec_elements *from,
    const struct codec_sink *to, uint64_t *payload_len)
{
	float values[PIECE];
	uint8_t bytes[PIECE_BYTES];
	struct codec_params part = *p;
	struct prng random;
	uint64_t at = 0;
	enum err e = ERR_OK;

	if (c->stream)
		return c->stream(to, payload_len, from, p);
	prng_seed(&random, p->seed);
	part.random = &random;
	for (uint64_t first = 0; !e && first < p->elements; first += PIECE) {
		size_t n = p->elements - first < PIECE ? (size_t)(p->elements - first) : PIECE;
		uint64_t len = 0;
		part.first = first;
		part.elements = n;
		e = from->read(from->context, first, n, values);
		if (!e)
			e = c->encode(bytes, &len, values, &part);
		if (!e)
			e = to->write(to->context, bytes, (size_t)len, at);
		at += len;
	}
	*payload_len = at;
	return e;
}
