#ifndef CODEC_H
#define CODEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

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
};

/* What decoding a delta needs to know besides its bytes. */
struct codec_params {
	uint64_t elements;
	uint32_t block; /* manifest field; 0 for codecs without blocks */
	uint64_t seed;
};

struct codec {
	uint16_t id;
	const char *name;
	uint32_t block; /* the only block size taken, in elements; 0 without blocks */
	bool fixed_size; /* payload length follows from the number of elements */
	/* Bytes for `elements`, UINT64_MAX if that is no number; for a codec without fixed size the most it may take. */
	uint64_t (*payload_bytes)(uint64_t elements);
	/* payload has payload_bytes(elements) bytes. ERR_NUMERIC if a value is not finite. */
	enum err (*encode)(void *payload, uint64_t *payload_len, const float *values,
	    const struct codec_params *p);
	/* Checks `len` bytes that stand at byte offset `at` of the payload as they arrive, in order and without gaps.
	 * `carry` is zeroed before the first call and holds what straddles two calls. `sum_squares` has grown by the
	 * squares of all decoded values once the last byte was seen, and does not depend on how the payload was cut.
	 * ERR_NUMERIC for NaN or infinity, ERR_INVALID for bytes no encoder makes and for bytes past the end. */
	enum err (*check)(const struct codec_params *p, uint64_t at, const void *data, size_t len,
	    double *sum_squares, uint8_t carry[64]);
	/* Byte range of the payload that holds elements [first, first+count). */
	void (*range)(
	    const struct codec_params *p, uint64_t first, size_t count, uint64_t *at, size_t *len);
	/* Decodes elements [first, first+count) from the bytes of that range; ERR_INVALID if range and len do not fit. */
	enum err (*decode)(const struct codec_params *p, uint64_t first, size_t count,
	    const void *data, size_t len, float *out);
};

/* NULL if this build does not handle the id or name. */
const struct codec *codec_find(unsigned id);
const struct codec *codec_find_name(const char *name);
/* Names of all codecs of this build, NULL-terminated. */
const char *const *codec_names(void);

#endif
