/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec.h"
#include "delta.h"
#include "file.h"
#include "hex.h"
#include "key.h"
#include "merkle.h"
#include "messages.h"
#include "prng.h"
#include "sign.h"
#include "task_kind.h"
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

/* A delta, and its payload. */
struct made {
	struct delta delta;
	uint8_t *payload;
};

#define AT 77 /* whatever stands before the body */

static enum err
make_with(struct made *m, const struct delta_facts *f, struct delta_input in, struct why *why)
{
	int fd;

	assert_int_equal(file_scratch(&fd, NULL), ERR_OK);
	in.fd = fd;
	in.at = AT;
	enum err e = delta_make(&m->delta, f, &in, key, why);
	struct delta *d = &m->delta;
	if (!e) {
		assert_true(d->payload_at == AT + d->leaves_len);
		m->payload = malloc(d->payload_len);
		assert_non_null(m->payload);
		assert_int_equal(file_pread(fd, m->payload, d->payload_len, d->payload_at), ERR_OK);
	} else {
		close(fd);
	}
	return e;
}

static enum err
make(struct made *m, const struct delta_facts *f, const float *one, const float *second, size_t n,
    struct why *why)
{
	const struct codec_elements first = codec_elements_in(one),
				    other = codec_elements_in(second);

	return make_with(m, f,
	    (struct delta_input){.values = &first, .second = second ? &other : NULL, .elements = n},
	    why);
}

static void
made_deinit(struct made *m)
{
	close(m->delta.fd);
	free(m->payload);
	delta_deinit(&m->delta);
}

static void
test_manifest(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	struct made d;
	struct manifest m;
	uint8_t digest[HASH_LEN];
	char hex[65];

	(void)state;
	assert_int_equal(make(&d, &f, values, NULL, ELEMENTS, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&m, d.delta.manifest, MANIFEST_LEN, NULL), ERR_OK);
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
	hash_sha256(digest, d.delta.manifest, MANIFEST_SIGNED);
	assert_int_equal(
	    sign_verify(key_spki(key), digest, d.delta.manifest + MANIFEST_SIGNED), ERR_OK);
	made_deinit(&d);
}

/* Two vectors: the norm is of the first, and the second comes back as it will be decoded. */
static void
test_second(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	float *second = malloc(ELEMENTS * sizeof(float)), *got = malloc(ELEMENTS * sizeof(float));
	struct made one, two;
	struct manifest m, n;
	struct delta_decoded decoded;

	(void)state;
	assert_true(second && got);
	for (size_t i = 0; i < ELEMENTS; i++)
		second[i] = (float)i;
	assert_int_equal(make(&one, &f, values, NULL, ELEMENTS, NULL), ERR_OK);
	assert_int_equal(delta_decoded(&decoded, &one.delta, 1), ERR_INVALID);
	assert_int_equal(make(&two, &f, values, second, ELEMENTS, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&m, one.delta.manifest, MANIFEST_LEN, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&n, two.delta.manifest, MANIFEST_LEN, NULL), ERR_OK);
	assert_int_equal(n.flags, m.flags | MANIFEST_SECOND);
	assert_int_equal(n.elements, ELEMENTS);
	assert_int_equal(n.payload_bytes, 2 * m.payload_bytes);
	assert_memory_equal(&n.norm, &m.norm, sizeof(n.norm));
	assert_memory_equal(two.payload, one.payload, one.delta.payload_len);
	assert_int_equal(delta_decoded(&decoded, &two.delta, 1), ERR_OK);
	const struct codec_elements back = delta_decoded_values(&decoded);
	assert_int_equal(back.read(back.context, 0, ELEMENTS, got), ERR_OK);
	assert_memory_equal(got, second, ELEMENTS * sizeof(float));
	strcpy(t.recipe.codec, "sparse");
	made_deinit(&two);
	assert_int_equal(make(&two, &f, values, second, ELEMENTS, NULL), ERR_UNSUPPORTED);
	second[ELEMENTS - 1] = INFINITY;
	strcpy(t.recipe.codec, "f32");
	assert_int_equal(make(&two, &f, values, second, ELEMENTS, NULL), ERR_NUMERIC);
	made_deinit(&one);
	free(second);
	free(got);
}

/* The body as the coordinator will read it: leaves under the signed root, chunks under the leaves, values as they were. */
static void
test_body(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	struct made d;
	struct manifest m;
	uint8_t hash[HASH_LEN];
	double sum = 0;

	(void)state;
	assert_int_equal(make(&d, &f, values, NULL, ELEMENTS, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&m, d.delta.manifest, MANIFEST_LEN, NULL), ERR_OK);
	assert_int_equal(d.delta.leaves_len, 2 * HASH_LEN);
	assert_int_equal(
	    d.delta.leaves_len + d.delta.payload_len, manifest_body_bytes(m.payload_bytes));
	merkle_root(hash, d.delta.leaves, 2);
	assert_memory_equal(hash, m.root, HASH_LEN);
	merkle_leaf(hash, d.payload, MANIFEST_CHUNK);
	assert_memory_equal(hash, d.delta.leaves, HASH_LEN);
	merkle_leaf(hash, d.payload + MANIFEST_CHUNK, d.delta.payload_len - MANIFEST_CHUNK);
	assert_memory_equal(hash, d.delta.leaves + HASH_LEN, HASH_LEN);
	assert_memory_equal(d.payload, values, sizeof(values));
	for (size_t i = 0; i < ELEMENTS; i++)
		sum += (double)values[i] * (double)values[i];
	assert_true(fabs((double)m.norm - sqrt(sum)) < 1e-3);
	made_deinit(&d);
}

