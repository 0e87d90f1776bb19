/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "codec_cut.h"
#include "fingerprint.h"
#include "flush.h"
#include "normal.h"
#include "prng.h"

/* Codecs that round: f16, bf16, int8, int4, sign. What holds for each codec is tested with each. */
#define N 5003
#define ROOM (N * 4 + 64)

static const char *const lossy[] = {"f16", "bf16", "int8", "int4", "sign"};
#define LOSSY (sizeof(lossy) / sizeof(lossy[0]))

static struct codec_params
params(const struct codec *c, uint64_t elements)
{
	return (struct codec_params){.elements = elements, .block = c->block, .seed = 7};
}

/* --- all of them */

static void
cuts_for(const struct codec *c, size_t elements)
{
	static float values[N], back[N];
	static uint8_t payload[ROOM];
	struct codec_params p = params(c, elements);
	uint8_t carry[64] = {0};
	double whole = 0, exact = 0, sum;
	struct prng r;
	uint64_t len;

	normal_fill(values, elements, elements);
	prng_seed(&r, elements);
	assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
	assert_true(len == c->payload_bytes(elements));
	assert_int_equal(c->check(&p, 0, payload, len, &whole, carry), ERR_OK);
	assert_int_equal(c->decode(&p, 0, elements, payload, len, back), ERR_OK);
	for (size_t i = 0; i < elements; i++)
		exact += (double)back[i] * back[i];
	/* A rotated block that was filled up counts what decodes beyond the last element too. */
	assert_true(whole >= exact * (1 - 1e-6));
	if (c->block <= 64 || elements % c->block == 0)
		assert_true(whole <= exact * (1 + 1e-6));
	for (size_t most = 1; most <= 150; most += 1 + elements / 500) {
		assert_int_equal(codec_cut(c, &p, payload, len, most, &r, &sum), ERR_OK);
		assert_true(sum == whole);
	}
	assert_int_equal(c->check(&p, 0, payload, len + 1, &sum, carry), ERR_INVALID);
	assert_int_equal(c->check(&p, len + 1, payload, 0, &sum, carry), ERR_INVALID);
}

static void
cuts(void **state)
{
	(void)state;
	static const size_t sizes[] = {1, 2, 3, 63, 64, 65, 128, 130, 4096, 4097, N};

	for (size_t k = 0; k < LOSSY; k++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			cuts_for(codec_find_name(lossy[k]), sizes[i]);
}

/* Any range decodes to what the whole decodes to. */
static void
ranges(void **state)
{
	(void)state;
	static float values[N], whole[N], part[N];
	static uint8_t payload[ROOM];
	struct prng r;
	uint64_t len, at;
	size_t bytes;

	prng_seed(&r, 11);
	normal_fill(values, N, 11);
	for (size_t k = 0; k < LOSSY; k++) {
		const struct codec *c = codec_find_name(lossy[k]);
		struct codec_params p = params(c, N);
		assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
		assert_int_equal(c->decode(&p, 0, N, payload, len, whole), ERR_OK);
		for (int turn = 0; turn < 2000; turn++) {
			size_t first = (size_t)prng_below(&r, N);
			size_t count = (size_t)prng_below(&r, N - first + 1);
			c->range(&p, first, count, &at, &bytes);
			assert_true(at + bytes <= len);
			struct flush f = flush_new(payload + at, bytes);
			assert_int_equal(c->decode(&p, first, count, f.data, bytes, part), ERR_OK);
			assert_memory_equal(part, whole + first, count * sizeof(float));
			assert_int_equal(
			    c->decode(&p, first, count, f.data, bytes + 1, part), ERR_INVALID);
			flush_free(&f);
		}
		assert_int_equal(c->decode(&p, N, 1, payload, 0, part), ERR_INVALID);
		assert_int_equal(c->decode(&p, UINT64_MAX, 2, payload, 4, part), ERR_INVALID);
		assert_true(c->payload_bytes(UINT64_MAX) == UINT64_MAX);
	}
}

static void
not_finite(void **state)
{
	(void)state;
	static const float bad[] = {NAN, INFINITY, -INFINITY};
	static float values[N];
	static uint8_t payload[ROOM];
	uint64_t len;

	for (size_t k = 0; k < LOSSY; k++) {
		const struct codec *c = codec_find_name(lossy[k]);
		struct codec_params p = params(c, N);
		normal_fill(values, N, 3);
		for (size_t i = 0; i < N; i += 17) {
			float kept = values[i];
			values[i] = bad[i % 3];
			assert_int_equal(c->encode(payload, &len, values, &p), ERR_NUMERIC);
			values[i] = kept;
		}
		assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
	}
}

/* --- f16, bf16 */

/* The value of a half by its definition. */
static double
half_value(uint16_t h, int exponent_bits)
{
	int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
	int exponent = h >> fraction_bits & ((1 << exponent_bits) - 1);
	double fraction = h & ((1 << fraction_bits) - 1);
	double magnitude = exponent == 0
	    ? ldexp(fraction, 1 - bias - fraction_bits)
	    : ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);

	return h & 0x8000 ? -magnitude : magnitude;
}

