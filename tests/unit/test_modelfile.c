/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "flush.h"
#include "modelfile.h"
#include "tensor.h"

#define BASE "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
#define JOB "101112131415161718191a1b1c1d1e1f"

static void
make_table(struct tensor_table *t)
{
	*t = (struct tensor_table){0};
	assert_int_equal(tensor_table_add(t, "fc1.weight", (uint64_t[]){2, 3}, 2, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(t, "fc1.bias", (uint64_t[]){2}, 1, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(t, "none", (uint64_t[]){0, 5}, 2, NULL), ERR_OK);
	assert_int_equal(tensor_table_add(t, "name \"quoted\" \xc3\xa4", NULL, 0, NULL), ERR_OK);
}

static const struct modelfile_meta meta = {.job = JOB, .base = BASE, .round = 17};

/* A whole file with the values 1, 2, 3, ... */
static void
make_file(struct buf *out, const struct tensor_table *t, const struct modelfile_meta *m)
{
	void *data;

	buf_init(out, 1 << 21);
	assert_int_equal(modelfile_header(out, t, m), ERR_OK);
	assert_int_equal(buf_extend(out, (size_t)t->bytes, &data), ERR_OK);
	for (size_t i = 0; i < t->bytes / 4; i++) {
		float v = (float)(i + 1);
		memcpy((char *)data + 4 * i, &v, 4);
	}
}

static enum err
parse(
    struct tensor_table *t, struct modelfile_meta *m, const void *file, size_t len, struct why *why)
{
	struct flush f = flush_new(file, len);
	enum err e = modelfile_parse(t, m, f.data, len, len, why);

	flush_free(&f);
	return e;
}

/* The exact bytes, so that a model's id never changes by accident. */
static void
header_bytes(void **state)
{
	(void)state;
	static const char text[] =
	    "{\"__metadata__\":{\"rivulet\":\"1\",\"job\":\"" JOB
	    "\",\"round\":\"17\",\"base\":\"" BASE "\"},"
	    "\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
	    "\"fc1.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]},"
	    "\"none\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[32,32]},"
	    "\"name \\\"quoted\\\" "
	    "\xc3\xa4\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[32,36]}}";
	struct tensor_table t;
	struct buf out, again;
	uint64_t at;

	make_table(&t);
	make_file(&out, &t, &meta);
	make_file(&again, &t, &meta);
	assert_int_equal(out.len, again.len);
	assert_memory_equal(out.data, again.data, out.len);
	assert_memory_equal(out.data + 8, text, sizeof(text) - 1);
	assert_int_equal(modelfile_data_at(out.data, out.len, &at, NULL), ERR_OK);
	assert_int_equal(at % 64, 0);
	assert_true(at - 8 - (sizeof(text) - 1) < 64);
	for (size_t i = 8 + sizeof(text) - 1; i < at; i++)
		assert_int_equal(out.data[i], ' ');
	assert_int_equal(out.len, at + 36);
	buf_deinit(&again);
	buf_deinit(&out);
	tensor_table_deinit(&t);
}

static void
round_trip(void **state)
{
	(void)state;
	struct tensor_table t, back;
	struct modelfile_meta m;
	struct buf file;
	uint64_t at;

	make_table(&t);
	make_file(&file, &t, &meta);
	assert_int_equal(parse(&back, &m, file.data, file.len, NULL), ERR_OK);
	assert_true(tensor_table_same(&t, &back));
	assert_int_equal(back.elements, 9);
	assert_int_equal(back.bytes, 36);
	assert_string_equal(m.job, JOB);
	assert_string_equal(m.base, BASE);
	assert_int_equal(m.round, 17);
	assert_int_equal(modelfile_data_at(file.data, file.len, &at, NULL), ERR_OK);
	assert_memory_equal(file.data + at, ((float[]){1, 2, 3, 4, 5, 6, 7, 8, 9}), 36);
	/* With the weight frozen, bias and scalar move and the weight stays. */
	struct tensor_rule rule = {"*.weight", TENSOR_FROZEN};
	assert_int_equal(tensor_table_assign(&back, &rule, 1, NULL), ERR_OK);
	assert_int_equal(back.elements, 3);
	assert_true(!back.items[0].in_delta && back.items[1].in_delta && back.items[2].in_delta);
	assert_int_equal(back.items[1].first, 0);
	assert_int_equal(back.items[2].first, 2);
	tensor_table_deinit(&back);
	tensor_table_deinit(&t);
	buf_deinit(&file);
}

static void
python_reads_it(void **state)
{
	(void)state;
	static const char expected[] = "base=" BASE "\njob=" JOB "\nrivulet=1\nround=17\n"
				       "fc1.weight F32 [2, 3] 21\nfc1.bias F32 [2] 15\n"
				       "none F32 [0, 5] 0\nname \"quoted\" \xc3\xa4 F32 [] 9\n";
	char path[] = "/tmp/test_modelfile.XXXXXX", command[256], text[1024];
	struct tensor_table t;
	struct buf file;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	make_table(&t);
	make_file(&file, &t, &meta);
	assert_int_equal(file_pwrite(fd, file.data, file.len, 0), ERR_OK);
	close(fd);
	snprintf(command, sizeof(command),
	    "PYTHONIOENCODING=utf-8 python3 tests/vectors/check_safetensors.py %s", path);
	FILE *p = popen(command, "r");
	assert_non_null(p);
	size_t n = fread(text, 1, sizeof(text) - 1, p);
	text[n] = '\0';
	assert_int_equal(pclose(p), 0);
	assert_string_equal(text, expected);
	unlink(path);
	buf_deinit(&file);
	tensor_table_deinit(&t);
}

/* Puts the length prefix before a header and `data_bytes` zero bytes behind. */
static enum err
parse_text(struct tensor_table *t, struct modelfile_meta *m, const char *header, size_t data_bytes,
    struct why *why)
{
	size_t n = strlen(header), len = 8 + n + data_bytes;
	char *file = calloc(1, len);

	assert_non_null(file);
	file[0] = (char)(n & 0xff);
	file[1] = (char)(n >> 8);
	memcpy(file + 8, header, n);
	enum err e = parse(t, m, file, len, why);
	free(file);
	return e;
}

/* What other writers make: any order of members, types and gaps in the text, keys unknown to us. */
static void
foreign(void **state)
{
	(void)state;
	static const char header[] =
	    "{ \"b\": {\"data_offsets\": [8, 12], \"shape\": [2, 1], \"dtype\": \"BF16\", "
	    "\"more\": null},\n"
	    "\"__metadata__\": {\"format\": \"pt\", \"round\": \"x\", \"job\": \"7\"},\n"
	    "\"a\": {\"dtype\": \"F64\", \"shape\": [], \"data_offsets\": [0, 8]},"
	    "\"w\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [12, 16]} }\n\t ";
	struct tensor_table t;
	struct modelfile_meta m;

	assert_int_equal(parse_text(&t, &m, header, 16, NULL), ERR_OK);
	assert_int_equal(t.count, 3);
	assert_string_equal(t.items[0].name, "a");
	assert_string_equal(t.items[1].name, "b");
	assert_int_equal(t.items[1].dtype, TENSOR_BF16);
	assert_int_equal(t.items[1].role, TENSOR_FROZEN);
	assert_int_equal(t.items[2].role, TENSOR_TRAIN);
	assert_int_equal(t.elements, 1);
	assert_int_equal(t.items[2].first, 0);
	assert_string_equal(m.job, "");
	assert_int_equal(m.round, 0);
	/* A table from a file grows like any other. */
	assert_int_equal(tensor_table_add(&t, "c", NULL, 0, NULL), ERR_OK);
	tensor_table_deinit(&t);
	assert_int_equal(parse_text(&t, NULL, "{}", 0, NULL), ERR_OK);
	assert_int_equal(t.count, 0);
	tensor_table_deinit(&t);
}

#define F32(name, shape, offsets) \
	"\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define META(text) "{\"__metadata__\":" text "}"

static const struct {
	const char *header;
	size_t data;
	enum err result;
} headers[] = {
    {"{" F32("a", "[2]", "[0,8]") "}", 8, ERR_OK},
    {"{" F32("a", "[2]", "[0,8]") "}", 7, ERR_INVALID},
    {"{" F32("a", "[2]", "[0,8]") "}", 9, ERR_INVALID},
    {"{" F32("a", "[2]", "[0,7]") "}", 7, ERR_INVALID},
    {"{" F32("a", "[2]", "[8,0]") "}", 8, ERR_INVALID},
    {"{" F32("a", "[2]", "[4,12]") "}", 12, ERR_INVALID},
    {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[0,4]") "}", 4, ERR_INVALID},
    {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[8,12]") "}", 12, ERR_INVALID},
    {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[2]", "[2,10]") "}", 10, ERR_INVALID},
    {"{" F32("a", "[1]", "[0,4]") "," F32("a", "[1]", "[4,8]") "}", 8, ERR_INVALID},
    {"{" F32("a", "[-1]", "[0,4]") "}", 4, ERR_INVALID},
    {"{" F32("a", "[1.5]", "[0,6]") "}", 6, ERR_INVALID},
    {"{" F32("a", "[\"1\"]", "[0,4]") "}", 4, ERR_INVALID},
    {"{" F32("a", "1", "[0,4]") "}", 4, ERR_INVALID},
    {"{" F32("a", "[1]", "[0]") "}", 4, ERR_INVALID},
    {"{" F32("a", "[1]", "[0,4,4]") "}", 4, ERR_INVALID},
    {"{" F32("a", "[1]", "{\"x\":0,\"y\":4}") "}", 4, ERR_INVALID},
    {"{" F32("a", "{\"x\":1}", "[0,4]") "}", 4, ERR_INVALID},
    {"{" F32("", "[1]", "[0,4]") "}", 4, ERR_INVALID},
    {"{" F32("\\n", "[1]", "[0,4]") "}", 4, ERR_INVALID},
    {"{" F32("a", "[1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, ERR_OK},
    {"{" F32("a", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, ERR_LIMIT},
    {"{" F32("a", "[4294967296,4294967296,4294967296]", "[0,4]") "}", 4, ERR_LIMIT},
    {"{" F32("a", "[4611686018427387904,4]", "[0,0]") "}", 0, ERR_INVALID},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, ERR_INVALID},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, ERR_INVALID},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, ERR_INVALID},
    {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, ERR_UNSUPPORTED},
    {"{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, ERR_INVALID},
    {"{\"a\":[]}", 0, ERR_INVALID},
    {"{\"a\":null}", 0, ERR_INVALID},
    {"[]", 0, ERR_INVALID},
    {" {}", 0, ERR_INVALID},
    {"{} x", 0, ERR_INVALID},
    {"{", 0, ERR_INVALID},
    {META("{\"format\":\"pt\"}"), 0, ERR_OK},
    {META("{\"format\":1}"), 0, ERR_INVALID},
    {META("[]"), 0, ERR_INVALID},
    {META("\"x\""), 0, ERR_INVALID},
    {META("{\"rivulet\":\"1\"}"), 0, ERR_OK},
    {META("{\"rivulet\":\"1\",\"job\":\"" JOB "\"}"), 0, ERR_OK},
    {META("{\"rivulet\":\"1\",\"job\":\"\"}"), 0, ERR_INVALID},
    {META("{\"rivulet\":\"1\",\"base\":\"" JOB "\"}"), 0, ERR_INVALID},
    {META("{\"rivulet\":\"1\",\"round\":\"-1\"}"), 0, ERR_INVALID},
    {META("{\"rivulet\":\"1\",\"round\":\"18446744073709551616\"}"), 0, ERR_INVALID},
    {META("{\"rivulet\":\"2\",\"round\":\"new\"}"), 0, ERR_OK},
};

static void
refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		struct tensor_table t;
		struct why why = {""};
		enum err e = parse_text(&t, NULL, headers[i].header, headers[i].data, &why);
		if (e != headers[i].result)
			fail_msg(
			    "case %zu %s: %s (%s)", i, headers[i].header, err_name(e), why.text);
		if (e == ERR_OK)
			tensor_table_deinit(&t);
		else
			assert_true(why.text[0] != '\0');
	}
}

static void
prefix(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[8];
		uint64_t file;
		enum err result;
	} cases[] = {
	    {{2}, 10, ERR_OK},
	    {{2}, 9, ERR_INVALID},
	    {{1}, 100, ERR_INVALID},
	    {{0}, 100, ERR_INVALID},
	    {{2}, 7, ERR_INVALID},
	    {{0, 0, 16}, 1u << 30, ERR_OK},
	    {{1, 0, 16}, 1u << 30, ERR_LIMIT},
	    {{255, 255, 255, 255, 255, 255, 255, 255}, UINT64_MAX, ERR_LIMIT},
	};
	uint64_t at;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
		    modelfile_data_at(cases[i].bytes, cases[i].file, &at, NULL), cases[i].result);
}

