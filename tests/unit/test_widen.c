/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "modelfile.h"
#include "widen.h"

static char path[64];

static int
set_up(void **state)
{
	(void)state;
	strcpy(path, "/tmp/test_widen.XXXXXX");
	int fd = mkstemp(path);
	close(fd);
	return fd < 0;
}

static int
tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static void
write_model(const char *header, const void *data, size_t len)
{
	uint8_t bytes[1024] = {(uint8_t)strlen(header), (uint8_t)(strlen(header) >> 8)};

	memcpy(bytes + 8, header, strlen(header));
	memcpy(bytes + 8 + strlen(header), data, len);
	assert_int_equal(file_write(path, bytes, 8 + strlen(header) + len, 0600, NULL), ERR_OK);
}

/* Reads what a descriptor holds; the caller frees *bytes. */
static void
read_model(int fd, char **bytes, struct tensor_table *table, const char **data)
{
	struct stat st;
	uint64_t at;
	struct why why = {""};

	assert_int_equal(fstat(fd, &st), 0);
	*bytes = malloc((size_t)st.st_size);
	assert_int_equal(file_pread(fd, *bytes, (size_t)st.st_size, 0), ERR_OK);
	assert_int_equal(modelfile_data_at(*bytes, (uint64_t)st.st_size, &at, &why), ERR_OK);
	if (modelfile_parse(table, NULL, *bytes, (size_t)at, (uint64_t)st.st_size, &why))
		fail_msg("%s", why.text);
	*data = *bytes + at;
}

#define T(name, type, from, to) \
	"\"" name "\":{\"dtype\":\"" type "\",\"shape\":[2],\"data_offsets\":[" #from "," #to "]}"

static void
every_type(void **state)
{
	static const struct {
		uint16_t half[2], brain[2];
		float single[2];
		double wide[2];
		int64_t whole[2];
	} in = {{0x3e00, 0xfc00}, {0x3fc0, 0xc000}, {0.25f, -0.5f}, {1.1, INFINITY}, {7, -1}};
	static const float want[] = {1.5f, -INFINITY, 1.5f, -2, 0.25f, -0.5f, 1.1f, INFINITY};
	struct widen_note note;
	struct tensor_table t;
	struct why why = {""};
	const char *data;
	char *bytes;
	int fd;
	(void)state;

	_Static_assert(sizeof(in) == 48, "no gaps");
	write_model(
	    "{\"__metadata__\":{\"format\":\"pt\"}," T("a", "F16", 0, 4) "," T("b", "BF16", 4,
		8) "," T("c", "F32", 8, 16) "," T("d", "F64", 16, 32) "," T("e", "I64", 32, 48) "}",
	    &in, sizeof(in));
	if (widen_open(&fd, &note, path, &why))
		fail_msg("%s", why.text);
	assert_int_equal(note.widened, 3);
	assert_string_equal(note.first, "a");
	assert_int_equal(note.was, TENSOR_F16);
	assert_null(note.wrapper);
	read_model(fd, &bytes, &t, &data);
	assert_int_equal(t.count, 5);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(t.items[i].dtype, TENSOR_F32);
	assert_memory_equal(data, want, sizeof(want));
	assert_memory_equal(data + t.items[4].begin, in.whole, sizeof(in.whole));
	tensor_table_deinit(&t);
	free(bytes);
	close(fd);
}

static void
nothing_to_widen(void **state)
{
	static const float in[2] = {1, 2};
	struct widen_note note;
	struct stat a, b;
	int fd;
	(void)state;

	write_model("{" T("module.fc", "F32", 0, 8) "}", in, sizeof(in));
	assert_int_equal(widen_open(&fd, &note, path, NULL), ERR_OK);
	assert_int_equal(note.widened, 0);
	assert_string_equal(note.wrapper, "module.");
	assert_true(fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino);
	close(fd);
}

static void
refused(void **state)
{
	static const double in[2] = {1, 1e300};
	struct widen_note note;
	struct why why = {""};
	int fd;
	(void)state;

	write_model("{" T("fc", "F64", 0, 16) "}", in, sizeof(in));
	assert_int_equal(widen_open(&fd, &note, path, &why), ERR_NUMERIC);
	assert_non_null(strstr(why.text, "\"fc\""));
	assert_int_equal(file_write(path, "text", 4, 0600, NULL), ERR_OK);
	assert_int_equal(widen_open(&fd, &note, path, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, path));
	assert_int_equal(widen_open(&fd, &note, "/nowhere/model", &why), ERR_NOTFOUND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_type),
	    cmocka_unit_test(nothing_to_widen),
	    cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
