/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "spoken.h"

static void
test_read(void **state)
{
	static const struct {
		const char *line;
		enum spoken_kind kind;
		const char *task;
	} good[] = {
	    {"{\"ready\": true}", SPOKEN_READY, ""},
	    {"{\"ready\": true, \"done_before\": 3}\r", SPOKEN_READY, ""},
	    {"{\"ready\": false}", SPOKEN_OTHER, ""},
	    {"{\"progress\": 0.5}", SPOKEN_OTHER, ""},
	    {"{}", SPOKEN_OTHER, ""},
	    {"{\"done\": \"0123456789abcdef0123456789abcdef\", \"loss\": 1}", SPOKEN_DONE,
		"0123456789abcdef0123456789abcdef"},
	    /* Cut, and still no other task's id. */
	    {"{\"done\": \"0123456789abcdef0123456789abcdef000\"}", SPOKEN_DONE,
		"0123456789abcdef0123456789abcdef0"},
	    {"{\"done\": \"\"}", SPOKEN_DONE, ""},
	};
	static const char *const bad[] = {"", " ", "hello", "[]", "7", "\"ready\"", "null",
	    "{\"ready\": 1}", "{\"done\": 7}", "{\"done\": null}", "{\"done\": {}}",
	    "{\"ready\": true", "{\"ready\": true}{}", "{\"done\": \"\xff\"}"};
	struct spoken said;
	struct why why;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(
		    spoken_read(&said, good[i].line, strlen(good[i].line), &why), ERR_OK);
		assert_int_equal(said.kind, good[i].kind);
		assert_string_equal(said.task, good[i].task);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		why.text[0] = '\0';
		if (!spoken_read(&said, bad[i], strlen(bad[i]), &why) || !why.text[0])
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(said.kind, SPOKEN_OTHER);
	}
}

static void
test_write(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, SPOKEN_MAX);
	assert_int_equal(spoken_task(&b, "12", "train", "/a \"b\"\n"), ERR_OK);
	assert_int_equal(spoken_finish(&b, "12"), ERR_OK);
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
