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

#include "dataset.h"
#include "shard.h"
#include "source.h"
#include "text.h"

/* Texts as tokens, through the one loader. */

static char dir[] = "/tmp/test_text.XXXXXX";

static int
set_up(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(file_empty_dir(dir, NULL), ERR_OK);
	return rmdir(dir);
}

static void
put(char path[DATA_SOURCE_TEXT], const char *name, const char *text)
{
	snprintf(path, DATA_SOURCE_TEXT, "%s/%s", dir, name);
	assert_int_equal(file_write(path, text, strlen(text), 0644, NULL), ERR_OK);
}

/* Windows follow each other, targets are one token on, and the last window has one, too. */
static void
windows_of_bytes(void **state)
{
	struct data_source from = {.format = DATA_TEXT, .window = 3};
	struct dataset d, cut;
	int32_t x[5], y[5];

	(void)state;
	put(from.path, "text", "abcdefghij");
	assert_int_equal(source_load(&d, &from, NULL, NULL), ERR_OK);
	assert_true(d.count == 3 && d.features == 3 && d.classes == 256);
	dataset_copy(&d, 2, x);
	dataset_next(&d, 2, y);
	assert_memory_equal(x, ((int32_t[]){'g', 'h', 'i'}), 12);
	assert_memory_equal(y, ((int32_t[]){'h', 'i', 'j'}), 12);
	/* Another length, from the same bytes, also after the first is gone. */
	assert_int_equal(dataset_cut(&cut, &d, 5, NULL), ERR_OK);
	dataset_deinit(&d);
	assert_int_equal(cut.count, 1);
	dataset_next(&cut, 0, y);
	assert_memory_equal(y, ((int32_t[]){'b', 'c', 'd', 'e', 'f'}), 20);
	assert_int_equal(dataset_cut(&d, &cut, 10, NULL), ERR_INVALID);
	dataset_deinit(&cut);
}

static void
stretches(void **state)
{
	struct data_source from = {.format = DATA_TEXT, .window = 1};
	char seen[8] = "";
	int32_t x, y;

	(void)state;
	put(from.path, "text", "abcdefg");
	for (uint32_t i = 1; i <= 3; i++) {
		const struct shard shard = {.index = i, .count = 3};
		struct dataset d;
		assert_int_equal(source_load(&d, &from, &shard, NULL), ERR_OK);
		for (uint32_t k = 0; k < d.count; k++) {
			dataset_copy(&d, k, &x);
			dataset_next(&d, k, &y);
			assert_int_equal(y, x + 1);
			strncat(seen, &(char){(char)x}, 1);
		}
		dataset_deinit(&d);
	}
	/* Of each stretch the last token is a target only. */
	assert_string_equal(seen, "acef");
}

static void
words(void **state)
{
	struct data_source from = {.format = DATA_TEXT, .window = 2};
	struct dataset d;
	struct why why = {""};
	int32_t x[2];

	(void)state;
	put(from.vocabulary, "words",
	    "\xef\xbb\xbf"
	    "a\r\nab\n\\n\nb\n\n\r\n");
	put(from.path, "text", "aab\nb");
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_OK);
	assert_true(d.count == 1 && d.classes == 4);
	dataset_copy(&d, 0, x);
	assert_memory_equal(x, ((int32_t[]){0, 1}), 8);
	dataset_next(&d, 0, x);
	assert_memory_equal(x, ((int32_t[]){1, 2}), 8);
	dataset_deinit(&d);
	put(from.path, "text", "aabxb");
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "/text: byte 4: no word of the vocabulary begins there"));
	put(from.vocabulary, "words", "a\nb\na\n");
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "/words: line 3 repeats an earlier word"));
	put(from.vocabulary, "words", "a\n\\q\n");
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "/words: line 2 holds an escape"));
}

