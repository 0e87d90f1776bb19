/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "flush.h"
#include "spoolfile.h"

static struct spoolfile
sample(bool sealed)
{
	struct manifest m = {
	    .round = 3, .payload_bytes = 40, .elements = 10, .examples = 1, .steps = 1};
	struct spoolfile s = {.sealed = sealed};

	manifest_encode(s.manifest, &m);
	memset(s.tag, 9, sizeof(s.tag));
	if (sealed) {
		memset(s.nonce, 5, sizeof(s.nonce));
		memset(s.key_id, 6, sizeof(s.key_id));
	}
	return s;
}

static void
there_and_back(void **state)
{
	(void)state;
	for (int sealed = 0; sealed < 2; sealed++) {
		struct spoolfile in = sample(sealed), out;
		uint8_t head[SPOOLFILE_HEAD], again[SPOOLFILE_HEAD];
		spoolfile_encode(head, &in);
		assert_int_equal(spoolfile_decode(&out, head, sizeof(head), NULL), ERR_OK);
		spoolfile_encode(again, &out);
		assert_memory_equal(head, again, sizeof(head));
		assert_int_equal(out.sealed, sealed);
		assert_memory_equal(out.manifest, in.manifest, MANIFEST_LEN);
		/* The places of FORMAT.md. */
		assert_memory_equal(head, "RVS1\x01\x00\x00\x02", 8);
		assert_int_equal(head[8], sealed);
		assert_int_equal(head[12], sealed ? 5 : 0);
		assert_int_equal(head[24], sealed ? 6 : 0);
		assert_memory_equal(head + 32, "RVD1", 4);
		assert_int_equal(head[480], 9);
	}
}

/* One byte of a good head is changed. */
static enum err
changed(bool sealed, size_t at, uint8_t to)
{
	struct spoolfile s = sample(sealed);
	uint8_t head[SPOOLFILE_HEAD];

	spoolfile_encode(head, &s);
	head[at] = to;
	return spoolfile_decode(&s, head, sizeof(head), NULL);
}

static void
refused(void **state)
{
	(void)state;
	assert_int_equal(changed(false, 0, 'X'), ERR_INVALID);
	assert_int_equal(changed(false, 4, 0), ERR_INVALID);
	assert_int_equal(changed(false, 4, 2), ERR_UNSUPPORTED);
	assert_int_equal(changed(false, 6, 1), ERR_INVALID);
	assert_int_equal(changed(false, 8, 2), ERR_INVALID);
	assert_int_equal(changed(false, 11, 1), ERR_INVALID);
	assert_int_equal(changed(false, 12, 1), ERR_INVALID);
	assert_int_equal(changed(false, 31, 1), ERR_INVALID);
	assert_int_equal(changed(true, 31, 1), ERR_OK);
	assert_int_equal(changed(true, 32, 'X'), ERR_INVALID);
	for (size_t at = 352; at < 480; at++)
		assert_int_equal(changed(true, at, 1), ERR_INVALID);
	assert_int_equal(changed(true, 480, 1), ERR_OK);
}

static void
lengths(void **state)
{
	struct spoolfile s = sample(true);
	uint8_t head[SPOOLFILE_HEAD + 1];

	(void)state;
	spoolfile_encode(head, &s);
	head[SPOOLFILE_HEAD] = 0;
	for (size_t len = 0; len <= sizeof(head); len++) {
		struct flush f = flush_new(head, len);
		assert_int_equal(spoolfile_decode(&s, f.data, len, NULL),
		    len == SPOOLFILE_HEAD ? ERR_OK : ERR_INVALID);
		flush_free(&f);
	}
	assert_int_equal(spoolfile_bytes(1), 512 + 32 + 1);
	assert_int_equal(spoolfile_bytes((1 << 20) + 1), 512 + 64 + (1 << 20) + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(there_and_back),
	    cmocka_unit_test(refused),
	    cmocka_unit_test(lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
