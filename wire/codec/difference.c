#include "difference.h"

#include <string.h>

#include "bytes.h"
#include "prng.h"

#define VERSION 1

bool
difference_takes(const struct codec *codec)
{
	return codec->fixed_size && codec->payload_bytes(DIFFERENCE_TILE) <= DIFFERENCE_TILE_BYTES;
}

uint64_t
difference_payload_bytes(const struct codec *codec, uint64_t elements)
{
	uint64_t tiles = elements / DIFFERENCE_TILE;
	uint64_t whole = codec->payload_bytes(DIFFERENCE_TILE);

	if (tiles > DIFFERENCE_PAYLOAD_MAX / whole)
		return UINT64_MAX;
	uint64_t bytes = tiles * whole;
	if (elements % DIFFERENCE_TILE)
		bytes += codec->payload_bytes(elements % DIFFERENCE_TILE);
	return bytes > DIFFERENCE_PAYLOAD_MAX ? UINT64_MAX : bytes;
}

/* --- the head */

static enum err
check_head(const struct difference *d, uint16_t codec, uint32_t block, struct why *why)
{
	if (!d->codec || !difference_takes(d->codec))
		return err_set(why, ERR_UNSUPPORTED, "codec %u is not handled", codec);
	if (d->round == 0 || d->elements == 0 || memcmp(d->from, d->to, sizeof(d->from)) == 0)
		return err_set(why, ERR_INVALID, "round or elements are 0, or the models the same");
	if (block != d->codec->block || d->payload_bytes > DIFFERENCE_PAYLOAD_MAX ||
	    d->payload_bytes != difference_payload_bytes(d->codec, d->elements))
		return err_set(why, ERR_INVALID, "%llu bytes in blocks of %u for %llu elements",
		    (unsigned long long)d->payload_bytes, block, (unsigned long long)d->elements);
	return ERR_OK;
}

enum err
difference_decode(struct difference *out, const void *data, size_t len, struct why *why)
{
	struct bytes_reader r = bytes_reader(data, len);
	char magic[4];

	if (len < DIFFERENCE_HEAD)
		return err_set(why, ERR_INVALID, "shorter than its head of 256 bytes");
	bytes_get(&r, magic, sizeof(magic));
	uint16_t version = bytes_get_u16(&r);
	uint16_t length = bytes_get_u16(&r);
	if (memcmp(magic, "RVB1", 4) != 0)
		return err_set(why, ERR_INVALID, "the magic is not RVB1");
	if (version != VERSION)
		return err_set(why, version > VERSION ? ERR_UNSUPPORTED : ERR_INVALID,
		    "version %u; this build reads %u", version, VERSION);
	bytes_get(&r, out->job, sizeof(out->job));
	out->round = bytes_get_u64(&r);
	bytes_get(&r, out->from, sizeof(out->from));
	bytes_get(&r, out->to, sizeof(out->to));
	out->elements = bytes_get_u64(&r);
	out->payload_bytes = bytes_get_u64(&r);
	out->seed = bytes_get_u64(&r);
	uint16_t codec = bytes_get_u16(&r);
	bool zeros = bytes_get_zeros(&r, 2);
	uint32_t block = bytes_get_u32(&r);
	bytes_get(&r, out->payload_hash, sizeof(out->payload_hash));
	zeros &= bytes_get_zeros(&r, 64);
	bytes_get(&r, out->tag, sizeof(out->tag));
	out->codec = codec_find(codec);
	if (length != DIFFERENCE_HEAD || !zeros)
		return err_set(why, ERR_INVALID, "length or reserved bytes are wrong");
	return check_head(out, codec, block, why);
}

void
difference_encode(uint8_t out[DIFFERENCE_HEAD], const struct difference *in)
{
	struct bytes_writer w = bytes_writer(out, DIFFERENCE_HEAD);

	bytes_put(&w, "RVB1", 4);
	bytes_put_u16(&w, VERSION);
	bytes_put_u16(&w, DIFFERENCE_HEAD);
	bytes_put(&w, in->job, sizeof(in->job));
	bytes_put_u64(&w, in->round);
	bytes_put(&w, in->from, sizeof(in->from));
	bytes_put(&w, in->to, sizeof(in->to));
	bytes_put_u64(&w, in->elements);
	bytes_put_u64(&w, in->payload_bytes);
	bytes_put_u64(&w, in->seed);
	bytes_put_u16(&w, in->codec->id);
	bytes_put_u16(&w, 0);
	bytes_put_u32(&w, in->codec->block);
	bytes_put(&w, in->payload_hash, sizeof(in->payload_hash));
	bytes_put_zeros(&w, 64);
	bytes_put(&w, in->tag, sizeof(in->tag));
}

/* --- tiles */

struct difference_tile
difference_tile(const struct difference *d, uint64_t number)
{
	struct difference_tile t = {.number = number, .first = number * DIFFERENCE_TILE};
	uint64_t left = d->elements - t.first;

	t.count = left < DIFFERENCE_TILE ? (size_t)left : DIFFERENCE_TILE;
	t.at = number * d->codec->payload_bytes(DIFFERENCE_TILE);
	t.len = (size_t)d->codec->payload_bytes(t.count);
	return t;
}

/* A tile is a vector of its own to the codec. */
static struct codec_params
params(const struct difference *d, const struct difference_tile *t)
{
	struct prng r;

	prng_seed2(&r, d->seed, t->number);
	return (struct codec_params){
	    .elements = t->count, .block = d->codec->block, .seed = prng_u64(&r)};
}

enum err
difference_tile_encode(
    const struct difference *d, const struct difference_tile *t, const float *values, uint8_t *out)
{
	struct codec_params p = params(d, t);
	uint64_t len = 0;

	enum err e = d->codec->encode(out, &len, values, &p);
	return !e && len != t->len ? ERR_INVALID : e;
}

enum err
difference_tile_decode(
    const struct difference *d, const struct difference_tile *t, const uint8_t *bytes, float *out)
{
	struct codec_params p = params(d, t);
	uint8_t carry[64] = {0};
	double squares = 0;

	enum err e = d->codec->check(&p, 0, bytes, t->len, &squares, carry);
	return e ? e : d->codec->decode(&p, 0, t->count, bytes, t->len, out);
}

void
difference_add(float *weights, const float *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weights[i] += values[i];
}
