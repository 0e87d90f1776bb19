/* stages: gcc openssl address */
/* Which offsets of a coordinator are believed. The rest of upload.c is shown by tests/e2e/331-resume-device.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "../../client/device/upload.c"

static void
offsets(void **state)
{
	const uint64_t payload = 3 * (uint64_t)MANIFEST_CHUNK + 5, leaves = 4 * HASH_LEN;
	struct outbox_entry *entry = calloc(1, sizeof(*entry));

	(void)state;
	assert_non_null(entry);
	entry->manifest.payload_bytes = payload;
	entry->body_bytes = manifest_body_bytes(payload);
	for (uint64_t k = 0; k <= 3; k++) {
		assert_true(sane(entry, leaves + k * MANIFEST_CHUNK));
		assert_false(sane(entry, leaves + k * MANIFEST_CHUNK + 1));
		assert_false(sane(entry, leaves + k * MANIFEST_CHUNK - 1));
	}
	assert_false(sane(entry, 0));
	assert_false(sane(entry, leaves - MANIFEST_CHUNK));
	assert_false(sane(entry, leaves + 4 * (uint64_t)MANIFEST_CHUNK));
	assert_false(sane(entry, entry->body_bytes));
	assert_false(sane(entry, INT64_MAX));
	/* Whole chunks alone: the end is no offset to go on from. */
	entry->manifest.payload_bytes = MANIFEST_CHUNK;
	entry->body_bytes = manifest_body_bytes(MANIFEST_CHUNK);
	assert_true(sane(entry, HASH_LEN));
	assert_false(sane(entry, entry->body_bytes));
	free(entry);
}

static void
disagreement(void **state)
{
	static const struct {
		long status;
		const char *type;
		bool is;
	} all[] = {{409, "urn:rivulet:error:wrong-offset", true},
	    {409, "urn:rivulet:error:used-task", false},
	    {400, "urn:rivulet:error:wrong-offset", false}, {409, "", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct transport_answer a = {.status = all[i].status};
		buf_init(&a.body, 1000);
		assert_int_equal(
		    buf_printf(&a.body, "{\"type\":\"%s\",\"title\":\"t\",\"status\":%ld}",
			all[i].type, all[i].status),
		    ERR_OK);
		assert_int_equal(disagrees(&a), all[i].is);
		buf_deinit(&a.body);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(offsets), cmocka_unit_test(disagreement)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
