#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "admin.h"
#include "options.h"

static const char *name, *file;
static bool json;
static const struct cmd_option table[] = {
    {"name", 0, "NAME", "a name", &name, NULL},
    {"output", 'o', "FILE", "a file", &file, NULL},
    {"json", 'j', NULL, "a flag", NULL, &json},
    {NULL, 0, NULL, NULL, NULL, NULL},
};

static enum err
parse(struct cmd_words *words, struct why *why, const char **argv)
{
	int argc = 0;

	name = file = NULL;
	json = false;
	while (argv[argc])
		argc++;
	return cmd_options_parse(words, table, argc, (char **)(uintptr_t)argv, why);
}
#define PARSE(...) parse(&words, &why, (const char *[]){"cmd", __VA_ARGS__, NULL})

static void
test_forms(void **state)
{
	struct cmd_words words;
	struct why why;

	(void)state;
	assert_int_equal(PARSE("one", "--name", "x", "-o", "f", "--json", "two"), ERR_OK);
	assert_string_equal(name, "x");
	assert_string_equal(file, "f");
	assert_true(json);
	assert_int_equal(words.count, 2);
	assert_string_equal(words.words[1], "two");
	assert_int_equal(PARSE("--name=a=b", "--output="), ERR_OK);
	assert_string_equal(name, "a=b");
	assert_string_equal(file, "");
	assert_int_equal(PARSE("-", "-j", "--", "--name", "-o"), ERR_OK);
	assert_true(json);
	assert_null(name);
	assert_int_equal(words.count, 3);
	assert_string_equal(words.words[0], "-");
	assert_string_equal(words.words[2], "-o");
}

static void
test_wrong(void **state)
{
	struct cmd_words words;
	struct why why;

	(void)state;
	assert_int_equal(PARSE("--nam", "x"), ERR_INVALID);
	assert_non_null(strstr(why.text, "--nam"));
	assert_int_equal(PARSE("--named", "x"), ERR_INVALID);
	assert_int_equal(PARSE("-x"), ERR_INVALID);
	assert_int_equal(PARSE("-oj"), ERR_INVALID);
	assert_int_equal(PARSE("--name"), ERR_INVALID);
	assert_non_null(strstr(why.text, "wants a value"));
	assert_int_equal(PARSE("--json=yes"), ERR_INVALID);
	const char *many[CMD_OPTIONS_WORDS_MAX + 3];
	static char word[] = "w";
	for (size_t i = 0; i < CMD_OPTIONS_WORDS_MAX + 2; i++)
		many[i] = word;
	many[CMD_OPTIONS_WORDS_MAX + 2] = NULL;
	assert_int_equal(parse(&words, &why, many), ERR_INVALID);
}

/* All values of one option, as the parser takes them: not those of others, nor what stands behind "--". */
static void
test_all(void **state)
{
	static const char *const argv[] = {"cmd", "--name", "a", "-o", "--name", "-", "--name=b=c",
	    "-j", "--name", "--json", "--", "--name", "d"};
	static const char *const wanted[] = {"a", "b=c", "--json"};
	struct cmd_words values;
	struct why why;

	(void)state;
	assert_int_equal(cmd_options_all(&values, table, "name", sizeof(argv) / sizeof(argv[0]),
			     (char **)(uintptr_t)argv, &why),
	    ERR_OK);
	assert_int_equal(values.count, 3);
	for (size_t i = 0; i < values.count; i++)
		assert_string_equal(values.words[i], wanted[i]);
	assert_int_equal(
	    cmd_options_all(&values, table, "output", 4, (char **)(uintptr_t)&argv[3], &why),
	    ERR_OK);
	assert_int_equal(values.count, 0);
}

static void
test_duration(void **state)
{
	static const char *const wrong[] = {
	    "", "h", "0", "-1h", "1.5h", "1w", "1hh", "99999999999999999d"};
	uint64_t s;

	(void)state;
	assert_true(cmd_admin_duration("90", &s) && s == 90);
	assert_true(cmd_admin_duration("15m", &s) && s == 900);
	assert_true(cmd_admin_duration("24h", &s) && s == 86400);
	assert_true(cmd_admin_duration("7d", &s) && s == 604800);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(cmd_admin_duration(wrong[i], &s));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_forms),
	    cmocka_unit_test(test_wrong),
	    cmocka_unit_test(test_all),
	    cmocka_unit_test(test_duration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
