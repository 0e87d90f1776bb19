/* stages: gcc openssl address */
/* What a device keeps of a job on its disk: bytes written by hand, files of an earlier program, and what must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "devicefile.h"
#include "file.h"
#include "flush.h"
#include "hash.h"

static enum err
decode(struct devicefile *out, const void *data, size_t len)
{
	size_t have = len < DEVICEFILE_HEAD_MAX ? len : DEVICEFILE_HEAD_MAX;
	struct flush f = flush_new(data, have);
	struct why why = {""};
	enum err e = devicefile_decode(out, f.data, len, &why);

	assert_true(!e || (e == ERR_CORRUPT && why.text[0]));
	flush_free(&f);
	return e;
}

/* The head byte by byte, as FORMAT.md has it; the body is 1, 2, 3, ... */
static const struct row {
	struct devicefile file;
	size_t head, body;
	char bytes[DEVICEFILE_HEAD_MAX + 1]; /* with zeros behind what is written here */
} rows[] = {
    {{.kind = DEVICEFILE_RESIDUAL, .count = 3, .job = "0123456789abcde", .task = "ABCDEFGHIJKLMNO"},
	64, 12,
	"RVE1\0\0\0\0\3\0\0\0\0\0\0\0"
	"0123456789abcde\0"
	"ABCDEFGHIJKLMNO\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
    {{.kind = DEVICEFILE_VARIATE, .count = 2, .round = 0x0102}, 24, 8,
	"RVV1\0\0\0\0\2\1\0\0\0\0\0\0\2\0\0\0\0\0\0"},
    {{.kind = DEVICEFILE_LOCAL, .count = 5}, 16, 5, "RVL1\1\0\0\0\5\0\0\0\0\0\0"},
    {{.kind = DEVICEFILE_KEPT,
	 .count = 7,
	 .round = 0x0102,
	 .serial = 0x0304,
	 .job = "0123456789abcde",
	 .task = "ABCDEFGHIJKLMNO",
	 .base = "0123456789012345678901234567890",
	 .table = "abcdefghijabcdefghijabcdefghija",
	 .trainer = "lora"},
	192, 7,
	"RVK1\0\0\0\0\7\0\0\0\0\0\0\0"
	"0123456789abcde\0"
	"ABCDEFGHIJKLMNO\0"
	"\2\1\0\0\0\0\0\0\4\3\0\0\0\0\0\0"
	"0123456789012345678901234567890\0"
	"abcdefghijabcdefghijabcdefghija\0"
	"lora\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
};

#define ROWS (sizeof(rows) / sizeof(*rows))
#define LONGEST 256

/* The whole file of a row; its length. */
static size_t
make(uint8_t out[LONGEST], const struct row *row)
{
	size_t hashed = row->head + row->body;

	memset(out, 0xee, LONGEST);
	for (size_t i = 0; i < row->body; i++)
		out[row->head + i] = (uint8_t)(i + 1);
	devicefile_encode(&row->file, out);
	assert_true(out[row->head] == 1);
	hash_sha256(out + hashed, out, hashed);
	return hashed + 32;
}

static void
layout(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];
		uint8_t data[LONGEST], hash[32];
		struct devicefile back;
		size_t len = make(data, row);
		assert_int_equal(devicefile_head(row->file.kind), row->head);
		assert_int_equal(devicefile_bytes(row->file.kind, row->file.count), len);
		assert_memory_equal(data, row->bytes, row->head);
		hash_sha256(hash, data, len - 32);
		assert_memory_equal(data + len - 32, hash, 32);
		assert_int_equal(decode(&back, data, len), ERR_OK);
		/* What was read says the same again; between its members may lie anything. */
		uint8_t again[LONGEST];
		devicefile_encode(&back, again);
		assert_memory_equal(again, row->bytes, row->head);
		assert_int_equal(back.kind, row->file.kind);
		assert_int_equal(back.count, row->file.count);
	}
}

/* Cut at any length or made longer. A changed byte is for the hash to find (test_kept). */
static void
damage(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		uint8_t data[LONGEST];
		struct devicefile out;
		size_t len = make(data, &rows[i]);
		for (size_t n = 0; n < len; n++)
			assert_int_equal(decode(&out, data, n), ERR_CORRUPT);
		assert_int_equal(decode(&out, data, len + 1), ERR_CORRUPT);
		assert_int_equal(decode(&out, data, len), ERR_OK);
	}
}

static void
wrong_heads(void **state)
{
	static const struct {
		size_t row, at;
	} wrong[] = {{0, 4}, {0, 7}, {0, 8}, {0, 15}, {0, 48}, {0, 63}, {1, 4}, {1, 16}, {1, 23},
	    {2, 5}, {2, 8}, {2, 15}, {3, 4}, {3, 8}, {3, 128}, {3, 132}, {3, 191}};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		uint8_t data[LONGEST];
		struct devicefile out;
		size_t len = make(data, &rows[wrong[i].row]);
		data[wrong[i].at] ^= 0x80;
		assert_int_equal(decode(&out, data, len), ERR_CORRUPT);
	}
}

static void
sizes(void **state)
{
	(void)state;
	assert_true(devicefile_bytes(DEVICEFILE_LOCAL, UINT64_MAX - 48) == UINT64_MAX);
	assert_int_equal(devicefile_bytes(DEVICEFILE_LOCAL, UINT64_MAX - 47), 0);
	assert_int_equal(devicefile_bytes(DEVICEFILE_RESIDUAL, UINT64_MAX / 4), 0);
	assert_int_equal(devicefile_bytes(DEVICEFILE_VARIATE, UINT64_MAX), 0);
}

/* Files of the program of commit 402de29 (tests/vectors/make_device): read, and written again to the same bytes, or with a hash. */
static void
earlier_program(void **state)
{
	static const struct {
		const char *path;
		enum devicefile_kind kind;
		uint64_t count, round;
	} files[] = {{"tests/vectors/device/residual.sum", DEVICEFILE_RESIDUAL, 4, 0},
	    {"tests/vectors/device/variate.own", DEVICEFILE_VARIATE, 6, 2},
	    {"tests/vectors/device/local.weights", DEVICEFILE_LOCAL, 8, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		bool local = files[i].kind == DEVICEFILE_LOCAL;
		struct devicefile file, again;
		uint8_t out[LONGEST] = {0};
		char *data;
		size_t len;
		assert_int_equal(file_read(files[i].path, LONGEST, &data, &len, NULL), ERR_OK);
		assert_int_equal(decode(&file, data, len), ERR_OK);
		assert_int_equal(file.kind, files[i].kind);
		assert_int_equal(file.count, files[i].count);
		assert_int_equal(file.round, files[i].round);
		assert_int_equal(file.unhashed, local);
		memcpy(out, data, local ? len : len - 32);
		devicefile_encode(&file, out);
		if (!local)
			hash_sha256(out + len - 32, out, len - 32);
		assert_int_equal(out[4], local);
		out[4] = 0;
		assert_memory_equal(out, data, len);
		out[4] = local;
		size_t whole = devicefile_bytes(file.kind, file.count);
		assert_int_equal(whole, len + (local ? 32 : 0));
		assert_int_equal(decode(&again, out, whole), ERR_OK);
		assert_false(again.unhashed);
		/* Where there is a hash it counts, and where there is none there may be none. */
		assert_int_equal(decode(&again, data, len - 1), ERR_CORRUPT);
		free(data);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(layout), cmocka_unit_test(damage),
	    cmocka_unit_test(wrong_heads), cmocka_unit_test(sizes),
	    cmocka_unit_test(earlier_program)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
