#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	put(from.vocabulary, "words", "a\nab\n\\n\n\nb\n");
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(windows_of_bytes),
	    cmocka_unit_test(stretches),
	    cmocka_unit_test(words),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
