/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "difference.h"
#include "flush.h"

#define ELEMENTS (DIFFERENCE_TILE + 4105)

static struct difference
sample(const char *codec, uint64_t elements)
{
	struct difference d = {.round = 3, .elements = elements, .seed = 77};

	d.codec = codec_find_name(codec);
	assert_non_null(d.codec);
	d.payload_bytes = difference_payload_bytes(d.codec, elements);
	memset(d.job, 1, sizeof(d.job));
	memset(d.from, 2, sizeof(d.from));
	memset(d.to, 4, sizeof(d.to));
	memset(d.payload_hash, 5, sizeof(d.payload_hash));
	memset(d.tag, 6, sizeof(d.tag));
	return d;
}

static void
there_and_back(void **state)
{
	struct difference in = sample("int8", 130), out;
	uint8_t head[DIFFERENCE_HEAD], again[DIFFERENCE_HEAD];

	(void)state;
	difference_encode(head, &in);
	assert_int_equal(difference_decode(&out, head, sizeof(head), NULL), ERR_OK);
	difference_encode(again, &out);
	assert_memory_equal(head, again, sizeof(head));
	assert_ptr_equal(out.codec, in.codec);
	/* The places of FORMAT.md. */
	assert_memory_equal(head, "RVB1\x01\x00\x00\x01", 8);
	const struct {
		size_t at;
		uint8_t value;
	} places[] = {{8, 1}, {24, 3}, {32, 2}, {64, 4}, {96, 130}, {104, 130 + 3 * 4}, {112, 77},
	    {120, CODEC_INT8}, {124, 64}, {128, 5}, {160, 0}, {223, 0}, {224, 6}, {255, 6}};
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		assert_int_equal(head[places[i].at], places[i].value);
}

/* A good head with one byte changed, right before memory that cannot be read. */
static enum err
changed(size_t at, uint8_t to)
{
	struct difference d = sample("int8", 130);
	uint8_t head[DIFFERENCE_HEAD];

	difference_encode(head, &d);
	head[at] = to;
	struct flush f = flush_new(head, sizeof(head));
	enum err e = difference_decode(&d, f.data, sizeof(head), NULL);
	flush_free(&f);
	return e;
}

static void
bad_heads(void **state)
{
	struct difference d = sample("int8", 130);
	uint8_t head[DIFFERENCE_HEAD];

	(void)state;
	assert_int_equal(changed(0, 'X'), ERR_INVALID);
	assert_int_equal(changed(4, 2), ERR_UNSUPPORTED);
	assert_int_equal(changed(4, 0), ERR_INVALID);
	assert_int_equal(changed(6, 1), ERR_INVALID);
	assert_int_equal(changed(24, 0), ERR_INVALID); /* round 0 */
	assert_int_equal(changed(96, 0), ERR_INVALID); /* no elements */
	assert_int_equal(changed(96, 131), ERR_INVALID);
	assert_int_equal(changed(104, 1), ERR_INVALID);
	assert_int_equal(changed(111, 1), ERR_INVALID);
	assert_int_equal(changed(120, 99), ERR_UNSUPPORTED);
	assert_int_equal(changed(122, 1), ERR_INVALID);
	assert_int_equal(changed(124, 32), ERR_INVALID);
	assert_int_equal(changed(160, 1), ERR_INVALID);
	assert_int_equal(changed(223, 1), ERR_INVALID);
	memcpy(d.to, d.from, sizeof(d.to));
	difference_encode(head, &d);
	assert_int_equal(difference_decode(&d, head, sizeof(head), NULL), ERR_INVALID);
	for (size_t len = 0; len < DIFFERENCE_HEAD; len++)
		assert_int_equal(difference_decode(&d, head, len, NULL), ERR_INVALID);
	/* A number of elements that no length can be reckoned for, with the length that stands for that. */
	d = sample("int8", 130);
	d.elements = UINT64_MAX / 2;
	d.payload_bytes = difference_payload_bytes(d.codec, d.elements);
	assert_true(d.payload_bytes == UINT64_MAX);
	difference_encode(head, &d);
	assert_int_equal(difference_decode(&d, head, sizeof(head), NULL), ERR_INVALID);
}

