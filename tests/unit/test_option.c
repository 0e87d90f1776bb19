/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "option.h"

static const char *name, *file;
static bool json;
static const struct option_entry table[] = {
    {"name", 0, "NAME", "a name", &name, NULL},
    {"output", 'o', "FILE", "a file", &file, NULL},
    {"json", 'j', NULL, "a flag", NULL, &json},
    {NULL, 0, NULL, NULL, NULL, NULL},
};

static enum err
parse(struct option_words *words, struct why *why, const char **argv)
{
	int argc = 0;

	name = file = NULL;
	json = false;
	while (argv[argc])
		argc++;
	return option_parse(words, table, argc, (char **)(uintptr_t)argv, why);
}
#define PARSE(...) parse(&words, &why, (const char *[]){"cmd", __VA_ARGS__, NULL})

static void
test_forms(void **state)
{
	struct option_words words;
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
	struct option_words words;
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
	const char *many[OPTION_WORDS_MAX + 3];
	static char word[] = "w";
	for (size_t i = 0; i < OPTION_WORDS_MAX + 2; i++)
		many[i] = word;
	many[OPTION_WORDS_MAX + 2] = NULL;
	assert_int_equal(parse(&words, &why, many), ERR_INVALID);
}

/* All values of one option, as the parser takes them: not those of others, nor what stands behind "--". */
static void
test_all(void **state)
{
	static const char *const argv[] = {"cmd", "--name", "a", "-o", "--name", "-", "--name=b=c",
	    "-j", "--name", "--json", "--", "--name", "d"};
	static const char *const wanted[] = {"a", "b=c", "--json"};
	struct option_words values;
	struct why why;

	(void)state;
	assert_int_equal(option_all(&values, table, "name", sizeof(argv) / sizeof(argv[0]),
			     (char **)(uintptr_t)argv, &why),
	    ERR_OK);
	assert_int_equal(values.count, 3);
	for (size_t i = 0; i < values.count; i++)
		assert_string_equal(values.words[i], wanted[i]);
	assert_int_equal(
	    option_all(&values, table, "output", 4, (char **)(uintptr_t)&argv[3], &why), ERR_OK);
	assert_int_equal(values.count, 0);
}

/* Options of a program stand before its command, whose own are not looked at. */
static void
test_head(void **state)
{
	static const char *const argv[] = {"cmd", "-o", "f", "--json", "word", "--unknown"};
	char **args = (char **)(uintptr_t)argv;
	struct why why = {""};
	int first = 0;

	(void)state;
	name = file = NULL;
	json = false;
	assert_int_equal(option_parse_head(&first, table, 6, args, &why), ERR_OK);
	assert_int_equal(first, 4);
	assert_true(json);
	assert_string_equal(file, "f");
	assert_int_equal(option_parse_head(&first, table, 4, args, &why), ERR_OK);
	assert_int_equal(first, 4);
	assert_int_equal(option_parse_head(&first, table, 1, args, &why), ERR_OK);
	assert_int_equal(first, 1);
	assert_int_equal(option_parse_head(&first, table, 2, args, &why), ERR_INVALID);
	assert_string_equal(why.text, "--output wants a value");
	assert_int_equal(option_parse_head(&first, table, 2, args + 4, &why), ERR_INVALID);
	assert_string_equal(why.text, "unknown option --unknown");
}

static const struct option_usage usage = {
    "cmd [--name NAME] WORD\n       prog cmd --json", "Does this.\nAnd that.", 1, 1};

static enum option_answer
ask(struct buf *text, const char **argv)
{
	struct option_words words;
	int argc = 0;

	while (argv[argc])
		argc++;
	buf_reset(text);
	return option_take(&words, "prog", table, &usage, argc, (char **)(uintptr_t)argv, text);
}
#define ASK(...) ask(&text, (const char *[]){"cmd", __VA_ARGS__, NULL})

static void
test_take(void **state)
{
	struct buf text;

	(void)state;
	buf_init(&text, OPTION_TEXT_MAX);
	assert_int_equal(ASK("--name", "x", "word"), OPTION_GO);
	assert_int_equal(text.len, 0);
	assert_int_equal(ASK("--name", "x"), OPTION_WRONG);
	assert_string_equal(buf_str(&text),
	    "prog: something is missing\nusage: prog cmd [--name NAME] WORD\n       prog cmd "
	    "--json\n");
	assert_int_equal(ASK("a", "b"), OPTION_WRONG);
	assert_non_null(strstr(buf_str(&text), "prog: \"b\" is too much\n"));
	assert_int_equal(ASK("--unknown", "--help"), OPTION_SHOW);
	assert_string_equal(buf_str(&text),
	    "usage: prog cmd [--name NAME] WORD\n       prog cmd --json\n\nDoes this.\nAnd "
	    "that.\n"
	    "      --name NAME            a name\n"
	    "  -o, --output FILE          a file\n"
	    "  -j, --json                 a flag\n");
	assert_int_equal(ASK("--", "--help"), OPTION_GO);
	buf_deinit(&text);
}

/* Completion and manual pages are made of this. */
#define CMD_LINES \
	"usage\tcmd\t\t\t\tcmd [--name NAME] WORD\n" \
	"usage\tcmd\t\t\t\tcmd --json\n" \
	"about\tcmd\t\t\t\tDoes this.\n" \
	"about\tcmd\t\t\t\tAnd that.\n" \
	"option\tcmd\tname\t\tNAME\ta name\n" \
	"option\tcmd\toutput\to\tFILE\ta file\n" \
	"option\tcmd\tjson\tj\t\ta flag\n" \
	"option\tcmd\thelp\th\t\tsay how it is called, and what its options are\n"

static void
test_query(void **state)
{
	struct option_query q;
	struct buf text;
	const char *path;

	(void)state;
	buf_init(&text, OPTION_TEXT_MAX);
	assert_int_equal(ASK(OPTION_QUERY), OPTION_SHOW);
	assert_string_equal(buf_str(&text), CMD_LINES);
	option_query_init(&q, "a b", "cmd");
	assert_true(option_is_query(&path, 2, q.argv));
	assert_string_equal(path, "a b cmd");
	assert_null(q.argv[2]);
	assert_int_equal(ASK(OPTION_QUERY "=x"), OPTION_SHOW);
	assert_non_null(strstr(buf_str(&text), "\noption\tx\tjson\tj\t\ta flag\n"));
	assert_int_equal(ASK(OPTION_QUERY "s"), OPTION_WRONG);
	assert_int_equal(ASK(OPTION_QUERY, "x"), OPTION_WRONG);
	buf_deinit(&text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_forms),
	    cmocka_unit_test(test_wrong),
	    cmocka_unit_test(test_all),
	    cmocka_unit_test(test_head),
	    cmocka_unit_test(test_take),
	    cmocka_unit_test(test_query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
