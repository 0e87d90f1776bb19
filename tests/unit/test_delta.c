#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "delta.h"
#include "hex.h"
#include "key.h"
#include "merkle.h"
#include "prng.h"
#include "sign.h"
#include "training.h"

/* More than one chunk of f32, and no whole number of them. */
#define ELEMENTS 300001

static float values[ELEMENTS];
static struct key *key;
static uint8_t device[32];

static int
set_up(void **state)
{
	struct prng rng;

	(void)state;
	prng_seed(&rng, 11);
	for (size_t i = 0; i < ELEMENTS; i++)
		values[i] = prng_float(&rng) - 0.5f;
	assert_int_equal(key_generate(&key, NULL), ERR_OK);
	key_id(device, key_spki(key));
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	key_free(key);
	return 0;
}

static struct task
make_task(void)
{
	struct task t = {.round = 7, .seed = 42, .kind = TASK_TRAIN};

	strcpy(t.task, "000102030405060708090a0b0c0d0e0f");
	strcpy(t.job, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
	memset(t.model, 'a', 64);
	strcpy(t.recipe.codec, "f32");
	return t;
}

static struct delta_facts
make_facts(const struct task *t)
{
	return (struct delta_facts){.task = t,
	    .device = device,
	    .examples = 600,
	    .steps = 60,
	    .loss = 0.5,
	    .accuracy = 0.75,
	    .normaliser = 60,
	    .optimizer = MANIFEST_SGD,
	    .partial = true,
	    .report = "{}",
	    .report_len = 2,
	    .made_at_ms = 1234567};
}

static void
test_manifest(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	struct delta d;
	struct manifest m;
	uint8_t digest[HASH_LEN];
	char hex[65];

	(void)state;
	assert_int_equal(delta_make(&d, &f, values, NULL, ELEMENTS, key, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&m, d.manifest, MANIFEST_LEN, NULL), ERR_OK);
	hex_encode(hex, m.task, 16);
	assert_string_equal(hex, t.task);
	hex_encode(hex, m.job, 16);
	assert_string_equal(hex, t.job);
	hex_encode(hex, m.base, 32);
	assert_string_equal(hex, t.model);
	assert_memory_equal(m.device, device, 32);
	assert_int_equal(m.round, 7);
	assert_int_equal(m.examples, 600);
	assert_int_equal(m.steps, 60);
	assert_int_equal(m.elements, ELEMENTS);
	assert_int_equal(m.codec, CODEC_F32);
	assert_int_equal(m.block, 0);
	assert_int_equal(m.flags, MANIFEST_PARTIAL | MANIFEST_REPORT);
	assert_int_equal(m.payload_bytes, 4 * ELEMENTS);
	assert_int_equal(m.made_at_ms, 1234567);
	assert_int_equal(m.codec_seed, training_seed(42, 7, device));
	assert_true(m.normaliser == 60.0f && m.loss == 0.5f && m.accuracy == 0.75f);
	hash_sha256(digest, "{}", 2);
	assert_memory_equal(m.report_hash, digest, HASH_LEN);
	hash_sha256(digest, d.manifest, MANIFEST_SIGNED);
	assert_int_equal(sign_verify(key_spki(key), digest, d.manifest + MANIFEST_SIGNED), ERR_OK);
	delta_deinit(&d);
}

/* Two vectors: the norm is of the first, and the second comes back as it will be decoded. */
static void
test_second(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	float *second = malloc(ELEMENTS * sizeof(float)), *got = malloc(ELEMENTS * sizeof(float));
	struct delta one, two;
	struct manifest m, n;

	(void)state;
	assert_true(second && got);
	for (size_t i = 0; i < ELEMENTS; i++)
		second[i] = (float)i;
	assert_int_equal(delta_make(&one, &f, values, NULL, ELEMENTS, key, NULL), ERR_OK);
	assert_int_equal(delta_second(&one, got), ERR_INVALID);
	assert_int_equal(delta_make(&two, &f, values, second, ELEMENTS, key, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&m, one.manifest, MANIFEST_LEN, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&n, two.manifest, MANIFEST_LEN, NULL), ERR_OK);
	assert_int_equal(n.flags, m.flags | MANIFEST_SECOND);
	assert_int_equal(n.elements, ELEMENTS);
	assert_int_equal(n.payload_bytes, 2 * m.payload_bytes);
	assert_memory_equal(&n.norm, &m.norm, sizeof(n.norm));
	assert_memory_equal(two.payload, one.payload, one.payload_len);
	assert_int_equal(delta_second(&two, got), ERR_OK);
	assert_memory_equal(got, second, ELEMENTS * sizeof(float));
	strcpy(t.recipe.codec, "sparse");
	delta_deinit(&two);
	assert_int_equal(
	    delta_make(&two, &f, values, second, ELEMENTS, key, NULL), ERR_UNSUPPORTED);
	second[ELEMENTS - 1] = INFINITY;
	strcpy(t.recipe.codec, "f32");
	assert_int_equal(delta_make(&two, &f, values, second, ELEMENTS, key, NULL), ERR_NUMERIC);
	delta_deinit(&one);
	free(second);
	free(got);
}

/* The body as the coordinator will read it: leaves under the signed root, chunks under the leaves, values as they were. */
static void
test_body(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	struct delta d;
	struct manifest m;
	uint8_t hash[HASH_LEN];
	double sum = 0;

	(void)state;
	assert_int_equal(delta_make(&d, &f, values, NULL, ELEMENTS, key, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&m, d.manifest, MANIFEST_LEN, NULL), ERR_OK);
	assert_int_equal(d.leaves_len, 2 * HASH_LEN);
	assert_int_equal(d.leaves_len + d.payload_len, manifest_body_bytes(m.payload_bytes));
	merkle_root(hash, d.leaves, 2);
	assert_memory_equal(hash, m.root, HASH_LEN);
	merkle_leaf(hash, d.payload, MANIFEST_CHUNK);
	assert_memory_equal(hash, d.leaves, HASH_LEN);
	merkle_leaf(hash, d.payload + MANIFEST_CHUNK, d.payload_len - MANIFEST_CHUNK);
	assert_memory_equal(hash, d.leaves + HASH_LEN, HASH_LEN);
	assert_memory_equal(d.payload, values, sizeof(values));
	for (size_t i = 0; i < ELEMENTS; i++)
		sum += (double)values[i] * (double)values[i];
	assert_true(fabs((double)m.norm - sqrt(sum)) < 1e-3);
	delta_deinit(&d);
}

static void
test_without_report_and_accuracy(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	struct delta d;
	struct manifest m;
	static const uint8_t zero[32];

	(void)state;
	f.report = NULL;
	f.report_len = 0;
	f.partial = false;
	f.accuracy = NAN;
	assert_int_equal(delta_make(&d, &f, values, NULL, 10, key, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&m, d.manifest, MANIFEST_LEN, NULL), ERR_OK);
	assert_int_equal(m.flags, 0);
	assert_true(isnan(m.accuracy));
	assert_memory_equal(m.report_hash, zero, 32);
	delta_deinit(&d);
}

static void
test_refused(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	struct delta d;
	struct why why = {""};
	float bad[3] = {1, NAN, 2};

	(void)state;
	assert_int_equal(delta_make(&d, &f, bad, NULL, 3, key, &why), ERR_NUMERIC);
	bad[1] = INFINITY;
	assert_int_equal(delta_make(&d, &f, bad, NULL, 3, key, &why), ERR_NUMERIC);
	bad[1] = 3e38f;
	bad[0] = 3e38f;
	assert_int_equal(delta_make(&d, &f, bad, NULL, 3, key, &why), ERR_NUMERIC);
	strcpy(t.recipe.codec, "morse");
	assert_int_equal(delta_make(&d, &f, values, NULL, 3, key, &why), ERR_UNSUPPORTED);
	assert_non_null(strstr(why.text, "morse"));
	t = make_task();
	t.model[3] = 'x';
	assert_int_equal(delta_make(&d, &f, values, NULL, 3, key, &why), ERR_INVALID);
	t = make_task();
	f.steps = 0;
	assert_int_equal(delta_make(&d, &f, values, NULL, 3, key, &why), ERR_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_manifest),
	    cmocka_unit_test(test_body),
	    cmocka_unit_test(test_second),
	    cmocka_unit_test(test_without_report_and_accuracy),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
