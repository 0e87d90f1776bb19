#ifndef CODEC_H
#define CODEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec_elements.h"

/*
 * How the elements of a delta travel. A codec is one row of a table; encode and decode stand side by side in
 * codec_<name>.c. All little-endian. Decoding gives the same bits on every machine.
 */
enum codec_id {
	CODEC_F32 = 0,
	CODEC_F16 = 1,
	CODEC_INT8 = 2,
	CODEC_INT4 = 3,
	CODEC_SPARSE = 4,
	CODEC_BF16 = 5,
	CODEC_SIGN = 6,
	CODEC_IDS,
};

struct prng;

/* What encoding and decoding need to know besides the bytes. */
struct codec_params {
	uint64_t elements;
	uint32_t block; /* manifest field; 0 for codecs without blocks */
	uint64_t seed;
	/* Only for codecs without fixed size: entries, payload, table. */
	uint64_t entries; /* the most elements that are sent; 0: all */
	uint64_t payload; /* bytes of the payload */
	uint8_t *table; /* for `check`: room for codec_table_bytes, kept between calls */
	/* Only for `encode` of a codec with fixed size that is called part by part (codec_write); `elements` is then of the part. */
	uint64_t first; /* elements before the part, a multiple of the block */
	/* The generator, started with `seed`, as the part before left it; NULL: a fresh one. */
	struct prng *random;
};

/* Where a payload goes. */
struct codec_sink {
	enum err (*write)(void *context, const void *data, size_t len, uint64_t at);
	void *context;
};

struct codec {
	uint16_t id;
	const char *name;
	uint32_t block; /* the only block size taken, in elements; 0 without blocks */
	bool fixed_size; /* payload length follows from the number of elements */
	/* Bytes of a payload of `elements`, UINT64_MAX on overflow; of a codec without fixed size the most bytes for any number of
	 * entries. */
	uint64_t (*payload_bytes)(uint64_t elements);
	/* payload has payload_bytes(elements) bytes. ERR_NUMERIC if a value is not finite. */
	enum err (*encode)(void *payload, uint64_t *payload_len, const float *values,
	    const struct codec_params *p);
	/* `encode` in little memory, with values from *from and the payload to *to. NULL for codecs with fixed size: codec_write calls
	 * their `encode` part by part. */
	enum err (*stream)(const struct codec_sink *to, uint64_t *payload_len,
	    const struct codec_elements *from, const struct codec_params *p);
	/* Checks `len` bytes that stand at byte offset `at` of the payload as they arrive, in order and without gaps.
	 * `carry` is zeroed before the first call and holds what straddles two calls. `sum_squares` has grown by the
	 * squares of all decoded values once the last byte was seen, and does not depend on how the payload was cut.
	 * ERR_NUMERIC for NaN or infinity, ERR_INVALID for bytes no encoder makes and for bytes past the end. */
	enum err (*check)(const struct codec_params *p, uint64_t at, const void *data, size_t len,
	    double *sum_squares, uint8_t carry[64]);
	/* Byte range of the payload that holds elements [first, first+count). NULL without fixed size. */
	void (*range)(
	    const struct codec_params *p, uint64_t first, size_t count, uint64_t *at, size_t *len);
	/* Decodes elements [first, first+count) from the bytes that `range` gives; of a codec without fixed size from the bytes of the one
	 * block that holds them all. ERR_INVALID if len does not fit the elements. */
	enum err (*decode)(const struct codec_params *p, uint64_t first, size_t count,
	    const void *data, size_t len, float *out);
};

/*
 * A payload without fixed size begins with a table, one u32 per block of elements: how many bytes lie between the table's end
 * and the block's end. So any block is found by eight bytes of the table.
 */
#define CODEC_TABLE_ENTRY 4
/* Bytes of the table; 0 if there is none. */
uint64_t codec_table_bytes(const struct codec *c, uint64_t elements);

/* Where a payload lies: reads len bytes from byte `at` of it on. */
struct codec_source {
	enum err (*read)(void *context, void *out, size_t len, uint64_t at);
	void *context;
};
/* A source over a payload in memory; the struct is the context. */
struct codec_memory {
	const void *payload;
	uint64_t len;
};
enum err codec_memory_read(void *memory, void *out, size_t len, uint64_t at);

/* Decodes elements [first, first + count) of a payload that was checked, reading no more than they need. The source's error;
 * ERR_INVALID for elements that are not there or a payload that check would refuse. */
ERR_MUST_USE enum err codec_read(const struct codec *c, const struct codec_params *p,
    const struct codec_source *source, uint64_t first, size_t count, float *out);

/* Encodes tile by tile in 200 KiB of memory, whatever the length, to the bytes that `encode` gives. Bytes may be written before a value
 * that is not finite is found (ERR_NUMERIC). ERR_INVALID if `from` gives other values when read again; errors of from->read and
 * to->write. */
ERR_MUST_USE enum err codec_write(const struct codec *c, const struct codec_params *p,
    const struct codec_elements *from, const struct codec_sink *to, uint64_t *payload_len);

/* NULL if this build does not handle the id or name. */
const struct codec *codec_find(unsigned id);
const struct codec *codec_find_name(const char *name);
/* Names of all codecs of this build, NULL-terminated. */
const char *const *codec_names(void);

#endif