/* What an editor may make of a vocabulary: the same words, or the line that is wrong. */
static void
vocabularies(void **state)
{
	static const struct {
		const char *text;
		const char *why; /* NULL: "a" and "b" */
	} rows[] = {
	    {"a\nb", NULL},
	    {"a\rb\r", NULL},
	    {"\xef\xbb\xbf"
	     "a\nb\n\n\n",
		NULL},
	    {"a\n\nb\n", "/words: line 2 is blank, and would shift the numbers"},
	    {"\na\nb\n", "/words: line 1 is blank"},
	    {"a\r\n\r\nb\r\n", "/words: line 2 is blank"},
	    {"x\na\rb\n", "/words: line 2 ends with a carriage return, others with a line feed"},
	    {"\xfe\xff!a",
		"/words: this is UTF-16; UTF-8 is read, which \"iconv -f UTF-16 -t UTF-8\""},
	    {"\n\n", "/words: the vocabulary holds no words"},
	};
	struct data_source from = {.format = DATA_TEXT, .window = 2};

	(void)state;
	put(from.path, "text", "abab");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct dataset d;
		struct why why = {""};
		put(from.vocabulary, "words", rows[i].text);
		enum err e = source_load(&d, &from, NULL, &why);
		if (rows[i].why) {
			assert_int_equal(e, ERR_INVALID);
			assert_non_null(strstr(why.text, rows[i].why));
			continue;
		}
		assert_int_equal(e, ERR_OK);
		int32_t x[2];
		dataset_copy(&d, 0, x);
		assert_true(d.classes == 2 && x[0] == 0 && x[1] == 1);
		dataset_deinit(&d);
	}
}

/* UTF-16 with and without a mark is no text of bytes; the mark of UTF-8 is none of its tokens. */
static void
encodings(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *name; /* NULL: it is read */
	} rows[] = {{"\xef\xbb\xbfHello", 8, NULL}, {"Hello", 5, NULL},
	    {"\xff\xfeH\0e\0l\0l\0o\0", 12, "UTF-16"}, {"\xfe\xff\0H\0e\0l\0l\0o", 12, "UTF-16"},
	    {"H\0e\0l\0l\0o\0", 10, "UTF-16LE"}, {"\0H\0e\0l\0l\0o", 10, "UTF-16BE"},
	    {"\xff\xfe\0\0H\0\0\0", 8, "UTF-32"}, {"\0\0\xfe\xff\0\0\0H", 8, "UTF-32"}};
	struct data_source from = {.format = DATA_TEXT, .window = 4};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct dataset d;
		struct why why = {""};
		char said[64];
		snprintf(from.path, sizeof(from.path), "%s/text", dir);
		assert_int_equal(
		    file_write(from.path, rows[i].text, rows[i].len, 0644, NULL), ERR_OK);
		enum err e = source_load(&d, &from, NULL, &why);
		if (rows[i].name) {
			assert_int_equal(e, ERR_INVALID);
			snprintf(
			    said, sizeof(said), "/text: this is %s; UTF-8 is read", rows[i].name);
			assert_non_null(strstr(why.text, said));
			continue;
		}
		assert_int_equal(e, ERR_OK);
		int32_t x[4];
		dataset_copy(&d, 0, x);
		assert_true(d.rows->items == 5 && d.rows->token_end == 'o' + 1);
		assert_memory_equal(x, ((int32_t[]){'H', 'e', 'l', 'l'}), 16);
		dataset_deinit(&d);
	}
}

/* A job may want shorter windows than the owner: the text is there for it. */
static void
short_text(void **state)
{
	struct data_source from = {.format = DATA_TEXT, .window = 64};
	struct dataset d, cut;
	struct why why = {""};

	(void)state;
	put(from.path, "text", "abcdefghij");
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_OK);
	assert_true(d.count == 1 && d.features == 9);
	assert_int_equal(dataset_cut(&cut, &d, 3, NULL), ERR_OK);
	assert_int_equal(cut.count, 3);
	dataset_deinit(&cut);
	dataset_deinit(&d);
	put(from.path, "text", "a");
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "/text: 1 tokens are too few"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(windows_of_bytes),
	    cmocka_unit_test(stretches),
	    cmocka_unit_test(words),
	    cmocka_unit_test(vocabularies),
	    cmocka_unit_test(encodings),
	    cmocka_unit_test(short_text),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
