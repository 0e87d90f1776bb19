#ifndef DIFFERENCE_H
#define DIFFERENCE_H
#include "codec.h"

/*
 * How one model comes out of another: the head of a difference, 256 bytes (layout in FORMAT.md), and behind it the delta vector of
 * "new minus old" in a codec of fixed size. A model that was made so *is* the old one plus the decoded difference: whoever
 * adds it gets the same bits. Tiles of DIFFERENCE_TILE elements are encoded each for itself, so that neither side needs the whole
 * vector. Hashing and checking `payload_hash` and `tag` is the callers' business.
 */
#define DIFFERENCE_HEAD 256
#define DIFFERENCE_TAGGED 224 /* the tag covers the bytes before it */
#define DIFFERENCE_TILE 16384
/* No tile has more bytes, in any codec. */
#define DIFFERENCE_TILE_BYTES (DIFFERENCE_TILE * sizeof(float))
#define DIFFERENCE_PAYLOAD_MAX (1ull << 48)

struct difference {
	uint8_t job[16];
	uint64_t round; /* the round that made the new model, at least 1 */
	uint8_t from[32], to[32]; /* model ids; they differ */
	uint64_t elements; /* at least 1 */
	uint64_t payload_bytes;
	uint64_t seed;
	const struct codec *codec;
	uint8_t payload_hash[32];
	uint8_t tag[32];
};

/* Can the codec be used: has it a fixed size, and does a tile fit DIFFERENCE_TILE_BYTES? */
bool difference_takes(const struct codec *codec);
/* Bytes of a difference's payload for so many elements; UINT64_MAX above DIFFERENCE_PAYLOAD_MAX. */
uint64_t difference_payload_bytes(const struct codec *codec, uint64_t elements);

/* `len` may be more than the head. ERR_INVALID unless magic, version, lengths and ids are right and reserved bytes zero;
 * ERR_UNSUPPORTED for a later version or a codec that this build does not handle. */
ERR_MUST_USE enum err difference_decode(
    struct difference *out, const void *data, size_t len, struct why *why);
/* The first DIFFERENCE_TAGGED bytes are then to be tagged; put the tag behind them. */
void difference_encode(uint8_t out[DIFFERENCE_HEAD], const struct difference *in);

/* One tile: its elements [first, first + count) and its bytes [at, at + len) of the payload. */
struct difference_tile {
	uint64_t number, first, at;
	size_t count, len;
};
/* number * DIFFERENCE_TILE < elements. Uses codec and elements of d. */
struct difference_tile difference_tile(const struct difference *d, uint64_t number);
/* Encodes t->count values into t->len bytes. ERR_NUMERIC if a value is not finite, or not once rounded by this codec. */
ERR_MUST_USE enum err difference_tile_encode(
    const struct difference *d, const struct difference_tile *t, const float *values, uint8_t *out);
/* Checks t->len bytes, which need not come from an encoder, and decodes them to t->count values. ERR_NUMERIC, ERR_INVALID. */
ERR_MUST_USE enum err difference_tile_decode(
    const struct difference *d, const struct difference_tile *t, const uint8_t *bytes, float *out);
/* The one rounded addition that makes the new weights. */
void difference_add(float *weights, const float *values, size_t count);

#endif
