#include "half.h"

#include <math.h>
#include <string.h>

#include "cpu.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payload bytes are used in place");

#define SIZE sizeof(uint16_t)
#define LANES 4
#define RUN 256 /* elements converted at a time, a multiple of LANES */

/* Element i is summed in lane i % LANES: the sum does not depend on how the payload was cut. */
struct state {
	double lanes[LANES];
	uint8_t first; /* byte of an element that was cut in two */
	uint8_t spare[31];
};
_Static_assert(sizeof(struct state) == 64, "the state must fit the carry exactly");

/* --- conversions; written without branches, so that compilers turn them into vector code */

/* Adding a number whose last place is the half's last place makes the processor round to nearest even. */
static inline uint16_t
to_f16(float x)
{
	uint32_t bits = codec_half_bits(x), sign = bits >> 16 & 0x8000;
	float magnitude = codec_half_float(bits & 0x7fffffff);
	uint32_t exponent = codec_half_bits(magnitude) & 0x7f800000;
	uint32_t least = 113u << 23; /* the smallest normal half is 2^-14 */
	exponent = exponent < least ? least : exponent;
	float base = codec_half_float(exponent + (13u << 23));
	uint32_t rounded = codec_half_bits(magnitude + base) - codec_half_bits(base);
	/* rounded counts last places: 1024 and more of them carry into the exponent. */
	uint32_t half = ((exponent - least) >> 13) + rounded;
	uint32_t beyond = 0u - ((bits & 0x7fffffff) >= 0x477ff000); /* 65520 and up, and NaN */
	half = (half & ~beyond) | (0x7c00 & beyond);
	return (uint16_t)(sign | half);
}

CPU_CLONES static void
expand_f16(float *restrict out, const uint16_t *restrict in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = codec_half_from_f16(in[i]);
}

CPU_CLONES static void
expand_bf16(float *restrict out, const uint16_t *restrict in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = codec_half_from_bf16(in[i]);
}

CPU_CLONES static void
round_f16(uint16_t *restrict out, const float *restrict in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = to_f16(in[i]);
}

CPU_CLONES static void
round_bf16(uint16_t *restrict out, const float *restrict in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = codec_half_to_bf16(in[i]);
}

/* What tells the two formats apart. */
struct format {
	uint16_t exponent; /* all ones: infinity or NaN */
	void (*expand)(float *restrict out, const uint16_t *restrict in, size_t n);
	void (*round)(uint16_t *restrict out, const float *restrict in, size_t n);
};
static const struct format f16 = {0x7c00, expand_f16, round_f16};
static const struct format bf16 = {0x7f80, expand_bf16, round_bf16};

/* --- checking */

CPU_CLONES static unsigned
any_special(const uint16_t *h, size_t n, uint16_t exponent)
{
	unsigned found = 0;

	for (size_t i = 0; i < n; i++)
		found |= (h[i] & exponent) == exponent;
	return found;
}

/* Rounding may turn a NaN into a number. */
CPU_CLONES static unsigned
any_beyond(const float *x, size_t n)
{
	unsigned found = 0;

	for (size_t i = 0; i < n; i++)
		found |= (codec_half_bits(x[i]) & 0x7f800000) == 0x7f800000;
	return found;
}

