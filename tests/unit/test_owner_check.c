/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backoff.h"
#include "confine.h"
#include "file.h"
#include "owner_check.h"

static char home[] = "/tmp/rivulet.check.XXXXXX";

/* The answer of a program of the shell's. */
static bool
ask(const char *script, char said[VERDICT_TEXT_MAX])
{
	char path[64], text[256];
	struct settings *s = NULL;
	struct why why = {""};

	/* Beside the home: in it, it could not be read. */
	snprintf(path, sizeof(path), "%s.sh", home);
	assert_int_equal(file_write(path, script, strlen(script), 0755, &why), ERR_OK);
	int len = snprintf(text, sizeof(text), "[eligibility]\ncheck = /bin/sh %s\n", path);
	assert_int_equal(settings_parse(&s, "test", text, (size_t)len, &why), ERR_OK);
	struct owner_check c = {.settings = s, .home = home};
	snprintf(said, VERDICT_TEXT_MAX, "nothing yet");
	bool yes = owner_check_ask(&c, said);
	settings_free(s);
	unlink(path);
	return yes;
}

static void
yes_and_no(void **state)
{
	static const struct {
		const char *script;
		bool yes;
		const char *said;
	} all[] = {
	    {"exit 0", true, ""}, {"echo fine", true, "fine"}, {"exit 1", false, ""},
	    {"echo lab-in-use; echo more; exit 3", false, "lab-in-use"},
	    {"printf 'two words\\033[1m'; exit 1", false, "two words?[1m"},
	    {"echo no >&2; exit 1", false, ""}, {"kill -9 $$", false, ""},
	    {"yes; exit 0", false, "y"}, /* it never stops: too much is no */
	};
	char said[VERDICT_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (ask(all[i].script, said) != all[i].yes || strcmp(said, all[i].said) != 0)
			fail_msg("%s: \"%s\"", all[i].script, said);
	}
}

static void
hanging_is_no(void **state)
{
	char said[VERDICT_TEXT_MAX];
	double began = backoff_now();

	(void)state;
	assert_false(ask("trap '' TERM; sleep 60 & wait; sleep 60", said));
	assert_string_equal(said, "it does not come to an end");
	assert_true(backoff_now() - began >= OWNER_CHECK_S);
	assert_true(backoff_now() - began < 40);
}

static void
not_there_is_no(void **state)
{
	struct settings *s = NULL;
	struct why why = {""};
	char said[VERDICT_TEXT_MAX] = "";
	static const char text[] = "[eligibility]\ncheck = \"/bin/sh 'open\"\n";

	(void)state;
	assert_int_equal(settings_parse(&s, "test", text, strlen(text), &why), ERR_OK);
	struct owner_check c = {.settings = s, .home = home};
	assert_false(owner_check_ask(&c, said));
	assert_true(*said);
	settings_free(s);
}

static void
it_is_confined(void **state)
{
	char path[64], script[128], said[VERDICT_TEXT_MAX];

	(void)state;
	if (confine_version() == 0)
		skip();
	snprintf(path, sizeof(path), "%s/key.pem", home);
	assert_int_equal(file_write(path, "secret\n", 7, 0600, NULL), ERR_OK);
	snprintf(script, sizeof(script), "cat %s || { echo kept-out; exit 1; }", path);
	assert_false(ask(script, said));
	assert_string_equal(said, "kept-out");
	snprintf(script, sizeof(script), "echo x >%s.mark || { echo no-writing; exit 1; }", home);
	assert_false(ask(script, said));
	assert_string_equal(said, "no-writing");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(yes_and_no),
	    cmocka_unit_test(hanging_is_no),
	    cmocka_unit_test(not_there_is_no),
	    cmocka_unit_test(it_is_confined),
	};

	if (!mkdtemp(home))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	return file_remove_dir(home, NULL) ? 1 : failed;
}
