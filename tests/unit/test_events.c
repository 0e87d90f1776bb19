/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "events.h"

static void
test_format(void **state)
{
	char line[256];

	(void)state;
	events_format(line, sizeof(line), "task.received",
	    EVENTS_PAIRS(EVENTS_S("job", "ab12"), EVENTS_U("round", 3), EVENTS_D("loss", 0.25)));
	assert_string_equal(line, "task.received job=ab12 round=3 loss=0.25");
	events_format(line, sizeof(line), "x",
	    EVENTS_PAIRS(EVENTS_S("a", "two words"), EVENTS_S("b", ""), EVENTS_S("c", NULL),
		EVENTS_S("d", "say \"hi\"\\"), EVENTS_S("e", "line\nnext\x1b[31m")));
	assert_string_equal(
	    line, "x a=\"two words\" b=\"\" c=\"\" d=\"say \\\"hi\\\"\\\\\" e=\"line next [31m\"");
}

static void
test_truncates(void **state)
{
	char line[12];

	(void)state;
	memset(line, 'z', sizeof(line));
	events_format(line, sizeof(line), "event", EVENTS_PAIRS(EVENTS_S("key", "a long value")));
	assert_string_equal(line, "event key=\"");
}

static int calls;

static void
sink(void *context, int level, const char *line)
{
	assert_ptr_equal(context, &calls);
	assert_int_equal(level, EVENTS_WARN);
	assert_string_equal(line, "it n=1");
	calls++;
}

static void
test_emit(void **state)
{
	const struct events ev = {.sink = sink, .context = &calls}, deaf = {.sink = NULL};

	(void)state;
	events_emit(&ev, EVENTS_WARN, "it", EVENTS_PAIRS(EVENTS_U("n", 1)));
	events_emit(&deaf, EVENTS_WARN, "it", EVENTS_PAIRS(EVENTS_U("n", 1)));
	assert_int_equal(calls, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_format),
	    cmocka_unit_test(test_truncates),
	    cmocka_unit_test(test_emit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