/* Every half that is a number decodes to it and encodes to itself; every other one is refused. */
static void
halves_all(const char *name, int exponent_bits)
{
	const struct codec *c = codec_find_name(name);
	struct codec_params p = params(c, 1);
	uint16_t special = (uint16_t)(((1 << exponent_bits) - 1) << (15 - exponent_bits));

	for (uint32_t h = 0; h <= UINT16_MAX; h++) {
		uint8_t bytes[2] = {(uint8_t)h, (uint8_t)(h >> 8)}, back[2], carry[64] = {0};
		double sum = 0;
		uint64_t len;
		float x;
		enum err e = c->check(&p, 0, bytes, 2, &sum, carry);
		if ((h & special) == special) {
			assert_int_equal(e, ERR_NUMERIC);
			continue;
		}
		assert_int_equal(e, ERR_OK);
		assert_int_equal(c->decode(&p, 0, 1, bytes, 2, &x), ERR_OK);
		assert_true((double)x == half_value((uint16_t)h, exponent_bits));
		assert_true(!signbit(x) == (h < 0x8000));
		assert_true(sum == (double)x * (double)x);
		assert_int_equal(c->encode(back, &len, &x, &p), ERR_OK);
		assert_memory_equal(back, bytes, 2);
	}
}

/* No other half is nearer than the one that was chosen, and of two equally near ones it is the even one. */
static void
halves_nearest(const char *name, int exponent_bits)
{
	const struct codec *c = codec_find_name(name);
	struct codec_params p = params(c, 1);
	struct prng r;

	prng_seed(&r, 5);
	for (int turn = 0; turn < 300000; turn++) {
		uint32_t bits = (uint32_t)prng_u64(&r);
		if (turn % 3 == 0) /* ties: half of the last place */
			bits = (bits & 0xffffe000u) | (exponent_bits == 5 ? 0x1000u : 0u);
		if (turn % 3 == 0 && exponent_bits == 8)
			bits = (bits & 0xffff0000u) | 0x8000u;
		if (exponent_bits == 5) /* magnitudes around those of halves */
			bits = (bits & 0x807fffffu) | (uint32_t)(100 + prng_below(&r, 43)) << 23;
		float x;
		uint8_t bytes[2];
		uint64_t len;
		memcpy(&x, &bits, 4);
		enum err e = c->encode(bytes, &len, &x, &p);
		if (!isfinite(x) || (exponent_bits == 5 && fabsf(x) >= 65520)) {
			assert_int_equal(e, ERR_NUMERIC);
			continue;
		}
		if (e == ERR_NUMERIC) { /* rounds to infinity */
			assert_true(fabsf(x) >= 0x1.ffp127f);
			continue;
		}
		uint16_t h = (uint16_t)(bytes[0] | bytes[1] << 8);
		double off = fabs(half_value(h, exponent_bits) - (double)x);
		double up = fabs(half_value((uint16_t)(h + 1), exponent_bits) - (double)x);
		assert_true(off < up || (off == up && h % 2 == 0));
		if ((h & 0x7fff) != 0) {
			double down =
			    fabs(half_value((uint16_t)(h - 1), exponent_bits) - (double)x);
			assert_true(off < down || (off == down && h % 2 == 0));
		}
	}
}

static void
halves(void **state)
{
	(void)state;
	halves_all("f16", 5);
	halves_all("bf16", 8);
	halves_nearest("f16", 5);
	halves_nearest("bf16", 8);
}

/* --- int8 */

