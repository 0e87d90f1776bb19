/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "json.h"
#include "print.h"
#include "shown.h"
#include "tensor.h"

/* What steers a terminal, and what only looks strange. */
#define STEERS \
	"\x1b[2J", "a\rb", "\x7f", \
	    "\xc2\x9b" \
	    "2J", \
	    "\xe2\x80\xae" \
	    "txt", \
	    "\xe2\x81\xa6" \
	    "x", \
	    "\xe2\x80\x8f", "\xd8\x9c", "\xe2\x80\xa8", \
	    "\x9b" \
	    "2J", \
	    "\xc2"
static const char *const steers[] = {STEERS};
static const char strange[] = "na\xc3\xafve \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x9a\x80";

static char printed[4096], path[64];
static int stdout_was;

static void
begin(void)
{
	fflush(stdout);
	stdout_was = dup(STDOUT_FILENO);
	snprintf(path, sizeof(path), "/tmp/test_print.%d", (int)getpid());
	assert_non_null(freopen(path, "w", stdout));
}

static const char *
end(void)
{
	fflush(stdout);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	size_t n = fread(printed, 1, sizeof(printed) - 1, f);
	printed[n] = '\0';
	fclose(f);
	dup2(stdout_was, STDOUT_FILENO);
	close(stdout_was);
	unlink(path);
	return printed;
}

static void
is_harmless(const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		size_t n = *text == '\n' ? 1 : shown_char(text, left);
		if (n == 0)
			fail_msg("%zu bytes before the end: 0x%02x", left, (unsigned char)*text);
		text += n;
		left -= n;
	}
}

static void
tables_and_lines(void **state)
{
	static const char *const heads[] = {"NAME"};
	struct cmd_table t;

	(void)state;
	begin();
	cmd_print_start(&t, heads, 1);
	for (size_t i = 0; i < sizeof(steers) / sizeof(*steers); i++)
		cmd_print_cell(&t, "%s", steers[i]);
	cmd_print_cell(&t, "%s", strange);
	cmd_print_end(&t);
	for (size_t i = 0; i < sizeof(steers) / sizeof(*steers); i++)
		cmd_print_line("reason: %s", steers[i]);
	cmd_print_line("two\nlines %s", strange);
	is_harmless(end());
	assert_non_null(strstr(printed, strange));
	assert_non_null(strstr(printed, "?[2J\n"));
	assert_non_null(strstr(printed, "two?lines"));
}

static void
said(void **state)
{
	int was = dup(STDERR_FILENO);

	(void)state;
	begin();
	dup2(STDOUT_FILENO, STDERR_FILENO);
	for (size_t i = 0; i < sizeof(steers) / sizeof(*steers); i++)
		cmd_print_said(steers[i]);
	cmd_print_said("\none\n");
	cmd_print_said(strange);
	cmd_print_said("\n\n");
	dup2(was, STDERR_FILENO);
	close(was);
	is_harmless(end());
	assert_non_null(strstr(printed, "\none\n"));
	assert_non_null(strstr(printed, strange));
}

/* The same text for who parses it. */
/* A time that a wrong clock noted is no age. */
static void
ages(void **state)
{
	static const char *const heads[] = {"A", "B", "C", "D"};
	struct json *v = json_object();
	struct cmd_table t;

	(void)state;
	json_add_double(v, "past", clock_wall() - 300);
	json_add_double(v, "ahead", clock_wall() + 400 * 86400.0);
	begin();
	cmd_print_start(&t, heads, 4);
	cmd_print_age(&t, v, "past");
	cmd_print_age(&t, v, "ahead");
	cmd_print_until(&t, v, "ahead");
	cmd_print_age(&t, v, "never");
	cmd_print_end(&t);
	char past[8], ahead[8], until[8], never[8];
	assert_int_equal(
	    sscanf(end(), "%*s %*s %*s %*s %7s %7s %7s %7s", past, ahead, until, never), 4);
	assert_string_equal(past, "5m");
	assert_string_equal(ahead, "ahead");
	assert_string_equal(until, "400d");
	assert_string_equal(never, "-");
	json_free(v);
}

static void
rows(void **state)
{
	static const struct cmd_column columns[] = {
	    {"NAME", cmd_print_text, .key = "name", .most = 4},
	    {"LOSS", cmd_print_figure, .in = "metric", .key = "loss"},
	    {"N", cmd_print_count, .key = "n"},
	    {.head = NULL},
	};
	static const char text[] =
	    "[{\"name\": \"abcde\", \"metric\": {\"loss\": 0.5}}, {\"name\": \"abcd\", \"n\": 7}]";
	struct json *v = NULL;

	(void)state;
	assert_int_equal(json_parse(&v, text, sizeof(text) - 1, NULL), ERR_OK);
	begin();
	cmd_print_rows(columns, v);
	cmd_print_rows(columns, NULL);
	assert_string_equal(end(),
	    "NAME    LOSS  N\n"
	    "abc~  0.5000  -\n"
	    "abcd       -  7\n"
	    "NAME  LOSS  N\n");
	json_free(v);
}

/* A figure that somebody else reports is no wider than its column, whatever it is. */
static void
figures(void **state)
{
	static const char *const heads[] = {"LOSS"};
	static const double values[] = {0.71741, 999999.5, -1e300, 1234567};
	struct cmd_table t;

	(void)state;
	begin();
	cmd_print_start(&t, heads, 1);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		struct json *v = json_object();
		json_add_double(v, "loss", values[i]);
		cmd_print_figure(&t, v, "loss");
		json_free(v);
	}
	cmd_print_figure(&t, NULL, "loss");
	cmd_print_end(&t);
	assert_string_equal(end(),
	    "       LOSS\n"
	    "     0.7174\n"
	    "999999.5000\n"
	    "    -1e+300\n"
	    "  1.235e+06\n"
	    "          -\n");
}

static void
json(void **state)
{
	struct json *v = json_array(), *back = NULL;
	size_t count = sizeof(steers) / sizeof(*steers) - 2; /* but for malformed UTF-8 */

	(void)state;
	for (size_t i = 0; i < count; i++)
		json_push(v, json_new_string(steers[i]));
	json_push(v, json_new_string(strange));
	begin();
	cmd_print_json(v);
	is_harmless(end());
	assert_non_null(strstr(printed, strange));
	assert_int_equal(json_parse(&back, printed, strlen(printed), NULL), ERR_OK);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(json_string(json_at(back, i)), steers[i]);
	json_free(back);
	json_free(v);
}

/* The names in a model file are others' text, too. */
static void
tensor_names(void **state)
{
	const uint64_t shape[] = {2};
	struct tensor t;
	struct why why;

	(void)state;
	for (size_t i = 0; i < sizeof(steers) / sizeof(*steers); i++)
		assert_int_equal(
		    tensor_init(&t, steers[i], TENSOR_F32, shape, 1, &why), ERR_INVALID);
	assert_int_equal(tensor_init(&t, strange, TENSOR_F32, shape, 1, &why), ERR_OK);
}

static void
cleaned(void **state)
{
	char text[] = "a\x1b"
		      "b\xc2\x9b"
		      "c\xff";

	(void)state;
	assert_false(shown_is(text));
	shown_clean(text);
	assert_string_equal(text, "a?b??c?");
	assert_true(shown_is(text));
	assert_true(shown_is(strange) && shown_is(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tables_and_lines),
	    cmocka_unit_test(said),
	    cmocka_unit_test(ages),
	    cmocka_unit_test(rows),
	    cmocka_unit_test(figures),
	    cmocka_unit_test(json),
	    cmocka_unit_test(tensor_names),
	    cmocka_unit_test(cleaned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
