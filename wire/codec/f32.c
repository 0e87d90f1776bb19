#include "f32.h"

#include <math.h>
#include <string.h>

#include "cpu.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(float) == 4,
    "payload bytes are used in place as floats");

#define SIZE sizeof(float)
#define LANES 4
typedef double doubles __attribute__((vector_size(LANES * sizeof(double))));
typedef float floats __attribute__((vector_size(LANES * SIZE), aligned(1), may_alias));

/* What `carry` holds between calls. Element i is summed in lane i % LANES, whatever the cuts: the sum of a payload
 * does not depend on how it arrived. */
struct state {
	double lanes[LANES];
	uint8_t partial[SIZE];
	uint8_t spare[28];
};
_Static_assert(sizeof(struct state) == 64, "the state must fit the carry exactly");

static uint64_t
payload_bytes(uint64_t elements)
{
	return elements > UINT64_MAX / SIZE ? UINT64_MAX : elements * SIZE;
}

/* Adds the squares of n elements at p, n a multiple of LANES, beginning at lane 0. */
CPU_CLONES static void
add_squares(double lanes[LANES], const uint8_t *p, size_t n)
{
	doubles sum;

	memcpy(&sum, lanes, sizeof(sum));
	for (size_t i = 0; i < n; i += LANES) {
		doubles x =
		    __builtin_convertvector(*(const floats *)(const void *)(p + i * SIZE), doubles);
		sum += x * x;
	}
	memcpy(lanes, &sum, sizeof(sum));
}

static void
add_one(struct state *s, uint64_t index, const uint8_t *p)
{
	float x;

	memcpy(&x, p, SIZE);
	s->lanes[index % LANES] += (double)x * (double)x;
}

/* Adds n whole elements from p, the first being element `index`. */
static void
add_elements(struct state *s, uint64_t index, const uint8_t *p, size_t n)
{
	for (; n > 0 && index % LANES != 0; n--, index++, p += SIZE)
		add_one(s, index, p);
	size_t bulk = n - n % LANES;
	add_squares(s->lanes, p, bulk);
	for (size_t i = bulk; i < n; i++)
		add_one(s, index + i, p + i * SIZE);
}

static double
total(const struct state *s)
{
	return (s->lanes[0] + s->lanes[1]) + (s->lanes[2] + s->lanes[3]);
}

/* Completes the element that the last call left unfinished; returns the bytes of p used. */
static size_t
finish_partial(struct state *s, uint64_t at, const uint8_t *p, size_t len)
{
	size_t have = at % SIZE;
	size_t n = SIZE - have;

	if (have == 0)
		return 0;
	if (n > len)
		n = len;
	memcpy(s->partial + have, p, n);
	if (have + n == SIZE)
		add_one(s, at / SIZE, s->partial);
	return n;
}

static enum err
check(const struct codec_params *p, uint64_t at, const void *data, size_t len, double *sum_squares,
    uint8_t carry[64])
{
	uint64_t end = payload_bytes(p->elements);
	const uint8_t *from = data;
	struct state s;

	if (at > end || len > end - at)
		return ERR_INVALID;
	if (len == 0)
		return ERR_OK;
	memcpy(&s, carry, sizeof(s));
	size_t used = finish_partial(&s, at, from, len);
	size_t whole = (len - used) / SIZE;
	add_elements(&s, (at + used) / SIZE, from + used, whole);
	size_t rest = len - used - whole * SIZE;
	if (rest > 0)
		memcpy(s.partial, from + len - rest, rest);
	/* The square of any finite float is far from overflowing a double, and neither infinity nor NaN
	 * ever leaves a sum again: the sum is finite exactly if all values were. */
	if (!isfinite(total(&s)))
		return ERR_NUMERIC;
	if (at + len == end)
		*sum_squares += total(&s);
	memcpy(carry, &s, sizeof(s));
	return ERR_OK;
}

static enum err
encode(void *payload, uint64_t *payload_len, const float *values, const struct codec_params *p)
{
	struct state s = {0};

	add_elements(&s, 0, (const uint8_t *)values, (size_t)p->elements);
	if (!isfinite(total(&s)))
		return ERR_NUMERIC;
	*payload_len = payload_bytes(p->elements);
	if (p->elements > 0)
		memcpy(payload, values, (size_t)*payload_len);
	return ERR_OK;
}

static void
range(const struct codec_params *p, uint64_t first, size_t count, uint64_t *at, size_t *len)
{
	(void)p;
	*at = first * SIZE;
	*len = count * SIZE;
}

static enum err
decode(const struct codec_params *p, uint64_t first, size_t count, const void *data, size_t len,
    float *out)
{
	if (first > p->elements || count > p->elements - first || len / SIZE != count ||
	    len % SIZE != 0)
		return ERR_INVALID;
	if (count > 0)
		memcpy(out, data, len);
	return ERR_OK;
}

const struct codec codec_f32 = {
    .id = CODEC_F32,
    .name = "f32",
    .fixed_size = true,
    .payload_bytes = payload_bytes,
    .encode = encode,
    .check = check,
    .range = range,
    .decode = decode,
};
