#include "rotated.h"

#include <math.h>
#include <string.h>

#include "block.h"
#include "cpu.h"
#include "rotate.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "scales are used in place");

#define BLOCK ROTATE_MAX
#define LEAST 8 /* elements of a block: whole bytes of bits */
#define SCALE sizeof(float)
#define LEVELS 8 /* of either sign */
#define LARGEST 2.74f /* above every level */

/* Lloyd and Max's best 16 levels for a normal distribution, and the borders half-way between; computed. */
static const float levels[LEVELS] = {0.128395030f, 0.388048299f, 0.656759119f, 0.942340456f,
    1.256231197f, 1.618046386f, 2.069017227f, 2.732589571f};
static const float borders[LEVELS - 1] = {0.258221665f, 0.522403709f, 0.799549788f, 1.099285827f,
    1.437138792f, 1.843531806f, 2.400803399f};

/* What tells the two codecs apart. Codes are unsigned, the highest bit is the sign. */
struct format {
	unsigned bits;
	/* Writes n codes for x, whose root mean square is sigma, and their values to y. */
	void (*quantise)(uint8_t *codes, float *y, const float *x, size_t n, float sigma);
	/* The values of n codes, times scale. */
	void (*expand)(float *y, const uint8_t *codes, size_t n, float scale);
};

/* --- four bits, two codes a byte, the lower half first */

CPU_CLONES static void
nearest_levels(
    uint8_t *restrict code, float *restrict y, const float *restrict x, size_t n, float sigma)
{
	for (size_t i = 0; i < n; i++) {
		float m = fabsf(x[i]), level = levels[0];
		uint32_t at = 0;
		for (size_t k = 0; k < LEVELS - 1; k++) {
			level = m > borders[k] * sigma ? levels[k + 1] : level;
			at += m > borders[k] * sigma;
		}
		code[i] = (uint8_t)(at | (x[i] < 0 ? LEVELS : 0));
		y[i] = x[i] < 0 ? -level : level;
	}
}

static void
quantise_int4(uint8_t *codes, float *y, const float *x, size_t n, float sigma)
{
	uint8_t wide[BLOCK];

	nearest_levels(wide, y, x, n, sigma);
	for (size_t i = 0; i < n; i += 2)
		codes[i / 2] = (uint8_t)(wide[i] | wide[i + 1] << 4);
}

/* What each byte stands for: as many look-ups as bytes. */
static void
expand_int4(float *y, const uint8_t *codes, size_t n, float scale)
{
	float values[2 * LEVELS], pairs[4 * LEVELS * LEVELS][2];

	for (size_t i = 0; i < LEVELS; i++) {
		values[i] = levels[i] * scale;
		values[LEVELS + i] = -values[i];
	}
	for (size_t i = 0; i < 4 * LEVELS * LEVELS; i++) {
		pairs[i][0] = values[i % (2 * LEVELS)];
		pairs[i][1] = values[i / (2 * LEVELS)];
	}
	for (size_t i = 0; i < n / 2; i++)
		memcpy(y + 2 * i, pairs[codes[i]], sizeof(pairs[0]));
}

/* --- one bit, set for below zero, the lowest first */

CPU_CLONES static void
pack_signs(uint8_t *restrict codes, float *restrict y, const float *restrict x, size_t n)
{
	for (size_t i = 0; i < n / 8; i++) {
		uint32_t some = 0;
		for (size_t k = 0; k < 8; k++) {
			some |= (uint32_t)(x[8 * i + k] < 0) << k;
			y[8 * i + k] = x[8 * i + k] < 0 ? -1 : 1;
		}
		codes[i] = (uint8_t)some;
	}
}

static void
quantise_sign(uint8_t *codes, float *y, const float *x, size_t n, float sigma)
{
	(void)sigma;
	pack_signs(codes, y, x, n);
}

CPU_CLONES static void
unpack_signs(float *restrict y, const uint8_t *restrict codes, size_t n, float scale)
{
	for (size_t i = 0; i < n / 8; i++) {
		uint32_t some = codes[i];
		for (size_t k = 0; k < 8; k++)
			y[8 * i + k] = some & 1u << k ? -scale : scale;
	}
}

static void
expand_sign(float *y, const uint8_t *codes, size_t n, float scale)
{
	unpack_signs(y, codes, n, scale);
}

