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
#include "flush.h"
#include "prng.h"

#define N 1003

static void
table(void **state)
{
	(void)state;
	const char *const *names = codec_names();
	size_t known = 0, listed = 0;

	for (unsigned id = 0; id <= UINT16_MAX; id++) {
		const struct codec *c = codec_find(id);
		if (!c)
			continue;
		known++;
		assert_int_equal(c->id, id);
		assert_ptr_equal(codec_find_name(c->name), c);
	}
	for (; names[listed]; listed++)
		assert_non_null(codec_find_name(names[listed]));
	assert_int_equal(known, listed);
	assert_non_null(codec_find(CODEC_F32));
	assert_null(codec_find(7));
	assert_null(codec_find(65536));
	assert_null(codec_find_name("F32"));
	assert_null(codec_find_name(""));
}

static void
draw(float *values, size_t n, uint64_t seed)
{
	struct prng r;

	prng_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		values[i] = prng_float(&r) - 0.5f;
}

/* 1.0, -2.0, the smallest subnormal and the largest finite number, by hand. */
static void
f32_bytes(void **state)
{
	(void)state;
	static const float values[] = {1.0f, -2.0f, 0x1p-149f, 0x1.fffffep127f};
	static const uint8_t expected[] = {
	    0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 1, 0, 0, 0, 0xff, 0xff, 0x7f, 0x7f};
	const struct codec *c = codec_find(CODEC_F32);
	struct codec_params p = {.elements = 4};
	uint8_t payload[16];
	uint64_t len = 0, at;
	size_t bytes;
	float back[2];

	assert_true(c->fixed_size);
	assert_int_equal(c->block, 0);
	assert_int_equal(c->payload_bytes(4), 16);
	assert_true(c->payload_bytes(UINT64_MAX / 2) == UINT64_MAX);
	assert_int_equal(c->encode(payload, &len, values, &p), ERR_OK);
	assert_int_equal(len, 16);
	assert_memory_equal(payload, expected, 16);
	c->range(&p, 1, 2, &at, &bytes);
	assert_int_equal(at, 4);
	assert_int_equal(bytes, 8);
	assert_int_equal(c->decode(&p, 1, 2, payload + at, bytes, back), ERR_OK);
	assert_memory_equal(back, values + 1, 8);
	assert_int_equal(c->decode(&p, 1, 2, payload, 7, back), ERR_INVALID);
	assert_int_equal(c->decode(&p, 3, 2, payload, 8, back), ERR_INVALID);
	assert_int_equal(c->decode(&p, UINT64_MAX, 2, payload, 8, back), ERR_INVALID);
}