/* Only the header is at hand; and every shorter piece of it is refused. */
static void
truncated(void **state)
{
	(void)state;
	struct tensor_table t, back;
	struct buf file;
	uint64_t at;

	make_table(&t);
	make_file(&file, &t, &meta);
	assert_int_equal(modelfile_data_at(file.data, file.len, &at, NULL), ERR_OK);
	for (size_t len = 0; len <= at; len++) {
		struct flush f = flush_new(file.data, len);
		enum err e = modelfile_parse(&back, NULL, f.data, len, file.len, NULL);
		assert_int_equal(e, len < at ? ERR_INVALID : ERR_OK);
		flush_free(&f);
	}
	tensor_table_deinit(&back);
	tensor_table_deinit(&t);
	buf_deinit(&file);
}

static void
limits(void **state)
{
	(void)state;
	struct tensor_table t = {0}, back;
	char name[TENSOR_NAME_MAX];
	struct buf file;
	struct buf header;

	for (unsigned i = 0; i < TENSOR_COUNT_MAX; i++) {
		snprintf(name, sizeof(name), "layer%u.weight", i);
		assert_int_equal(tensor_table_add(&t, name, (uint64_t[]){1}, 1, NULL), ERR_OK);
	}
	make_file(&file, &t, NULL);
	assert_int_equal(parse(&back, NULL, file.data, file.len, NULL), ERR_OK);
	assert_true(tensor_table_same(&t, &back));
	tensor_table_deinit(&back);
	buf_deinit(&file);
	/* Names so long that the header passes its limit. */
	for (unsigned i = 0; i < TENSOR_COUNT_MAX; i++)
		snprintf(t.items[i].name, TENSOR_NAME_MAX, "%0127u", i);
	for (unsigned i = 0; i < TENSOR_COUNT_MAX; i++)
		for (unsigned d = 0; d < TENSOR_DIMS_MAX; d++)
			t.items[i].shape[d] = (uint64_t)1 << 47;
	for (unsigned i = 0; i < TENSOR_COUNT_MAX; i++)
		t.items[i].dims = TENSOR_DIMS_MAX;
	buf_init(&header, 1 << 24);
	assert_int_equal(modelfile_header(&header, &t, NULL), ERR_LIMIT);
	assert_int_equal(header.len, 0);
	tensor_table_deinit(&t);
}

