/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "wait_reason.h"

static void
every_name_leads_back(void **state)
{
	(void)state;
	for (enum wait_reason r = WAIT_NONE; r < WAIT_UNKNOWN; r++)
		assert_int_equal(wait_reason_find(wait_reason_name(r)), r);
	assert_int_equal(wait_reason_find("a-later-word"), WAIT_UNKNOWN);
	assert_int_equal(wait_reason_find("Paused"), WAIT_UNKNOWN);
	assert_string_equal(wait_reason_name(WAIT_UNKNOWN), "");
}

/* What stands in first columns of the first table behind a heading: `word`, or several of them. */
static size_t
expect_words(const char *file, const char *before, enum wait_reason from)
{
	char *text = NULL, quoted[64];
	size_t len, found = 0;

	assert_int_equal(file_read(file, 1u << 20, &text, &len, NULL), ERR_OK);
	char *table = strstr(text, before);
	assert_non_null(table);
	table = strstr(table, "\n|---");
	assert_non_null(table);
	*strstr(table, "\n\n") = '\0';
	for (enum wait_reason r = from; r < WAIT_UNKNOWN; r++) {
		snprintf(quoted, sizeof(quoted), "`%s`", wait_reason_name(r));
		if (!strstr(table, quoted))
			fail_msg("%s does not explain %s", file, quoted);
		found++;
	}
	free(text);
	return found;
}

static void
documented(void **state)
{
	(void)state;
	assert_int_equal(expect_words("docs/operators.md", "\n| reason | why | what to do |", 1),
	    WAIT_UNKNOWN - 1);
	assert_int_equal(
	    expect_words("docs/api.md", "Reasons for not being ready", WAIT_SPOOL_FULL),
	    WAIT_UNKNOWN - WAIT_SPOOL_FULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_name_leads_back),
	    cmocka_unit_test(documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
