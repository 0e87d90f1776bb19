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
#include "record_event.h"

static void
every_name_leads_back(void **state)
{
	(void)state;
	for (enum record_event v = RECORD_UNKNOWN + 1; v < RECORD_EVENTS; v++)
		assert_int_equal(record_event_find(record_event_name(v)), v);
}

static void
other_words_are_unknown(void **state)
{
	static const char *const others[] = {"", "job", "job.stat", "job.states", "Refused"};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_int_equal(record_event_find(others[i]), RECORD_UNKNOWN);
	assert_string_equal(record_event_name(RECORD_UNKNOWN), "");
}

/* The table of bodies has a row, or its part of one, for each. */
static void
documented(void **state)
{
	char *text = NULL, quoted[64];
	size_t len;

	(void)state;
	assert_int_equal(file_read("wire/FORMAT.md", 1u << 20, &text, &len, NULL), ERR_OK);
	char *table = strstr(text, "\n| event | facts | details |");
	assert_non_null(table);
	*strstr(table, "\n\n") = '\0';
	for (enum record_event v = RECORD_UNKNOWN + 1; v < RECORD_EVENTS; v++) {
		snprintf(quoted, sizeof(quoted), "`%s`", record_event_name(v));
		if (!strstr(table, quoted))
			fail_msg("wire/FORMAT.md does not list %s", quoted);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_name_leads_back),
	    cmocka_unit_test(other_words_are_unknown),
	    cmocka_unit_test(documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