/* A block by hand: max 127 gives scale 1, and whole numbers are kept whatever the draw. */
static void
int8_bytes(void **state)
{
	(void)state;
	const struct codec *c = codec_find(CODEC_INT8);
	struct codec_params p = params(c, 67);
	static const uint8_t tail[] = {0, 0, 0, 0, 0, 0, 0};
	float values[67] = {127, -127, 3, -1};
	uint8_t payload[80];
	uint64_t len;

	assert_int_equal(c->block, 64);
	assert_int_equal(c->payload_bytes(64), 68);
	assert_int_equal(c->payload_bytes(67), 75);
	assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
	assert_int_equal(len, 75);
	assert_memory_equal(payload, "\0\0\x80\x3f\x7f\x81\x03\xff\0", 9);
	assert_memory_equal(payload + 68, tail, 7);
}

/* What no encoder makes. */
static void
int8_refusals(void **state)
{
	(void)state;
	const struct codec *c = codec_find(CODEC_INT8);
	struct codec_params p = params(c, 2);
	static const struct {
		uint8_t bytes[6];
		enum err e;
	} cases[] = {
	    {{0, 0, 0x80, 0x3f, 0x80, 0}, ERR_INVALID}, /* -128 */
	    {{0, 0, 0x80, 0xbf, 1, 0}, ERR_INVALID}, /* scale -1 */
	    {{0, 0, 0, 0x80, 0, 0}, ERR_INVALID}, /* scale -0 */
	    {{0, 0, 0, 0, 0, 1}, ERR_INVALID}, /* scale 0 of something */
	    {{0, 0, 0x80, 0x7f, 1, 0}, ERR_NUMERIC}, /* infinity */
	    {{0, 0, 0xc0, 0x7f, 1, 0}, ERR_NUMERIC}, /* NaN */
	    {{0xff, 0xff, 0x7f, 0x7f, 2, 0}, ERR_NUMERIC}, /* 127 times it is infinite */
	    {{0, 0, 0, 0, 0, 0}, ERR_OK},
	    {{0, 0, 0x80, 0x3f, 0x81, 0x7f}, ERR_OK},
	};
	struct prng r;
	double sum;

	prng_seed(&r, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (size_t most = 1; most <= 6; most++)
			assert_int_equal(
			    codec_cut(c, &p, cases[i].bytes, 6, most, &r, &sum), cases[i].e);
}

/* The mean over many seeds is the value itself, within five standard errors. */
static void
int8_unbiased(void **state)
{
	(void)state;
	enum { ELEMENTS = 64, DRAWS = 10000 };
	const struct codec *c = codec_find(CODEC_INT8);
	float values[ELEMENTS], back[ELEMENTS];
	double mean[ELEMENTS] = {0};
	uint8_t payload[ELEMENTS + 4];
	uint64_t len;
	float scale = 0;

	normal_fill(values, ELEMENTS, 21);
	for (int k = 0; k < DRAWS; k++) {
		struct codec_params p = {.elements = ELEMENTS, .block = 64, .seed = (uint64_t)k};
		assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
		assert_int_equal(c->decode(&p, 0, ELEMENTS, payload, len, back), ERR_OK);
		for (int i = 0; i < ELEMENTS; i++)
			mean[i] += (double)back[i] / DRAWS;
	}
	memcpy(&scale, payload, 4);
	for (int i = 0; i < ELEMENTS; i++) {
		double place = (double)values[i] / (double)scale;
		double part = place - floor(place);
		double error = sqrt(part * (1 - part) / DRAWS) * (double)scale;
		assert_true(fabs(mean[i] - (double)values[i]) <=
		    5 * error + 1e-6 * fabs((double)values[i]));
	}
}

/* ||x - Q(x)||^2 / ||x||^2 of Gaussian blocks: 7.0e-5 for 8 bits in blocks of 64, and 5 % of tolerance. */
static void
int8_error(void **state)
{
	(void)state;
	enum { ELEMENTS = 1 << 18 };
	const struct codec *c = codec_find(CODEC_INT8);
	struct codec_params p = params(c, ELEMENTS);
	float *values = malloc(ELEMENTS * sizeof(float)), *back = malloc(ELEMENTS * sizeof(float));
	uint8_t *payload = malloc(c->payload_bytes(ELEMENTS));
	double off = 0, all = 0;
	uint64_t len;

	assert_true(values && back && payload);
	normal_fill(values, ELEMENTS, 31);
	assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
	assert_int_equal(c->decode(&p, 0, ELEMENTS, payload, len, back), ERR_OK);
	for (size_t i = 0; i < ELEMENTS; i++) {
		off += ((double)values[i] - back[i]) * ((double)values[i] - back[i]);
		all += (double)values[i] * values[i];
	}
	print_message("normalised error %.3g\n", off / all);
	assert_true(off / all <= 7.0e-5 * 1.05);
	free(values);
	free(back);
	free(payload);
}

/* --- int4, sign */

static double
normalised_error(const struct codec *c, size_t elements, uint64_t seed, bool spike)
{
	struct codec_params p = {.elements = elements, .block = c->block, .seed = seed};
	float *values = malloc(elements * sizeof(float)), *back = malloc(elements * sizeof(float));
	uint8_t *payload = malloc(c->payload_bytes(elements));
	double off = 0, all = 0;
	uint64_t len;

	assert_true(values && back && payload);
	normal_fill(values, elements, 31);
	if (spike)
		values[17] = 3;
	assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
	assert_int_equal(c->decode(&p, 0, elements, payload, len, back), ERR_OK);
	for (size_t i = 0; i < elements; i++) {
		off += ((double)values[i] - back[i]) * ((double)values[i] - back[i]);
		all += (double)values[i] * values[i];
	}
	free(values);
	free(back);
	free(payload);
	return off / all;
}

/* Gaussian blocks: 0.0096 for four bits, 0.571 for one, both with the unbiased scale, and 5 % of tolerance. Rotation makes
 * the same of one element that outweighs all others. */
static void
rotated_error(void **state)
{
	(void)state;
	const struct codec *four = codec_find(CODEC_INT4), *one = codec_find(CODEC_SIGN);

	for (int spike = 0; spike < 2; spike++) {
		double a = normalised_error(four, 1 << 18, 5, spike);
		double b = normalised_error(one, 1 << 18, 5, spike);
		print_message("normalised error %.3g, %.3g\n", a, b);
		assert_true(a <= 1.01e-2);
		assert_true(b <= 0.571 * 1.05);
	}
	assert_int_equal(four->payload_bytes(4096), 4 + 2048);
	assert_int_equal(one->payload_bytes(4096), 4 + 512);
	assert_int_equal(four->payload_bytes(4097), 4 + 2048 + 4 + 4);
	assert_int_equal(one->payload_bytes(5), 4 + 1);
}

/* The mean over many rotations is the value itself: its error falls as the number of draws grows. */
static void
rotated_unbiased(void **state)
{
	(void)state;
	enum { ELEMENTS = 256, DRAWS = 4000 };
	static const unsigned ids[] = {CODEC_INT4, CODEC_SIGN};
	float values[ELEMENTS], back[ELEMENTS];
	uint8_t payload[ELEMENTS];
	uint64_t len;

	normal_fill(values, ELEMENTS, 8);
	for (int k = 0; k < 2; k++) {
		const struct codec *c = codec_find(ids[k]);
		double mean[ELEMENTS] = {0}, off = 0, all = 0, one = 0;
		for (uint64_t s = 0; s < DRAWS; s++) {
			struct codec_params p = {
			    .elements = ELEMENTS, .block = c->block, .seed = s};
			assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
			assert_int_equal(c->decode(&p, 0, ELEMENTS, payload, len, back), ERR_OK);
			for (int i = 0; i < ELEMENTS; i++) {
				mean[i] += (double)back[i] / DRAWS;
				one += ((double)values[i] - back[i]) *
				    ((double)values[i] - back[i]) / DRAWS;
			}
		}
		for (int i = 0; i < ELEMENTS; i++) {
			off += ((double)values[i] - mean[i]) * ((double)values[i] - mean[i]);
			all += (double)values[i] * values[i];
		}
		print_message("one draw %.3g, mean of %d %.3g\n", one / all, DRAWS, off / all);
		assert_true(off < 2 * one / DRAWS);
	}
}

/* One tiny number among zeros is spread over its whole block, where nothing is left of it: it is sent as nothing, or as what it is
 * where it stands alone enough. */
static void
rotated_tiny(void **state)
{
	(void)state;
	static const unsigned ids[] = {CODEC_INT4, CODEC_SIGN};
	static float values[4096], back[4096];
	static uint8_t payload[ROOM];

	for (int k = 0; k < 2; k++)
		for (size_t elements = 1; elements <= 4096; elements *= 4)
			for (int places = 1; places < 200; places += 3) {
				const struct codec *c = codec_find(ids[k]);
				struct codec_params p = params(c, elements);
				uint8_t carry[64] = {0};
				double sum = 0;
				uint64_t len;
				values[elements / 2] = (float)places * 0x1p-149f;
				assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
				assert_int_equal(
				    c->check(&p, 0, payload, len, &sum, carry), ERR_OK);
				assert_int_equal(
				    c->decode(&p, 0, elements, payload, len, back), ERR_OK);
				for (size_t i = 0; i < elements; i++)
					assert_true(fabsf(back[i]) <= 512 * 0x1p-149f);
				values[elements / 2] = 0;
			}
}

static void
rotated_refusals(void **state)
{
	(void)state;
	static const struct {
		unsigned id;
		uint8_t bytes[8];
		size_t len;
		enum err e;
	} cases[] = {
	    {CODEC_SIGN, {0, 0, 0x80, 0x3f, 0xff}, 5, ERR_OK},
	    {CODEC_SIGN, {0, 0, 0x80, 0xbf, 1}, 5, ERR_INVALID}, /* scale -1 */
	    {CODEC_SIGN, {0, 0, 0, 0, 1}, 5, ERR_INVALID}, /* scale 0 of something */
	    {CODEC_SIGN, {0, 0, 0x80, 0x7f, 1}, 5, ERR_NUMERIC}, /* infinity */
	    {CODEC_SIGN, {0, 0, 0xc0, 0x7f, 1}, 5, ERR_NUMERIC}, /* NaN */
	    {CODEC_SIGN, {0, 0, 0, 0x7e, 1}, 5, ERR_NUMERIC}, /* decodes beyond f32 */
	    {CODEC_INT4, {0, 0, 0x80, 0x3f, 1, 2, 3, 0xff}, 8, ERR_OK},
	    {CODEC_INT4, {0, 0, 0, 0x80, 0, 0, 0, 0}, 8, ERR_INVALID}, /* scale -0 */
	    {CODEC_INT4, {0, 0, 0, 0, 0, 0, 0, 1}, 8, ERR_INVALID},
	    {CODEC_INT4, {0, 0, 0, 0, 0, 0, 0, 0}, 8, ERR_OK},
	};
	struct prng r;
	double sum;

	prng_seed(&r, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct codec *c = codec_find(cases[i].id);
		struct codec_params p = params(c, 8);
		for (size_t most = 1; most <= cases[i].len; most++)
			assert_int_equal(
			    codec_cut(c, &p, cases[i].bytes, cases[i].len, most, &r, &sum),
			    cases[i].e);
	}
}

/* Devices of every version must send, and coordinators decode, the same bits: what these were when the codecs came. The values
 * are made without libm, with zeros and runs of tiny ones among them. */
static void
frozen(void **state)
{
	static const struct {
		uint64_t payload, decoded;
	} known[LOSSY] = {{0x152c604bdafda4cbu, 0x4b1de481d1120ebfu},
	    {0xb5d325821aeb3550u, 0x77ae5670cbbc5cb0u}, {0x18ad37950c94c5b8u, 0x39166e95a56ab344u},
	    {0x048edb2b35ef0f7au, 0xec92ada57b41ab4cu}, {0xa1e9067f2a428638u, 0x856c18c305a691b5u}};
	float values[N], out[N];
	uint8_t payload[ROOM];
	struct prng r;
	(void)state;

	prng_seed(&r, 2);
	for (size_t i = 0; i < N; i++) {
		float x = prng_float(&r) + prng_float(&r) + prng_float(&r) - 1.5f;
		values[i] = i % 97 == 3 ? 0 : i / 64 % 19 == 5 ? x * 0x1p-140f : x;
	}
	for (size_t k = 0; k < LOSSY; k++) {
		const struct codec *c = codec_find_name(lossy[k]);
		struct codec_params p = params(c, N);
		uint64_t len, at;
		size_t bytes;
		assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
		c->range(&p, 0, N, &at, &bytes);
		assert_int_equal(c->decode(&p, 0, N, payload, bytes, out), ERR_OK);
		assert_int_equal(fingerprint(payload, (size_t)len), known[k].payload);
		assert_int_equal(fingerprint(out, sizeof(out)), known[k].decoded);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(cuts),
	    cmocka_unit_test(ranges),
	    cmocka_unit_test(not_finite),
	    cmocka_unit_test(halves),
	    cmocka_unit_test(int8_bytes),
	    cmocka_unit_test(int8_refusals),
	    cmocka_unit_test(int8_unbiased),
	    cmocka_unit_test(int8_error),
	    cmocka_unit_test(rotated_error),
	    cmocka_unit_test(rotated_unbiased),
	    cmocka_unit_test(rotated_tiny),
	    cmocka_unit_test(rotated_refusals),
	    cmocka_unit_test(frozen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
