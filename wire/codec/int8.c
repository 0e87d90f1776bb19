#include "int8.h"

#include <math.h>
#include <string.h>

#include "block.h"
#include "cpu.h"
#include "prng.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "scales are used in place");

#define BLOCK 64
#define SCALE sizeof(float)
#define WHOLE (SCALE + BLOCK) /* bytes of a full block */
#define MOST 127

/* Of the block that the last call left unfinished: its scale as it came, and the sum over its bytes so far. */
struct state {
	double sum;
	uint8_t scale[SCALE];
	uint32_t squares;
	uint8_t spare[48];
};
_Static_assert(sizeof(struct state) == 64, "the state must fit the carry exactly");

static uint64_t
payload_bytes(uint64_t elements)
{
	uint64_t blocks = elements / BLOCK + (elements % BLOCK != 0);

	return elements > UINT64_MAX / 2 ? UINT64_MAX : elements + blocks * SCALE;
}

/* --- encoding */

/* The largest magnitude; infinity if a value is not finite. On the bits, whose order is that of the magnitudes. */
CPU_CLONES static float
largest(const float *x, size_t n)
{
	uint32_t most = 0;
	float out;

	for (size_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], sizeof(bits));
		bits &= 0x7fffffff;
		most = bits > most ? bits : most;
	}
	memcpy(&out, &most, sizeof(out));
	return isfinite(out) ? out : INFINITY;
}

CPU_CLONES static void
quantise(
    uint8_t *restrict out, const float *restrict x, const float *restrict u, float scale, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* In double precision x / s + u is exact enough that u just below 1 never rounds a whole number up. */
		double v = (double)x[i] / (double)scale + (double)u[i];
		int32_t q = (int32_t)v;
		q -= v <
		    (double)q; /* floor, without a call where the machine has no such instruction */
		q = q > MOST ? MOST : q < -MOST ? -MOST : q;
		out[i] = (uint8_t)(int8_t)q;
	}
}

static void
encode_block(uint8_t *out, const float *x, size_t n, float most, struct prng *r)
{
	float scale = most / MOST, u[BLOCK];

	/* The quotient of a number too small to be divided by 127 is nothing: no device could tell it from zero. */
	if (!(scale > 0)) {
		memset(out, 0, SCALE + n);
		return;
	}
	memcpy(out, &scale, SCALE);
	prng_floats(r, u, n);
	quantise(out + SCALE, x, u, scale, n);
}

static enum err
encode(void *payload, uint64_t *payload_len, const float *values, const struct codec_params *p)
{
	uint8_t *out = payload;
	struct prng own, *r = p->random;

	if (!r) {
		r = &own;
		prng_seed(r, p->seed);
	}
	for (uint64_t i = 0; i < p->elements; i += BLOCK) {
		size_t n = p->elements - i < BLOCK ? (size_t)(p->elements - i) : BLOCK;
		float most = largest(values + i, n);
		if (!isfinite(most))
			return ERR_NUMERIC;
		encode_block(out, values + i, n, most, r);
		out += SCALE + n;
	}
	*payload_len = payload_bytes(p->elements);
	return ERR_OK;
}

/* --- checking */

/* A scale whose largest multiple is finite, and which is written in one way only. */
static enum err
check_scale(const uint8_t bytes[SCALE], float *scale)
{
	memcpy(scale, bytes, SCALE);
	if (signbit(*scale))
		return ERR_INVALID;
	return isfinite(*scale * MOST) ? ERR_OK : ERR_NUMERIC;
}

/* The sum of squares of at most BLOCK bytes; UINT32_MAX if one is -128. */
CPU_CLONES static uint32_t
sum_bytes(const uint8_t *p, size_t n)
{
	uint32_t sum = 0, bad = 0;

	for (size_t i = 0; i < n; i++) {
		int32_t q = p[i] < 128 ? p[i] : p[i] - 256;
		sum += (uint32_t)(q * q);
		bad |= q < -MOST;
	}
	return bad ? UINT32_MAX : sum;
}

/* Takes bytes of one block from its byte `from` on. */
static enum err
take(void *context, size_t from, size_t block_len, const uint8_t *p, size_t len)
{
	struct state *s = context;
	size_t head = from < SCALE ? SCALE - from : 0;
	float scale;

	head = head < len ? head : len;
	if (from < SCALE)
		memcpy(s->scale + from, p, head);
	if (from + len < SCALE)
		return ERR_OK;
	enum err e = check_scale(s->scale, &scale);
	uint32_t sum = sum_bytes(p + head, len - head);
	if (e || sum == UINT32_MAX || (scale <= 0 && sum > 0))
		return e ? e : ERR_INVALID;
	s->squares += sum;
	if (from + len < block_len)
		return ERR_OK;
	s->sum += (double)scale * (double)scale * (double)s->squares;
	s->squares = 0;
	return ERR_OK;
}

static enum err
check(const struct codec_params *p, uint64_t at, const void *data, size_t len, double *sum_squares,
    uint8_t carry[64])
{
	uint64_t end = payload_bytes(p->elements);
	struct state s;

	memcpy(&s, carry, sizeof(s));
	enum err e = codec_block_walk(at, end, WHOLE, data, len, take, &s);
	if (!e && len > 0 && at + len == end)
		*sum_squares += s.sum;
	memcpy(carry, &s, sizeof(s));
	return e;
}

/* --- decoding */

static void
range(const struct codec_params *p, uint64_t first, size_t count, uint64_t *at, size_t *len)
{
	codec_block_range(payload_bytes(p->elements), WHOLE, BLOCK, first, count, at, len);
}

CPU_CLONES static void
expand(float *restrict out, const uint8_t *restrict q, float scale, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = scale * (float)(int8_t)q[i];
}

CPU_CLONES static void
expand_blocks(float *restrict out, const uint8_t *restrict p, size_t blocks)
{
	for (size_t b = 0; b < blocks; b++) {
		float scale;
		memcpy(&scale, p + b * WHOLE, SCALE);
		for (size_t i = 0; i < BLOCK; i++)
			out[b * BLOCK + i] = scale * (float)(int8_t)p[b * WHOLE + SCALE + i];
	}
}

static enum err
decode(const struct codec_params *p, uint64_t first, size_t count, const void *data, size_t len,
    float *out)
{
	const uint8_t *from = data;
	uint64_t at;
	size_t need;

	if (first > p->elements || count > p->elements - first)
		return ERR_INVALID;
	range(p, first, count, &at, &need);
	if (len != need)
		return ERR_INVALID;
	while (count > 0) {
		size_t inside = first % BLOCK;
		size_t n = count < BLOCK - inside ? count : BLOCK - inside;
		size_t blocks = inside == 0 ? count / BLOCK : 0;
		float scale;
		if (blocks > 0) {
			n = blocks * BLOCK;
			expand_blocks(out, from, blocks);
		} else {
			memcpy(&scale, from, SCALE);
			expand(out, from + SCALE + inside, scale, n);
		}
		from += blocks > 0 ? blocks * WHOLE : WHOLE;
		first += n;
		out += n;
		count -= n;
	}
	return ERR_OK;
}

const struct codec codec_int8 = {
    .id = CODEC_INT8,
    .name = "int8",
    .block = BLOCK,
    .fixed_size = true,
    .payload_bytes = payload_bytes,
    .encode = encode,
    .check = check,
    .range = range,
    .decode = decode,
};