/* What a codec makes of the whole vector at once, its norm as the coordinator finds it, and hashes over that: the same bytes, tile by tile,
 * for every codec. A sparse payload turns out shorter than it might have been, and moves up to its leaves. */
static void
test_codecs(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	uint8_t *want = malloc(8 * ELEMENTS), hash[HASH_LEN];

	(void)state;
	assert_non_null(want);
	for (const char *const *name = codec_names(); *name; name++) {
		const struct codec *c = codec_find_name(*name);
		struct manifest m;
		struct made d;
		strcpy(t.recipe.codec, *name);
		t.recipe.upload.share = 0.01;
		assert_int_equal(make(&d, &f, values, NULL, ELEMENTS, NULL), ERR_OK);
		assert_int_equal(manifest_decode(&m, d.delta.manifest, MANIFEST_LEN, NULL), ERR_OK);
		struct vectors v = vectors_of(&m);
		v.params.entries = recipe_upload_entries(&t.recipe.upload, ELEMENTS);
		uint64_t len;
		assert_int_equal(c->encode(want, &len, values, &v.params), ERR_OK);
		assert_int_equal(m.payload_bytes, len);
		assert_memory_equal(d.payload, want, len);
		uint8_t carry[64] = {0};
		double squares = 0;
		v.params.table = malloc(codec_table_bytes(c, ELEMENTS) + 1);
		assert_int_equal(vectors_check(&v, 0, want, len, &squares, carry), ERR_OK);
		assert_true(m.norm == (float)sqrt(squares));
		size_t chunks = (size_t)manifest_chunks(len);
		for (size_t i = 0; i < chunks; i++) {
			size_t left = len - i * MANIFEST_CHUNK;
			merkle_leaf(hash, want + i * MANIFEST_CHUNK,
			    left < MANIFEST_CHUNK ? left : MANIFEST_CHUNK);
			assert_memory_equal(hash, d.delta.leaves + i * HASH_LEN, HASH_LEN);
		}
		free(v.params.table);
		made_deinit(&d);
	}
	free(want);
}

/* Values that are others each time they are read. */
static enum err
read_other(void *context, uint64_t first, size_t count, float *out)
{
	float *scale = context;

	for (size_t i = 0; i < count; i++)
		out[i] = *scale * (float)(first + i + 1);
	*scale *= first == 0 ? 0.01f : 1;
	return ERR_OK;
}

static void
test_changing(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	struct why why = {""};
	float scale = 1;
	const struct codec_elements all = {read_other, &scale};
	struct made d;

	(void)state;
	strcpy(t.recipe.codec, "sparse");
	t.recipe.upload.share = 0.01;
	assert_int_equal(
	    make_with(&d, &f, (struct delta_input){.values = &all, .elements = ELEMENTS}, &why),
	    ERR_INVALID);
	assert_non_null(strstr(why.text, "changed"));
}

static void
test_without_report_and_accuracy(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	struct made d;
	struct manifest m;
	static const uint8_t zero[32];

	(void)state;
	f.report = NULL;
	f.report_len = 0;
	f.partial = false;
	f.accuracy = NAN;
	assert_int_equal(make(&d, &f, values, NULL, 10, NULL), ERR_OK);
	assert_int_equal(manifest_decode(&m, d.delta.manifest, MANIFEST_LEN, NULL), ERR_OK);
	assert_int_equal(m.flags, 0);
	assert_true(isnan(m.accuracy));
	assert_memory_equal(m.report_hash, zero, 32);
	made_deinit(&d);
}

static void
test_refused(void **state)
{
	struct task t = make_task();
	struct delta_facts f = make_facts(&t);
	struct made d;
	struct why why = {""};
	float bad[3] = {1, NAN, 2};

	(void)state;
	assert_int_equal(make(&d, &f, bad, NULL, 3, &why), ERR_NUMERIC);
	bad[1] = INFINITY;
	assert_int_equal(make(&d, &f, bad, NULL, 3, &why), ERR_NUMERIC);
	bad[1] = 3e38f;
	bad[0] = 3e38f;
	assert_int_equal(make(&d, &f, bad, NULL, 3, &why), ERR_NUMERIC);
	strcpy(t.recipe.codec, "morse");
	assert_int_equal(make(&d, &f, values, NULL, 3, &why), ERR_UNSUPPORTED);
	assert_non_null(strstr(why.text, "morse"));
	t = make_task();
	t.model[3] = 'x';
	assert_int_equal(make(&d, &f, values, NULL, 3, &why), ERR_INVALID);
	t = make_task();
	f.steps = 0;
	assert_int_equal(make(&d, &f, values, NULL, 3, &why), ERR_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_manifest),
	    cmocka_unit_test(test_body),
	    cmocka_unit_test(test_second),
	    cmocka_unit_test(test_codecs),
	    cmocka_unit_test(test_changing),
	    cmocka_unit_test(test_without_report_and_accuracy),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