/* One tensor more than the limit, as a file. */
static void
too_many(void **state)
{
	(void)state;
	struct buf text;
	struct tensor_table t;
	uint8_t head[8] = {0};
	struct buf file;

	buf_init(&text, 1 << 20);
	for (unsigned i = 0; i <= TENSOR_COUNT_MAX; i++)
		assert_int_equal(
		    buf_printf(&text, "%c" F32("t%u", "[0]", "[0,0]"), i ? ',' : '{', i), ERR_OK);
	assert_int_equal(buf_append(&text, "}", 1), ERR_OK);
	buf_init(&file, 1 << 21);
	for (unsigned i = 0; i < 8; i++)
		head[i] = (uint8_t)((uint64_t)text.len >> (8 * i));
	assert_int_equal(buf_append(&file, head, 8), ERR_OK);
	assert_int_equal(buf_append(&file, text.data, text.len), ERR_OK);
	assert_int_equal(parse(&t, NULL, file.data, file.len, NULL), ERR_LIMIT);
	buf_deinit(&file);
	buf_deinit(&text);
}

/* A header of a megabyte could make sixty of them: what no table needs is not read. */
static void
too_many_values(void **state)
{
	const size_t room = MODELFILE_HEADER_MAX;
	char *file = malloc(MODELFILE_PREFIX + room);
	struct tensor_table t = {0};
	struct why why = {""};
	size_t len = 0;

	(void)state;
	assert_non_null(file);
	char *text = file + MODELFILE_PREFIX;
	len += (size_t)snprintf(text, room, "{\"a\":{\"dtype\":\"F32\",\"shape\":[");
	while (len < room - 100)
		len += (size_t)snprintf(text + len, room - len, "1,");
	len += (size_t)snprintf(text + len, room - len, "1],\"data_offsets\":[0,4]}}");
	for (int i = 0; i < MODELFILE_PREFIX; i++)
		file[i] = (char)(len >> 8 * i & 0xff);
	assert_int_equal(modelfile_parse(&t, NULL, file, MODELFILE_PREFIX + len,
			     MODELFILE_PREFIX + len + 4, &why),
	    ERR_LIMIT);
	assert_non_null(strstr(why.text, "values"));
	free(file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(header_bytes),
	    cmocka_unit_test(round_trip),
	    cmocka_unit_test(python_reads_it),
	    cmocka_unit_test(foreign),
	    cmocka_unit_test(refused),
	    cmocka_unit_test(prefix),
	    cmocka_unit_test(truncated),
	    cmocka_unit_test(limits),
	    cmocka_unit_test(too_many),
	    cmocka_unit_test(too_many_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