CPU_CLONES static void
add_half_squares(double lanes[LANES], const float *x, size_t n)
{
	double sum[LANES];

	memcpy(sum, lanes, sizeof(sum));
	for (size_t i = 0; i < n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			sum[j] += (double)x[i + j] * (double)x[i + j];
	memcpy(lanes, sum, sizeof(sum));
}

/* Adds at most RUN elements, the first being element `index`. */
static enum err
add_run(const struct format *f, struct state *s, uint64_t index, const uint8_t *p, size_t n)
{
	uint16_t halves[RUN];
	float x[RUN + LANES] = {0};
	size_t lead = index % LANES; /* zeros in front put each element into its lane */

	memcpy(halves, p, n * SIZE);
	if (any_special(halves, n, f->exponent))
		return ERR_NUMERIC;
	f->expand(x + lead, halves, n);
	add_half_squares(s->lanes, x, (lead + n + LANES - 1) / LANES * LANES);
	return ERR_OK;
}

static enum err
add_elements(const struct format *f, struct state *s, uint64_t index, const uint8_t *p, size_t n)
{
	enum err e = ERR_OK;

	while (n > 0 && !e) {
		size_t run = n < RUN ? n : RUN;
		e = add_run(f, s, index, p, run);
		index += run;
		p += run * SIZE;
		n -= run;
	}
	return e;
}

static uint64_t
payload_bytes(uint64_t elements)
{
	return elements > UINT64_MAX / SIZE ? UINT64_MAX : elements * SIZE;
}

static enum err
check(const struct format *f, const struct codec_params *p, uint64_t at, const uint8_t *data,
    size_t len, double *sum_squares, uint8_t carry[64])
{
	uint64_t end = payload_bytes(p->elements);
	enum err e = ERR_OK;
	struct state s;

	if (at > end || len > end - at)
		return ERR_INVALID;
	if (len == 0)
		return ERR_OK;
	memcpy(&s, carry, sizeof(s));
	size_t used = at % SIZE;
	if (used) {
		const uint8_t both[SIZE] = {s.first, data[0]};
		e = add_elements(f, &s, at / SIZE, both, 1);
	}
	size_t whole = (len - used) / SIZE;
	if (!e)
		e = add_elements(f, &s, (at + used) / SIZE, data + used, whole);
	if ((len - used) % SIZE)
		s.first = data[len - 1];
	if (!e && at + len == end)
		*sum_squares += (s.lanes[0] + s.lanes[1]) + (s.lanes[2] + s.lanes[3]);
	memcpy(carry, &s, sizeof(s));
	return e;
}

static enum err
check_f16(const struct codec_params *p, uint64_t at, const void *data, size_t len,
    double *sum_squares, uint8_t carry[64])
{
	return check(&f16, p, at, data, len, sum_squares, carry);
}

static enum err
check_bf16(const struct codec_params *p, uint64_t at, const void *data, size_t len,
    double *sum_squares, uint8_t carry[64])
{
	return check(&bf16, p, at, data, len, sum_squares, carry);
}

/* --- encoding and decoding */

static enum err
encode(const struct format *f, uint8_t *payload, uint64_t *payload_len, const float *values,
    uint64_t elements)
{
	uint16_t halves[RUN];

	for (uint64_t i = 0; i < elements; i += RUN) {
		size_t n = elements - i < RUN ? (size_t)(elements - i) : RUN;
		f->round(halves, values + i, n);
		if (any_beyond(values + i, n) || any_special(halves, n, f->exponent))
			return ERR_NUMERIC;
		memcpy(payload + i * SIZE, halves, n * SIZE);
	}
	*payload_len = payload_bytes(elements);
	return ERR_OK;
}

static enum err
encode_f16(void *payload, uint64_t *payload_len, const float *values, const struct codec_params *p)
{
	return encode(&f16, payload, payload_len, values, p->elements);
}

static enum err
encode_bf16(void *payload, uint64_t *payload_len, const float *values, const struct codec_params *p)
{
	return encode(&bf16, payload, payload_len, values, p->elements);
}

static void
range(const struct codec_params *p, uint64_t first, size_t count, uint64_t *at, size_t *len)
{
	(void)p;
	*at = first * SIZE;
	*len = count * SIZE;
}

static enum err
decode(const struct format *f, const struct codec_params *p, uint64_t first, size_t count,
    const uint8_t *data, size_t len, float *out)
{
	uint16_t halves[RUN];

	if (first > p->elements || count > p->elements - first || len / SIZE != count ||
	    len % SIZE != 0)
		return ERR_INVALID;
	for (size_t i = 0; i < count; i += RUN) {
		size_t n = count - i < RUN ? count - i : RUN;
		memcpy(halves, data + i * SIZE, n * SIZE);
		f->expand(out + i, halves, n);
	}
	return ERR_OK;
}

static enum err
decode_f16(const struct codec_params *p, uint64_t first, size_t count, const void *data, size_t len,
    float *out)
{
	return decode(&f16, p, first, count, data, len, out);
}

static enum err
decode_bf16(const struct codec_params *p, uint64_t first, size_t count, const void *data,
    size_t len, float *out)
{
	return decode(&bf16, p, first, count, data, len, out);
}

const struct codec codec_half_f16 = {
    .id = CODEC_F16,
    .name = "f16",
    .fixed_size = true,
    .payload_bytes = payload_bytes,
    .encode = encode_f16,
    .check = check_f16,
    .range = range,
    .decode = decode_f16,
};

const struct codec codec_half_bf16 = {
    .id = CODEC_BF16,
    .name = "bf16",
    .fixed_size = true,
    .payload_bytes = payload_bytes,
    .encode = encode_bf16,
    .check = check_bf16,
    .range = range,
    .decode = decode_bf16,
};
