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
#include "problem.h"

static void
every_word_leads_back(void **state)
{
	char type[96];

	(void)state;
	for (enum problem_type t = PROBLEM_NONE + 1; t < PROBLEM_UNKNOWN; t++) {
		snprintf(type, sizeof(type), "urn:rivulet:error:%s", problem_word(t));
		assert_int_equal(problem_find(type), t);
		assert_true(problem_title(t)[0] != '\0');
	}
}

static void
other_types(void **state)
{
	(void)state;
	assert_int_equal(problem_find(""), PROBLEM_NONE);
	assert_int_equal(problem_find("about:blank"), PROBLEM_NONE);
	assert_int_equal(problem_find("urn:rivulet:error:"), PROBLEM_NONE);
	assert_int_equal(problem_find("urn:rivulet:error:a-later-word"), PROBLEM_UNKNOWN);
	assert_int_equal(problem_find("urn:rivulet:error:Stale-Round"), PROBLEM_UNKNOWN);
	assert_int_equal(problem_find("stale-round"), PROBLEM_STALE_ROUND);
	assert_string_equal(problem_word(PROBLEM_NONE), "");
	assert_string_equal(problem_word(PROBLEM_UNKNOWN), "");
	assert_int_equal(problem_status(PROBLEM_UNKNOWN), 500);
}

/* The table of wire/FORMAT.md: the same words with the same status, in the same order. */
static void
documented(void **state)
{
	char *text = NULL, word[64];
	size_t len;
	unsigned status;

	(void)state;
	assert_int_equal(file_read("wire/FORMAT.md", 1u << 20, &text, &len, NULL), ERR_OK);
	const char *at = strstr(text, "## Problem types");
	assert_non_null(at);
	for (enum problem_type t = PROBLEM_NONE + 1; t < PROBLEM_UNKNOWN; t++) {
		at = strstr(at, "\n| `");
		assert_non_null(at);
		assert_int_equal(sscanf(at, "\n| `%63[a-z-]` | %u |", word, &status), 2);
		assert_string_equal(word, problem_word(t));
		assert_int_equal(status, problem_status(t));
		at++;
	}
	assert_null(strstr(at, "\n| `"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_word_leads_back),
	    cmocka_unit_test(other_types),
	    cmocka_unit_test(documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
