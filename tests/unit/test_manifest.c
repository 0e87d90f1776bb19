/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "flush.h"
#include "manifest.h"
#include "task_kind.h"
#include "vector_file.h"

/* Decodes from a place whose end is unreadable. */
static enum err
decode(struct manifest *out, const uint8_t *data, size_t len, struct why *why)
{
	struct flush f = flush_new(data, len);
	enum err e = manifest_decode(out, f.data, len, why);

	flush_free(&f);
	return e;
}

static void
vector_fields(void **state)
{
	(void)state;
	uint8_t data[MANIFEST_LEN], again[MANIFEST_LEN];
	struct manifest m;

	vector_file("tests/vectors/manifest.hex", data, sizeof(data));
	assert_int_equal(decode(&m, data, sizeof(data), NULL), ERR_OK);
	assert_run(m.job, 16, 0x10);
	assert_true(m.round == 0x0102030405060708);
	assert_run(m.base, 32, 0x20);
	assert_run(m.device, 32, 0x40);
	assert_run(m.task, 16, 0x60);
	assert_int_equal(m.examples, 600);
	assert_int_equal(m.steps, 60);
	assert_int_equal(m.elements, 199386);
	assert_int_equal(m.payload_bytes, 797544);
	assert_run(m.root, 32, 0x70);
	assert_int_equal(m.codec, 0);
	assert_int_equal(m.optimizer, MANIFEST_ADAMW);
	assert_int_equal(m.flags, MANIFEST_PARTIAL | MANIFEST_REPORT | MANIFEST_SECOND);
	assert_int_equal(manifest_kind(&m), TASK_TRAIN);
	assert_int_equal(m.block, 256);
	assert_true(m.normaliser == 1.5f);
	assert_true(m.made_at_ms == 1700000000000);
	assert_true(m.loss == 0.5f);
	assert_true(m.accuracy == 0.25f);
	assert_true(m.norm == 2.5f);
	assert_int_equal(m.slice, 7);
	assert_true(m.codec_seed == 0x0123456789abcdef);
	assert_run(m.report_hash, 32, 0x90);
	assert_run(m.signature, 64, 0xb0);
	manifest_encode(again, &m);
	assert_memory_equal(again, data, sizeof(data));
}

static void
wrong_length(void **state)
{
	(void)state;
	uint8_t data[MANIFEST_LEN + 1] = {0};
	struct manifest m;
	struct why why;

	vector_file("tests/vectors/manifest.hex", data, MANIFEST_LEN);
	for (size_t len = 0; len < MANIFEST_LEN; len++)
		assert_int_equal(decode(&m, data, len, &why), ERR_INVALID);
	assert_int_equal(decode(&m, data, MANIFEST_LEN + 1, &why), ERR_INVALID);
}

