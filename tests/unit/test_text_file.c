/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "flush.h"
#include "text_file.h"

/* What people write: marks, other encodings, line ends. */

static enum err
check(const char *text, size_t len, struct why *why)
{
	struct flush f = flush_new(text, len);
	enum err e = text_file_check(f.data, len, why);

	flush_free(&f);
	return e;
}

static void
encodings(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *name; /* NULL: it may be UTF-8 */
	} rows[] = {{"", 0, NULL}, {"a", 1, NULL}, {"ab", 2, NULL}, {"\xef\xbb\xbf", 3, NULL},
	    {"\xef\xbb", 2, NULL}, {"\xff", 1, NULL}, {"\xff\xfe", 2, "UTF-16"},
	    {"\xfe\xff", 2, "UTF-16"}, {"\xff\xfe\0", 3, "UTF-16"}, {"\xff\xfe\0\0", 4, "UTF-32"},
	    {"\0\0\xfe\xff", 4, "UTF-32"}, {"{\0}\0", 4, "UTF-16LE"}, {"\0{\0}", 4, "UTF-16BE"},
	    /* Bytes that are no text at all are somebody else's to judge. */
	    {"a\0", 2, NULL}, {"\0\0\0\0", 4, NULL}, {"ab\0\0cd", 6, NULL},
	    {"\x7f"
	     "ELF\2\1\1\0\0\0\0\0\0\0\0\0",
		16, NULL},
	    {"a\0bcdefghijk", 12, NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct why why = {""};
		char said[80];
		enum err e = check(rows[i].text, rows[i].len, &why);
		assert_int_equal(e, rows[i].name ? ERR_INVALID : ERR_OK);
		if (!rows[i].name)
			continue;
		snprintf(said, sizeof(said), "this is %s; UTF-8 is read, which \"iconv -f %s ",
		    rows[i].name, rows[i].name);
		assert_true(strncmp(why.text, said, strlen(said)) == 0);
	}
}

static void
reads(void **state)
{
	char dir[] = "/tmp/test_text_file.XXXXXX", path[64];
	char *text = NULL;
	size_t len = 0;
	struct why why = {""};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/f", dir);
	assert_int_equal(file_write(path, "\xef\xbb\xbfline\r\n", 9, 0644, NULL), ERR_OK);
	assert_int_equal(text_file_read(path, 9, &text, &len, &why), ERR_OK);
	assert_int_equal(len, 6);
	assert_string_equal(text, "line\r\n");
	free(text);
	assert_int_equal(file_write(path,
			     "\xff\xfe"
			     "a\0",
			     4, 0644, NULL),
	    ERR_OK);
	assert_int_equal(text_file_read(path, 9, &text, &len, &why), ERR_INVALID);
	assert_null(text);
	assert_true(strncmp(why.text, path, strlen(path)) == 0);
	assert_non_null(strstr(why.text, "/f: this is UTF-16; UTF-8 is read"));
	assert_int_equal(text_file_read(path, 3, &text, &len, &why), ERR_LIMIT);
	assert_int_equal(file_empty_dir(dir, NULL), ERR_OK);
	rmdir(dir);
}

static void
lines(void **state)
{
	static const char text[] = "a\nbc\r\n\rd\n\r\ne";
	static const char *const want[] = {"a", "bc", "", "d", "", "e"};
	struct flush f = flush_new(text, sizeof(text) - 1);
	size_t at = 0, next;

	(void)state;
	for (size_t i = 0; i < 6; i++, at += next) {
		size_t n = text_file_line(f.data + at, sizeof(text) - 1 - at, &next);
		assert_int_equal(n, strlen(want[i]));
		assert_memory_equal(f.data + at, want[i], n);
	}
	assert_int_equal(at, sizeof(text) - 1);
	flush_free(&f);
}

/* Nothing is looked at behind the line and its end, whatever ends it: else each line of a long text would cost the whole of it. The page
 * behind what is here cannot be read. */
static void
looks_no_further(void **state)
{
	static const struct {
		const char *text;
		size_t len, next;
	} rows[] = {
	    {"abc\rd", 3, 4}, {"abc\nd", 3, 4}, {"abc\r\n", 3, 5}, {"\rd", 0, 1}, {"\n", 0, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct flush f = flush_new(rows[i].text, strlen(rows[i].text));
		size_t next;
		assert_int_equal(
		    text_file_line(f.data, strlen(rows[i].text) + (1u << 20), &next), rows[i].len);
		assert_int_equal(next, rows[i].next);
		flush_free(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(encodings),
	    cmocka_unit_test(reads),
	    cmocka_unit_test(lines),
	    cmocka_unit_test(looks_no_further),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