static void
f32_cuts(void **state)
{
	(void)state;
	static float values[N];
	static uint8_t payload[N * 4];
	const char *given = getenv("SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 1, len;
	struct codec_params p = {.elements = N};
	struct prng r;
	double whole, exact = 0;

	print_message("SEED=%llu\n", (unsigned long long)seed);
	draw(values, N, seed);
	prng_seed(&r, seed);
	assert_int_equal(codec_find(CODEC_F32)->encode(payload, &len, values, &p), ERR_OK);
	for (size_t i = 0; i < N; i++)
		exact += (double)values[i] * values[i];
	uint8_t carry[64] = {0};
	whole = 0;
	assert_int_equal(codec_find(CODEC_F32)->check(&p, 0, payload, len, &whole, carry), ERR_OK);
	assert_true(fabs(whole - exact) < 1e-9);
	for (size_t most = 1; most <= 200; most++) {
		double sum;
		assert_int_equal(
		    codec_cut(codec_find(CODEC_F32), &p, payload, len, most, &r, &sum), ERR_OK);
		assert_true(sum == whole);
	}
}

/* A bad value is seen at every place, however the cuts fall. */
static void
f32_not_finite(void **state)
{
	(void)state;
	static const uint32_t bad[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff};
	static float values[N];
	static uint8_t payload[N * 4];
	struct codec_params p = {.elements = N};
	struct prng r;
	uint64_t len;
	double sum;

	draw(values, N, 2);
	prng_seed(&r, 2);
	for (size_t i = 0; i < N; i++) {
		float kept = values[i];
		memcpy(&values[i], &bad[i % 5], 4);
		assert_int_equal(
		    codec_find(CODEC_F32)->encode(payload, &len, values, &p), ERR_NUMERIC);
		memcpy(payload, values, sizeof(values));
		assert_int_equal(
		    codec_cut(codec_find(CODEC_F32), &p, payload, sizeof(payload), 50, &r, &sum),
		    ERR_NUMERIC);
		assert_int_equal(
		    codec_cut(codec_find(CODEC_F32), &p, payload, sizeof(payload), 5000, &r, &sum),
		    ERR_NUMERIC);
		values[i] = kept;
	}
	assert_int_equal(codec_find(CODEC_F32)->encode(payload, &len, values, &p), ERR_OK);
	assert_int_equal(
	    codec_cut(codec_find(CODEC_F32), &p, payload, sizeof(payload), 50, &r, &sum), ERR_OK);
}

static void
f32_largest(void **state)
{
	(void)state;
	static float values[N];
	struct codec_params p = {.elements = N};
	static uint8_t payload[N * 4];
	uint8_t carry[64] = {0};
	uint64_t len;
	double sum = 0;

	for (size_t i = 0; i < N; i++)
		values[i] = -0x1.fffffep127f;
	assert_int_equal(codec_find(CODEC_F32)->encode(payload, &len, values, &p), ERR_OK);
	assert_int_equal(codec_find(CODEC_F32)->check(&p, 0, payload, len, &sum, carry), ERR_OK);
	assert_true(sum > 1e79 && isfinite(sum));
}

static void
f32_past_end(void **state)
{
	(void)state;
	const struct codec *c = codec_find(CODEC_F32);
	struct codec_params p = {.elements = 2};
	uint8_t carry[64] = {0}, data[16] = {0};
	double sum = 0;

	assert_int_equal(c->check(&p, 0, data, 9, &sum, carry), ERR_INVALID);
	assert_int_equal(c->check(&p, 9, data, 0, &sum, carry), ERR_INVALID);
	assert_int_equal(c->check(&p, UINT64_MAX, data, 1, &sum, carry), ERR_INVALID);
	assert_int_equal(c->check(&p, 0, data, 8, &sum, carry), ERR_OK);
}

/* A payload in memory, and values of which those behind `from` differ each time they are read. */
struct place {
	uint8_t *payload;
	const float *values;
	uint64_t from;
	float off;
};

static enum err
put(void *context, const void *data, size_t len, uint64_t at)
{
	struct place *p = context;

	memcpy(p->payload + at, data, len);
	return ERR_OK;
}

static enum err
get(void *context, uint64_t first, size_t count, float *out)
{
	struct place *p = context;

	for (size_t i = 0; i < count; i++)
		out[i] = first + i < p->from ? p->values[first + i] : p->off;
	p->off /= 2;
	return ERR_OK;
}

/* Tile by tile each codec gives the bytes that it gives of the whole vector: lengths around its blocks and tiles, and blocks of zeros,
 * for which no random numbers are drawn. */
static void
tiles(void **state)
{
	static const size_t lengths[] = {1, 63, 4097, 16384, 16385, 3 * 16384 + 4095, 100000};
	static float values[100000];
	static uint8_t whole[500000], tile[500000];

	(void)state;
	draw(values, 100000, 3);
	memset(values + 5000, 0, 20000 * sizeof(*values));
	for (const char *const *name = codec_names(); *name; name++)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			const struct codec *c = codec_find_name(*name);
			const struct codec_params p = {.elements = lengths[i],
			    .block = c->block,
			    .seed = 5,
			    .entries = lengths[i] / 3};
			const struct codec_elements from = codec_elements_in(values);
			struct place place = {.payload = tile};
			const struct codec_sink to = {put, &place};
			uint64_t len, tile_len;
			memset(tile, 0xee, sizeof(tile));
			assert_int_equal(c->encode(whole, &len, values, &p), ERR_OK);
			assert_int_equal(codec_write(c, &p, &from, &to, &tile_len), ERR_OK);
			assert_int_equal(tile_len, len);
			assert_memory_equal(tile, whole, len);
			assert_int_equal(tile[len], 0xee);
		}
}

/* Values that a program changes while they are read: an error, or a payload that is none, but nothing worse. */
static void
changing(void **state)
{
	static float values[40000];
	static uint8_t payload[200000];

	(void)state;
	draw(values, 40000, 4);
	for (const char *const *name = codec_names(); *name; name++)
		for (uint64_t from = 0; from < 40000; from += 13000) {
			const struct codec *c = codec_find_name(*name);
			const struct codec_params p = {.elements = 40000, .entries = 20000};
			struct place place = {payload, values, from, 1e30f};
			const struct codec_elements all = {get, &place};
			const struct codec_sink to = {put, &place};
			uint64_t len;
			enum err e = codec_write(c, &p, &all, &to, &len);
			if (c->fixed_size && strcmp(*name, "f16") != 0)
				assert_int_equal(e, ERR_OK);
			if (!c->fixed_size && from == 0)
				assert_int_equal(e, ERR_INVALID);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(table),
	    cmocka_unit_test(tiles),
	    cmocka_unit_test(changing),
	    cmocka_unit_test(f32_bytes),
	    cmocka_unit_test(f32_cuts),
	    cmocka_unit_test(f32_not_finite),
	    cmocka_unit_test(f32_largest),
	    cmocka_unit_test(f32_past_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