/* Magic, version and length have no bit that may change. */
static void
head_bits(void **state)
{
	(void)state;
	uint8_t data[MANIFEST_LEN];
	struct manifest m;

	vector_file("tests/vectors/manifest.hex", data, sizeof(data));
	for (unsigned bit = 0; bit < 64; bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(decode(&m, data, sizeof(data), NULL), ERR_INVALID);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(decode(&m, data, sizeof(data), NULL), ERR_OK);
}

static void
reserved_flags(void **state)
{
	(void)state;
	uint8_t data[MANIFEST_LEN];
	struct manifest m;

	vector_file("tests/vectors/manifest.hex", data, sizeof(data));
	for (unsigned bit = 0; bit < 32; bit++) {
		bool reserved = (bit >= 5 && bit < 8) || bit >= 12;
		data[180 + bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* Without the report flag the hash must be zero, so bit 3 fails too; bit 8 makes an evaluation of it. */
		assert_int_equal(decode(&m, data, sizeof(data), NULL),
		    reserved || bit == 3 || bit == 8 ? ERR_INVALID : ERR_OK);
		data[180 + bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void
evaluation_vector(void **state)
{
	(void)state;
	uint8_t data[MANIFEST_LEN], again[MANIFEST_LEN];
	struct manifest m;

	vector_file("tests/vectors/manifest_evaluate.hex", data, sizeof(data));
	assert_int_equal(decode(&m, data, sizeof(data), NULL), ERR_OK);
	assert_int_equal(manifest_kind(&m), TASK_EVALUATE);
	assert_int_equal(m.flags, MANIFEST_REPORT | 1u << MANIFEST_KIND_SHIFT);
	assert_run(m.task, 16, 0x60);
	assert_int_equal(m.examples, 600);
	assert_int_equal(m.payload_bytes, 0);
	assert_true(m.made_at_ms == 1700000000000);
	assert_run(m.report_hash, 32, 0x90);
	manifest_encode(again, &m);
	assert_memory_equal(again, data, sizeof(data));
}

/* No bit may be set in what tells of a delta; all others may, but for head and flags. */
static void
evaluation_bits(void **state)
{
	(void)state;
	uint8_t data[MANIFEST_LEN];
	struct manifest m;

	vector_file("tests/vectors/manifest_evaluate.hex", data, sizeof(data));
	for (unsigned bit = 0; bit < MANIFEST_LEN * 8; bit++) {
		unsigned at = bit / 8;
		bool fixed = at < 8 || (at >= 120 && at < 192) || (at >= 200 && at < 224);
		data[at] ^= (uint8_t)(1u << bit % 8);
		if ((decode(&m, data, sizeof(data), NULL) == ERR_INVALID) != fixed)
			fail_msg("bit %u of byte %u", bit % 8, at);
		data[at] ^= (uint8_t)(1u << bit % 8);
	}
	/* Nor is there one without a report. */
	data[180] = 0;
	memset(data + 224, 0, 32);
	assert_int_equal(decode(&m, data, sizeof(data), NULL), ERR_INVALID);
}

static struct manifest
good(void)
{
	return (struct manifest){.examples = 1,
	    .steps = 1,
	    .elements = 1,
	    .payload_bytes = 4,
	    .normaliser = 1,
	    .loss = 1,
	    .accuracy = NAN,
	    .norm = 1};
}

static enum err
recode(const struct manifest *m)
{
	uint8_t data[MANIFEST_LEN];
	struct manifest out;

	manifest_encode(data, m);
	return manifest_decode(&out, data, sizeof(data), NULL);
}

#define EXPECT(result, field, value) \
	do { \
		struct manifest m_ = good(); \
		m_.field = value; \
		assert_int_equal(recode(&m_), result); \
	} while (0)

static void
contradictions(void **state)
{
	(void)state;
	EXPECT(ERR_OK, steps, 1);
	EXPECT(ERR_OK, examples, 0);
	EXPECT(ERR_INVALID, steps, 0);
	EXPECT(ERR_INVALID, elements, 0);
	EXPECT(ERR_INVALID, payload_bytes, 0);
	EXPECT(ERR_OK, payload_bytes, MANIFEST_PAYLOAD_MAX);
	EXPECT(ERR_LIMIT, payload_bytes, MANIFEST_PAYLOAD_MAX + 1);
	EXPECT(ERR_INVALID, flags, MANIFEST_REPORT);
	EXPECT(ERR_INVALID, report_hash[31], 1);
	EXPECT(ERR_INVALID, optimizer, 3);
	EXPECT(ERR_OK, optimizer, MANIFEST_EXTERNAL);
	EXPECT(ERR_OK, codec, 999);
}

static void
numbers(void **state)
{
	(void)state;
	EXPECT(ERR_INVALID, normaliser, NAN);
	EXPECT(ERR_INVALID, normaliser, -1);
	EXPECT(ERR_INVALID, normaliser, INFINITY);
	EXPECT(ERR_OK, normaliser, 0);
	EXPECT(ERR_INVALID, norm, NAN);
	EXPECT(ERR_INVALID, norm, -1);
	EXPECT(ERR_INVALID, norm, INFINITY);
	EXPECT(ERR_INVALID, loss, NAN);
	EXPECT(ERR_INVALID, loss, -INFINITY);
	EXPECT(ERR_OK, loss, -3);
	EXPECT(ERR_OK, accuracy, 1);
	EXPECT(ERR_INVALID, accuracy, 1.5f);
	EXPECT(ERR_INVALID, accuracy, -0.5f);
	EXPECT(ERR_INVALID, accuracy, INFINITY);
}

static void
body_lengths(void **state)
{
	(void)state;
	assert_int_equal(manifest_chunks(1), 1);
	assert_int_equal(manifest_chunks(MANIFEST_CHUNK), 1);
	assert_int_equal(manifest_chunks(MANIFEST_CHUNK + 1), 2);
	assert_int_equal(manifest_body_bytes(4), 36);
	assert_int_equal(manifest_body_bytes(3 * MANIFEST_CHUNK), 3 * MANIFEST_CHUNK + 96);
	assert_true(manifest_body_bytes(MANIFEST_PAYLOAD_MAX) > MANIFEST_PAYLOAD_MAX);
}

static void
receipt_vector(void **state)
{
	(void)state;
	uint8_t data[RECEIPT_LEN], again[RECEIPT_LEN];
	struct receipt r;

	vector_file("tests/vectors/receipt.hex", data, sizeof(data));
	assert_int_equal(manifest_receipt_decode(&r, data, sizeof(data), NULL), ERR_OK);
	assert_run(r.job, 16, 0x10);
	assert_true(r.round == 0x0102030405060708);
	assert_run(r.manifest_hash, 32, 0x20);
	assert_true(r.accepted_at_ms == 1700000000000);
	assert_int_equal(r.incarnation, 3);
	assert_run(r.signature, 64, 0xb0);
	manifest_receipt_encode(again, &r);
	assert_memory_equal(again, data, sizeof(data));
}

static void
receipt_refused(void **state)
{
	(void)state;
	uint8_t data[RECEIPT_LEN];
	struct receipt r;

	vector_file("tests/vectors/receipt.hex", data, sizeof(data));
	for (size_t len = 0; len < RECEIPT_LEN; len++) {
		struct flush f = flush_new(data, len);
		assert_int_equal(manifest_receipt_decode(&r, f.data, len, NULL), ERR_INVALID);
		flush_free(&f);
	}
	for (size_t i = 0; i < RECEIPT_LEN; i++) {
		bool fixed = i < 8 || (i >= 80 && i < 96);
		data[i] ^= 0x10;
		assert_int_equal(manifest_receipt_decode(&r, data, sizeof(data), NULL),
		    fixed ? ERR_INVALID : ERR_OK);
		data[i] ^= 0x10;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(vector_fields),
	    cmocka_unit_test(wrong_length),
	    cmocka_unit_test(head_bits),
	    cmocka_unit_test(reserved_flags),
	    cmocka_unit_test(evaluation_vector),
	    cmocka_unit_test(evaluation_bits),
	    cmocka_unit_test(contradictions),
	    cmocka_unit_test(numbers),
	    cmocka_unit_test(body_lengths),
	    cmocka_unit_test(receipt_vector),
	    cmocka_unit_test(receipt_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
