/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "protocol.h"

static void
test_read(void **state)
{
	static const struct {
		const char *line;
		enum protocol_kind kind;
		const char *task;
	} good[] = {
	    {"{\"ready\": true}", PROTOCOL_READY, ""},
	    {"{\"ready\": true, \"done_before\": 3}\r", PROTOCOL_READY, ""},
	    {"{\"ready\": false}", PROTOCOL_OTHER, ""},
	    {"{\"progress\": 0.5}", PROTOCOL_OTHER, ""},
	    {"{}", PROTOCOL_OTHER, ""},
	    {"{\"done\": \"0123456789abcdef0123456789abcdef\", \"loss\": 1}", PROTOCOL_DONE,
		"0123456789abcdef0123456789abcdef"},
	    /* Cut, and still no other task's id. */
	    {"{\"done\": \"0123456789abcdef0123456789abcdef000\"}", PROTOCOL_DONE,
		"0123456789abcdef0123456789abcdef0"},
	    {"{\"done\": \"\"}", PROTOCOL_DONE, ""},
	};
	static const char *const bad[] = {"", " ", "hello", "[]", "7", "\"ready\"", "null",
	    "{\"ready\": 1}", "{\"done\": 7}", "{\"done\": null}", "{\"done\": {}}",
	    "{\"ready\": true", "{\"ready\": true}{}", "{\"done\": \"\xff\"}"};
	struct protocol_line said;
	struct why why;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(
		    protocol_read(&said, good[i].line, strlen(good[i].line), &why), ERR_OK);
		assert_int_equal(said.kind, good[i].kind);
		assert_string_equal(said.task, good[i].task);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		why.text[0] = '\0';
		if (!protocol_read(&said, bad[i], strlen(bad[i]), &why) || !why.text[0])
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(said.kind, PROTOCOL_OTHER);
	}
}

static void
test_write(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, PROTOCOL_MAX);
	assert_int_equal(protocol_task(&b, "12", "train", "/a \"b\"\n"), ERR_OK);
	assert_int_equal(protocol_finish(&b, "12"), ERR_OK);
	assert_string_equal(buf_str(&b),
	    "{\"task\":\"12\",\"kind\":\"train\",\"directory\":\"/a \\\"b\\\"\\n\"}\n"
	    "{\"finish\":\"12\"}\n");
	buf_deinit(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_read),
	    cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