static const struct format int4 = {4, quantise_int4, expand_int4};
static const struct format sign = {1, quantise_sign, expand_sign};

/* --- blocks */

/* Elements that the block from `first` on is filled up to. */
static size_t
filled(uint64_t elements, uint64_t first)
{
	uint64_t left = elements - first;
	size_t n = LEAST;

	while (n < BLOCK && n < left)
		n *= 2;
	return n;
}

static size_t
block_bytes(const struct format *f, size_t n)
{
	return SCALE + n * f->bits / 8;
}

static uint64_t
payload_bytes(const struct format *f, uint64_t elements)
{
	uint64_t whole = elements / BLOCK;

	if (elements > UINT64_MAX / 2)
		return UINT64_MAX;
	return whole * block_bytes(f, BLOCK) +
	    (elements % BLOCK ? block_bytes(f, filled(elements, whole * BLOCK)) : 0);
}

static double
dot(const float *a, const float *b, size_t n)
{
	double sum[4] = {0};

	for (size_t i = 0; i < n; i += 4)
		for (size_t k = 0; k < 4; k++)
			sum[k] += (double)a[i + k] * (double)b[i + k];
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* A scale whose block decodes to finite numbers, whatever the order of additions. */
static bool
scale_fits(float scale)
{
	return isfinite(scale * LARGEST * BLOCK);
}

static enum err
encode_block(
    const struct format *f, uint8_t *out, float *x, size_t n, uint64_t seed, uint64_t block)
{
	float y[BLOCK];
	double norm = dot(x, x, n);

	if (!isfinite(norm))
		return ERR_NUMERIC;
	rotate_forward(x, n, seed, block);
	f->quantise(out + SCALE, y, x, n, (float)sqrt(norm / (double)n));
	/* Turning spreads a few tiny values so thin that all of them become 0. */
	double along = dot(x, y, n);
	float scale = along != 0 ? (float)(norm / along) : 0;
	if (!scale_fits(scale))
		return ERR_NUMERIC;
	memcpy(out, &scale, SCALE);
	/* What is too small for a scale is nothing, and nothing is written in one way only. */
	if (!(scale > 0))
		memset(out, 0, block_bytes(f, n));
	return ERR_OK;
}

static enum err
encode(const struct format *f, uint8_t *out, uint64_t *len, const float *values,
    const struct codec_params *p)
{
	float x[BLOCK];

	for (uint64_t i = 0; i < p->elements; i += BLOCK) {
		size_t n = filled(p->elements, i);
		size_t have = p->elements - i < n ? (size_t)(p->elements - i) : n;
		memcpy(x, values + i, have * sizeof(float));
		memset(x + have, 0, (n - have) * sizeof(float));
		enum err e = encode_block(f, out, x, n, p->seed, (p->first + i) / BLOCK);
		if (e)
			return e;
		out += block_bytes(f, n);
	}
	*len = payload_bytes(f, p->elements);
	return ERR_OK;
}

/* --- checking */

/* Of the block that the last call left unfinished. */
struct state {
	double sum;
	uint8_t scale[SCALE];
	/* Codes of each level so far: sums of whole numbers do not depend on the cuts. */
	uint16_t counts[LEVELS];
	uint8_t spare[36];
};
_Static_assert(sizeof(struct state) == 64, "the state must fit the carry exactly");

/* True if a bit is set. */
static bool
count_codes(const struct format *f, uint16_t counts[LEVELS], const uint8_t *codes, size_t len)
{
	uint8_t any = 0;

	for (size_t i = 0; i < len; i++) {
		any |= codes[i];
		if (f->bits == 4) {
			counts[codes[i] & 7]++;
			counts[codes[i] >> 4 & 7]++;
		}
	}
	return any != 0;
}

static double
block_squares(const struct format *f, const struct state *s, size_t bytes, float scale)
{
	double sum = f->bits == 1 ? (double)(8 * (bytes - SCALE)) : 0;

	for (size_t k = 0; k < LEVELS && f->bits == 4; k++)
		sum += (double)s->counts[k] * (double)levels[k] * (double)levels[k];
	return sum * (double)scale * (double)scale;
}

struct taker {
	const struct format *format;
	struct state state;
};

/* Takes bytes of one block from its byte `from` on. */
static enum err
take(void *context, size_t from, size_t bytes, const uint8_t *p, size_t len)
{
	const struct format *f = ((struct taker *)context)->format;
	struct state *s = &((struct taker *)context)->state;
	size_t head = from < SCALE ? SCALE - from : 0;
	float scale;

	head = head < len ? head : len;
	if (from < SCALE)
		memcpy(s->scale + from, p, head);
	if (from + len < SCALE)
		return ERR_OK;
	memcpy(&scale, s->scale, SCALE);
	if (isnan(scale) || !scale_fits(scale))
		return ERR_NUMERIC;
	bool any = count_codes(f, s->counts, p + head, len - head);
	if (signbit(scale) || (scale <= 0 && any))
		return ERR_INVALID;
	if (from + len < bytes)
		return ERR_OK;
	s->sum += block_squares(f, s, bytes, scale);
	memset(s->counts, 0, sizeof(s->counts));
	return ERR_OK;
}

static enum err
check(const struct format *f, const struct codec_params *p, uint64_t at, const uint8_t *data,
    size_t len, double *sum_squares, uint8_t carry[64])
{
	uint64_t end = payload_bytes(f, p->elements);
	struct taker t = {.format = f};

	memcpy(&t.state, carry, sizeof(t.state));
	enum err e = codec_block_walk(at, end, block_bytes(f, BLOCK), data, len, take, &t);
	if (!e && len > 0 && at + len == end)
		*sum_squares += t.state.sum;
	memcpy(carry, &t.state, sizeof(t.state));
	return e;
}

/* --- decoding */

static void
range(const struct format *f, const struct codec_params *p, uint64_t first, size_t count,
    uint64_t *at, size_t *len)
{
	codec_block_range(
	    payload_bytes(f, p->elements), block_bytes(f, BLOCK), BLOCK, first, count, at, len);
}

static enum err
decode(const struct format *f, const struct codec_params *p, uint64_t first, size_t count,
    const uint8_t *data, size_t len, float *out)
{
	float x[BLOCK];
	uint64_t at;
	size_t need;

	if (first > p->elements || count > p->elements - first)
		return ERR_INVALID;
	range(f, p, first, count, &at, &need);
	if (len != need)
		return ERR_INVALID;
	while (count > 0) {
		uint64_t block = first / BLOCK;
		size_t inside = (size_t)(first % BLOCK), n = filled(p->elements, block * BLOCK);
		size_t some = count < BLOCK - inside ? count : BLOCK - inside;
		float scale, *to = some == n ? out : x;
		memcpy(&scale, data, SCALE);
		f->expand(to, data + SCALE, n, scale);
		rotate_back(to, n, p->seed, block);
		if (to == x)
			memcpy(out, x + inside, some * sizeof(float));
		data += block_bytes(f, n);
		first += some;
		out += some;
		count -= some;
	}
	return ERR_OK;
}

/* --- the two rows of the table */

#define ROTATED(which, number) \
	static uint64_t payload_bytes_##which(uint64_t elements) \
	{ \
		return payload_bytes(&(which), elements); \
	} \
	static enum err encode_##which( \
	    void *payload, uint64_t *len, const float *values, const struct codec_params *p) \
	{ \
		return encode(&(which), payload, len, values, p); \
	} \
	static enum err check_##which(const struct codec_params *p, uint64_t at, const void *data, \
	    size_t len, double *sum_squares, uint8_t carry[64]) \
	{ \
		return check(&(which), p, at, data, len, sum_squares, carry); \
	} \
	static void range_##which( \
	    const struct codec_params *p, uint64_t first, size_t count, uint64_t *at, size_t *len) \
	{ \
		range(&(which), p, first, count, at, len); \
	} \
	static enum err decode_##which(const struct codec_params *p, uint64_t first, size_t count, \
	    const void *data, size_t len, float *out) \
	{ \
		return decode(&(which), p, first, count, data, len, out); \
	} \
	const struct codec codec_rotated_##which = { \
	    .id = (number), \
	    .name = #which, \
	    .block = BLOCK, \
	    .fixed_size = true, \
	    .payload_bytes = payload_bytes_##which, \
	    .encode = encode_##which, \
	    .check = check_##which, \
	    .range = range_##which, \
	    .decode = decode_##which, \
	}

ROTATED(int4, CODEC_INT4);
ROTATED(sign, CODEC_SIGN);
