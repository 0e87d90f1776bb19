/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abort_reason.h"
#include "file.h"

static void
every_name_leads_back(void **state)
{
	(void)state;
	for (enum abort_reason r = ABORT_NONE; r < ABORT_UNKNOWN; r++) {
		const char *name = abort_reason_name(r);
		assert_int_equal(abort_reason_find(name), r);
		struct abort_cause made = abort_reason_cause(r), read = abort_reason_parse(name);
		assert_memory_equal(&made, &read, sizeof(made));
		assert_string_equal(made.word, name);
	}
}

static void
unknown_words_are_kept(void **state)
{
	(void)state;
	struct abort_cause c = abort_reason_parse("lab-in-use");
	assert_int_equal(c.reason, ABORT_UNKNOWN);
	assert_string_equal(c.word, "lab-in-use");
	assert_int_equal(abort_reason_find("Deadline"), ABORT_UNKNOWN);
	assert_int_equal(abort_reason_find("deadlines"), ABORT_UNKNOWN);
	assert_string_equal(abort_reason_name(ABORT_UNKNOWN), "");
	c = abort_reason_parse("a-word-of-thirty-three-characters");
	assert_int_equal(c.reason, ABORT_UNKNOWN);
	assert_string_equal(c.word, "a-word-of-thirty-three-character");
}

static void
owners_words_are_the_same(void **state)
{
	(void)state;
	for (enum wait_reason r = WAIT_NONE; r <= WAIT_UNKNOWN; r++) {
		enum abort_reason a = abort_reason_of_owner(r);
		assert_int_equal(a != ABORT_NONE, wait_reason_is_owners(r));
		if (a)
			assert_string_equal(abort_reason_name(a), wait_reason_name(r));
		if (a)
			assert_true(abort_reason_passes(a));
	}
	assert_true(abort_reason_passes(ABORT_STOPPED));
	assert_false(abort_reason_passes(ABORT_DEADLINE));
	assert_false(abort_reason_passes(ABORT_UNKNOWN));
}

/* Of the rest each job has its share: a device without a disk, or that its owner lets rest, fails at any. */
static void
whose_fault(void **state)
{
	(void)state;
	static const enum err disk[] = {ERR_READONLY, ERR_IO, ERR_FILES};

	assert_int_equal(abort_reason_of_disk(ERR_NOSPACE), ABORT_DISK_FULL);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(abort_reason_of_disk(disk[i]), ABORT_DISK_FAILED);
	assert_int_equal(abort_reason_of_disk(ERR_CLOSED), ABORT_NONE);
	assert_false(abort_reason_is_jobs(ABORT_NONE));
	assert_false(abort_reason_is_jobs(ABORT_DISK_FULL));
	assert_false(abort_reason_is_jobs(ABORT_DISK_FAILED));
	assert_false(abort_reason_is_jobs(ABORT_STOPPED));
	assert_false(abort_reason_is_jobs(ABORT_HOT));
	assert_true(abort_reason_is_jobs(ABORT_TRAINER_FAILED));
	assert_true(abort_reason_is_jobs(ABORT_UNKNOWN));
}

/* The paragraph behind these words has every reason. */
static void
expect_words(const char *file, const char *before)
{
	char *text = NULL, quoted[64];
	size_t len;

	assert_int_equal(file_read(file, 1u << 20, &text, &len, NULL), ERR_OK);
	char *list = strstr(text, before);
	assert_non_null(list);
	char *end = strstr(list, "\n\n");
	if (end)
		*end = '\0';
	for (enum abort_reason r = ABORT_NONE + 1; r < ABORT_UNKNOWN; r++) {
		snprintf(quoted, sizeof(quoted), "`%s`", abort_reason_name(r));
		if (!strstr(list, quoted))
			fail_msg("%s does not list %s", file, quoted);
	}
	free(text);
}

static void
documented(void **state)
{
	(void)state;
	expect_words("wire/FORMAT.md", "**Abort** (");
	expect_words("docs/operators.md", "Reasons with which a device gives a task back");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_name_leads_back),
	    cmocka_unit_test(unknown_words_are_kept),
	    cmocka_unit_test(owners_words_are_the_same),
	    cmocka_unit_test(whose_fault),
	    cmocka_unit_test(documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
