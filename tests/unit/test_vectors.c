/* stages: gcc clang address */
/* Payloads of one vector and of two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prng.h"
#include "vectors.h"

#define ELEMENTS 9001 /* no whole number of any block */

struct sample {
	struct vectors v;
	float first[ELEMENTS], second[ELEMENTS];
	uint8_t *payload;
	uint64_t len;
};

/* Both encoded as a device does it. */
static struct sample *
make_sample(const struct codec *codec)
{
	struct sample *s = calloc(1, sizeof(*s));
	struct prng r;
	uint64_t one = codec->payload_bytes(ELEMENTS), len = one;

	assert_non_null(s);
	prng_seed(&r, 11);
	for (size_t i = 0; i < ELEMENTS; i++) {
		s->first[i] = prng_float(&r) - 0.5f;
		s->second[i] = 10 * prng_float(&r);
	}
	const struct manifest m = {.codec = codec->id,
	    .elements = ELEMENTS,
	    .block = codec->block,
	    .codec_seed = UINT64_MAX,
	    .payload_bytes = 2 * one,
	    .flags = MANIFEST_SECOND};
	s->v = vectors_of(&m);
	s->len = vectors_bytes(&s->v);
	assert_int_equal(s->len, 2 * one);
	s->payload = malloc(s->len);
	assert_non_null(s->payload);
	const struct codec_params p = {
	    .elements = ELEMENTS, .block = codec->block, .seed = UINT64_MAX};
	const struct codec_params q = {.elements = ELEMENTS, .block = codec->block, .seed = 0};
	assert_int_equal(codec->encode(s->payload, &len, s->first, &p), ERR_OK);
	assert_int_equal(codec->encode(s->payload + one, &len, s->second, &q), ERR_OK);
	return s;
}

static void
free_sample(struct sample *s)
{
	free(s->payload);
	free(s);
}

static double
norm(const struct codec *codec, const uint8_t *payload, const struct codec_params *p)
{
	uint8_t carry[64] = {0};
	double squares = 0;

	assert_int_equal(
	    codec->check(p, 0, payload, codec->payload_bytes(ELEMENTS), &squares, carry), ERR_OK);
	return squares;
}

/* However it is cut, only the first vector is measured, and both are checked. */
static void
check_cuts(const struct sample *s)
{
	static const size_t cuts[] = {1, 7, 1000, 65536, 1 << 20};
	const struct codec_params p = vectors_params(&s->v, 0);
	double want = norm(s->v.codec, s->payload, &p);

	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		uint8_t carry[64] = {0};
		double squares = 0;
		for (uint64_t at = 0; at < s->len; at += cuts[i]) {
			size_t left = (size_t)(s->len - at), n = left < cuts[i] ? left : cuts[i];
			assert_int_equal(
			    vectors_check(&s->v, at, s->payload + at, n, &squares, carry), ERR_OK);
		}
		assert_true(squares == want);
		assert_int_equal(
		    vectors_check(&s->v, s->len, s->payload, 1, &squares, carry), ERR_INVALID);
	}
}

static void
check_reading(const struct sample *s)
{
	struct codec_memory memory = {s->payload, s->len};
	const struct codec_source source = {codec_memory_read, &memory};
	float *a = malloc(ELEMENTS * sizeof(float)), *b = malloc(ELEMENTS * sizeof(float));
	struct codec_memory half = {s->payload + s->len / 2, s->len / 2};
	const struct codec_source tail = {codec_memory_read, &half};
	const struct codec_params q = vectors_params(&s->v, 1);

	assert_true(a && b);
	assert_int_equal(q.seed, 0);
	assert_int_equal(vectors_read(&s->v, 1, &source, 0, ELEMENTS, a), ERR_OK);
	assert_int_equal(codec_read(s->v.codec, &q, &tail, 0, ELEMENTS, b), ERR_OK);
	assert_memory_equal(a, b, ELEMENTS * sizeof(float));
	/* Any range of it gives the same, and it is not the first. */
	assert_int_equal(vectors_read(&s->v, 1, &source, 4000, 200, b), ERR_OK);
	assert_memory_equal(a + 4000, b, 200 * sizeof(float));
	assert_int_equal(vectors_read(&s->v, 0, &source, 0, ELEMENTS, b), ERR_OK);
	assert_memory_not_equal(a, b, ELEMENTS * sizeof(float));
	free(a);
	free(b);
}

static void
two_vectors(void **state)
{
	size_t seen = 0;

	(void)state;
	for (const char *const *name = codec_names(); *name; name++) {
		const struct codec *codec = codec_find_name(*name);
		if (!codec->fixed_size)
			continue;
		struct sample *s = make_sample(codec);
		check_cuts(s);
		check_reading(s);
		free_sample(s);
		seen++;
	}
	assert_true(seen >= 6);
}

/* What no value may be is seen in the second vector, too. */
static void
not_finite(void **state)
{
	struct sample *s = make_sample(codec_find(CODEC_F32));
	const float bad = INFINITY;
	uint8_t carry[64] = {0};
	double squares = 0;

	(void)state;
	memcpy(s->payload + s->len - sizeof(bad), &bad, sizeof(bad));
	assert_int_equal(
	    vectors_check(&s->v, 0, s->payload, (size_t)s->len, &squares, carry), ERR_NUMERIC);
	free_sample(s);
}

static void
one_vector(void **state)
{
	const struct manifest m = {.codec = CODEC_F32, .elements = 10, .payload_bytes = 40};
	struct vectors v = vectors_of(&m);

	(void)state;
	assert_false(v.second);
	assert_int_equal(vectors_bytes(&v), 40);
	v.params.elements = UINT64_MAX / 4;
	assert_int_equal(vectors_bytes(&v), UINT64_MAX / 4 * 4);
	v.second = true;
	assert_true(vectors_bytes(&v) == UINT64_MAX);
	const struct manifest unknown = {.codec = 999};
	assert_null(vectors_of(&unknown).codec);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_vector),
	    cmocka_unit_test(two_vectors), cmocka_unit_test(not_finite)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