static const char *const codecs[] = {"f32", "f16", "bf16", "int8", "int4", "sign"};
/* |decoded - values|^2 / |values|^2 of smooth values, at most; docs/algorithms.md. */
static const double worst[] = {0, 1e-6, 1e-4, 1e-3, 1.1e-2, 0.6};

/* Every tile goes there and back by itself, and the payload's length is that of its tiles. */
static void
tiles(void **state)
{
	float *values = malloc(ELEMENTS * sizeof(float)), out[DIFFERENCE_TILE];
	uint8_t bytes[DIFFERENCE_TILE_BYTES], again[DIFFERENCE_TILE_BYTES];

	(void)state;
	assert_non_null(values);
	for (int i = 0; i < ELEMENTS; i++)
		values[i] = sinf((float)i) * 0.01f;
	for (size_t c = 0; c < sizeof(codecs) / sizeof(*codecs); c++) {
		struct difference d = sample(codecs[c], ELEMENTS);
		double wrong = 0, all = 0;
		uint64_t at = 0;
		for (uint64_t n = 0; n < 2; n++) {
			struct difference_tile t = difference_tile(&d, n);
			assert_int_equal(t.first, n * DIFFERENCE_TILE);
			assert_int_equal(t.count, n ? 4105 : DIFFERENCE_TILE);
			assert_int_equal(t.at, at);
			at += t.len;
			const float *v = values + t.first;
			assert_int_equal(difference_tile_encode(&d, &t, v, bytes), ERR_OK);
			assert_int_equal(difference_tile_encode(&d, &t, v, again), ERR_OK);
			assert_memory_equal(bytes, again, t.len);
			assert_int_equal(difference_tile_decode(&d, &t, bytes, out), ERR_OK);
			for (size_t i = 0; i < t.count; i++) {
				wrong += pow((double)out[i] - (double)v[i], 2);
				all += pow((double)v[i], 2);
			}
		}
		assert_int_equal(at, d.payload_bytes);
		assert_true(wrong / all <= worst[c]);
	}
	free(values);
}

/* What no encoder makes is refused, not added to a model. */
static void
bad_tiles(void **state)
{
	struct difference d = sample("int8", 130);
	struct difference_tile t = difference_tile(&d, 0);
	float values[130], out[130];
	uint8_t bytes[130 + 12];

	(void)state;
	for (int i = 0; i < 130; i++)
		values[i] = (float)i;
	assert_int_equal(t.len, sizeof(bytes));
	assert_int_equal(difference_tile_encode(&d, &t, values, bytes), ERR_OK);
	bytes[4] = 0x80;
	assert_int_equal(difference_tile_decode(&d, &t, bytes, out), ERR_INVALID);
	bytes[4] = 0;
	bytes[2] = bytes[3] = 0x7f;
	assert_int_equal(difference_tile_decode(&d, &t, bytes, out), ERR_NUMERIC);
	values[7] = NAN;
	assert_int_equal(difference_tile_encode(&d, &t, values, bytes), ERR_NUMERIC);
}

/* Two tiles, two rounds: the same values are rounded another way. */
static void
seeds(void **state)
{
	struct difference d = sample("int8", ELEMENTS), e = d;
	struct difference_tile first = difference_tile(&d, 0), second = first;
	uint8_t a[DIFFERENCE_TILE_BYTES], b[DIFFERENCE_TILE_BYTES];
	float values[DIFFERENCE_TILE];

	(void)state;
	for (int i = 0; i < DIFFERENCE_TILE; i++)
		values[i] = sinf((float)i);
	second.number = 1;
	e.seed++;
	assert_int_equal(difference_tile_encode(&d, &first, values, a), ERR_OK);
	assert_int_equal(difference_tile_encode(&d, &second, values, b), ERR_OK);
	assert_memory_not_equal(a, b, first.len);
	assert_int_equal(difference_tile_encode(&e, &first, values, b), ERR_OK);
	assert_memory_not_equal(a, b, first.len);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(there_and_back),
	    cmocka_unit_test(bad_heads),
	    cmocka_unit_test(tiles),
	    cmocka_unit_test(bad_tiles),
	    cmocka_unit_test(seeds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
