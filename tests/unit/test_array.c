/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data_source.h"
#include "dataset.h"
#include "flush.h"
#include "idx.h"
#include "npy.h"
#include "shard.h"
#include "source.h"

/* Arrays of all types, of IDX and NPY files, in memory and mapped. */

static char buffer[4096];

/* An NPY file of format `version` with this dictionary and these bytes; returns its length. */
static size_t
npy(int version, const char *dictionary, const void *data, size_t len)
{
	size_t text = strlen(dictionary), wide = version == 1 ? 2 : 4;

	memcpy(buffer, "\x93NUMPY", 6);
	buffer[6] = (char)version;
	buffer[7] = 0;
	for (size_t i = 0; i < wide; i++)
		buffer[8 + i] = (char)(text >> 8 * i);
	memcpy(buffer + 8 + wide, dictionary, text);
	memcpy(buffer + 8 + wide + text, data, len);
	return 8 + wide + text + len;
}

static enum err
read_npy(struct dataset *d, const void *file, size_t len, struct why *why)
{
	struct flush f = flush_new(file, len);
	struct unpack *io;
	struct array a;

	assert_int_equal(unpack_open(&io, f.data, len, why), ERR_OK);
	enum err e = npy_head(&a, io, why);
	if (!e)
		e = array_examples(d, &a, io, NULL, 0, why);
	unpack_close(io);
	flush_free(&f);
	return e;
}

static void
npy_types(void **state)
{
	(void)state;
	static const struct {
		const char *code, *bytes;
		size_t len;
		float first, second;
	} cases[] = {
	    {"<f4", "\0\0\x80\x3f\0\0\0\xc0", 8, 1, -2},
	    {">f4", "\x3f\x80\0\0\xc0\0\0\0", 8, 1, -2},
	    {"<f8", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0", 16, 1, -2},
	    {"|i1", "\1\xfe", 2, 1, -2},
	    {"<i2", "\1\0\xfe\xff", 4, 1, -2},
	    {">i2", "\0\1\xff\xfe", 4, 1, -2},
	    {"<i4", "\1\0\0\0\xfe\xff\xff\xff", 8, 1, -2},
	    {"<i8", "\1\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff", 16, 1, -2},
	    {"|b1", "\1\0", 2, 1, 0},
	};
	char text[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int version = 1; version <= 3; version++) {
			struct dataset d;
			struct why why = {""};
			snprintf(text, sizeof(text),
			    "{'descr': '%s', 'fortran_order': False, 'shape': (1, 2), }\n",
			    cases[i].code);
			size_t len = npy(version, text, cases[i].bytes, cases[i].len);
			if (read_npy(&d, buffer, len, &why))
				fail_msg("%s: %s", cases[i].code, why.text);
			assert_true(d.floats[0] == cases[i].first);
			assert_true(d.floats[1] == cases[i].second);
			assert_int_equal(d.count, 1);
			assert_int_equal(d.features, 2);
			dataset_deinit(&d);
			/* One byte less, one byte more. */
			assert_int_equal(read_npy(&d, buffer, len - 1, NULL), ERR_INVALID);
			assert_int_equal(read_npy(&d, buffer, len + 1, NULL), ERR_INVALID);
		}
}

static void
npy_shapes(void **state)
{
	(void)state;
	static const struct {
		const char *shape;
		unsigned dims;
		uint32_t is[3];
	} cases[] = {{"(2, 12)", 1, {12, 1, 1}}, {"(2,3,4)", 3, {1, 3, 4}},
	    {"( 2, 3, 2, 2, )", 3, {3, 2, 2}}};
	char text[128];
	static const uint8_t bytes[24] = {9, 8};

	for (size_t i = 0; i < 3; i++) {
		struct dataset d;
		snprintf(text, sizeof(text),
		    "{\"shape\": %s, \"fortran_order\": False, \"descr\": \"|u1\"}",
		    cases[i].shape);
		assert_int_equal(
		    read_npy(&d, buffer, npy(1, text, bytes, sizeof(bytes)), NULL), ERR_OK);
		assert_int_equal(d.dims, cases[i].dims);
		assert_memory_equal(d.shape, cases[i].is, sizeof(d.shape));
		assert_memory_equal(d.bytes, bytes, sizeof(bytes));
		dataset_deinit(&d);
	}
}

static void
npy_faults(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
		enum err e;
	} cases[] = {
	    {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2)}", "Fortran",
		ERR_UNSUPPORTED},
	    {"{'descr': '<c8', 'fortran_order': False, 'shape': (1, 2)}", "another type",
		ERR_UNSUPPORTED},
	    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 2)}", "records",
		ERR_INVALID},
	    {"{'descr': 'f4', 'fortran_order': False, 'shape': (1, 2)}", "order of bytes",
		ERR_INVALID},
	    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 2)}", "neither", ERR_INVALID},
	    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "no dimensions", ERR_INVALID},
	    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, -2)}", "numbers", ERR_INVALID},
	    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1)}", "more than 4",
		ERR_INVALID},
	    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2)}",
		"too large", ERR_INVALID},
	    {"{'descr': '<f4', 'fortran_order': False, 'shape': (40, 2)}", "more values",
		ERR_INVALID},
	    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2)}", "no values", ERR_INVALID},
	    {"{'descr': '<f4', 'fortran_order': False}", "missing", ERR_INVALID},
	    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)} x", "follows", ERR_INVALID},
	    {"{'descr': '<f4', 'other': 1, 'shape': (1, 2)}", "a key", ERR_INVALID},
	    {"{'descr': '<f4", "simple type", ERR_INVALID},
	    {"", "dictionary", ERR_INVALID},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dataset d;
		struct why why = {""};
		size_t len = npy(1, cases[i].text, "\0\0\x80\x3f\0\0\0\xc0", 8);
		assert_int_equal(read_npy(&d, buffer, len, &why), cases[i].e);
		if (!strstr(why.text, cases[i].says))
			fail_msg(
			    "case %zu: \"%s\" does not say \"%s\"", i, why.text, cases[i].says);
	}
	size_t len = npy(4, "{}", "", 0);
	assert_int_equal(read_npy(&(struct dataset){0}, buffer, len, NULL), ERR_UNSUPPORTED);
	/* A head of 4 GiB is not allocated. */
	memcpy(buffer, "\x93NUMPY\2\0\xff\xff\xff\xff", 12);
	assert_int_equal(read_npy(&(struct dataset){0}, buffer, 64, NULL), ERR_LIMIT);
}

/* A value that is not finite is named by its place. */
static void
not_finite(void **state)
{
	(void)state;
	struct dataset d;
	struct why why = {""};
	size_t len = npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
	    "\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\0\0\xc0\x7f", 16);

	assert_int_equal(read_npy(&d, buffer, len, &why), ERR_NUMERIC);
	assert_string_equal(why.text, "value 2 of example 2 is not finite");
}

static void
idx_types(void **state)
{
	(void)state;
	static const uint8_t shorts[] = {0, 0, 0x0b, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0xff, 0xfe};
	static const uint8_t doubles[] = {
	    0, 0, 0x0e, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0xc0, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t classes[] = {0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 3};
	static const uint8_t bad[] = {0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0x10, 0};
	struct dataset d;
	struct why why = {""};
	int32_t *l;
	size_t n;

	assert_int_equal(idx_images(&d, shorts, sizeof(shorts), NULL, 0, NULL), ERR_OK);
	assert_true(d.floats[0] == 256 && d.floats[1] == -2);
	dataset_deinit(&d);
	assert_int_equal(idx_images(&d, doubles, sizeof(doubles), NULL, 0, NULL), ERR_OK);
	assert_true(d.floats[0] == -2);
	dataset_deinit(&d);
	assert_int_equal(idx_labels(&l, &n, classes, sizeof(classes), NULL), ERR_OK);
	assert_true(n == 2 && l[0] == 256 && l[1] == 3);
	free(l);
	assert_int_equal(idx_labels(&l, &n, bad, sizeof(bad), &why), ERR_INVALID);
	assert_string_equal(why.text, "label 2: a class is a whole number from 0 to 4095");
}

/* --- through source.h */

static char dir[] = "/tmp/test_array.XXXXXX";

static int
set_up(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int
tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) == 0 ? 0 : -1;
}

static void
put(char path[DATA_SOURCE_TEXT], const char *name, const void *data, size_t len)
{
	snprintf(path, DATA_SOURCE_TEXT, "%s/%s", dir, name);
	assert_int_equal(file_write(path, data, len, 0644, NULL), ERR_OK);
}

static void
targets_and_labels(void **state)
{
	(void)state;
	struct data_source from = {.format = DATA_NPY};
	struct dataset d;
	struct why why = {""};

	put(from.x, "x.npy", buffer,
	    npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2)}", "\1\2\3\4", 4));
	put(from.y, "y.npy", buffer,
	    npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}",
		"\7\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16));
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_OK);
	assert_true(d.labels[0] == 7 && d.labels[1] == 1 && d.classes == 8);
	assert_int_equal(d.bytes[3], 4);
	dataset_deinit(&d);
	from.regression = true;
	const struct shard second = {.index = 2, .count = 2, .seed = 1};
	assert_int_equal(source_load(&d, &from, &second, &why), ERR_OK);
	assert_true(d.count == 1 && d.target_width == 1);
	assert_true(d.bytes[0] == 1 ? d.targets[0] == 7 : d.targets[0] == 1);
	dataset_deinit(&d);
	put(from.y, "y.npy", buffer,
	    npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
		"\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\0\0\0\xc0", 16));
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_OK);
	assert_true(d.target_width == 2 && d.targets[3] == -2);
	dataset_deinit(&d);
	from.regression = false;
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "y.npy: labels have 1 dimension"));
}

/* Big files stay mapped, and have the same examples as small ones. */
static void
mapped_rows(void **state)
{
	(void)state;
	enum { WIDTH = 1 << 20, COUNT = 70 };
	static const uint8_t head[] = {0, 0, 8, 2, 0, 0, 0, COUNT, 0, 0x10, 0, 0};
	static uint8_t labels[8 + COUNT] = {0, 0, 8, 1, 0, 0, 0, COUNT};
	static float x[WIDTH];
	struct data_source from = {.format = DATA_IDX};
	struct shard shard = {.index = 3, .count = 7, .seed = 9};
	struct dataset d, part;

	for (size_t i = 0; i < COUNT; i++)
		labels[8 + i] = (uint8_t)i;
	put(from.labels, "labels", labels, sizeof(labels));
	put(from.images, "images", head, sizeof(head));
	assert_int_equal(truncate(from.images, sizeof(head) + (off_t)COUNT * WIDTH), 0);
	int fd = open(from.images, O_WRONLY | O_CLOEXEC);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(pwrite(fd, &(uint8_t){(uint8_t)(i + 1)}, 1,
				     (off_t)sizeof(head) + (off_t)i * WIDTH + 5),
		    1);
	close(fd);
	assert_int_equal(source_load(&d, &from, &shard, NULL), ERR_OK);
	assert_non_null(d.rows);
	assert_null(d.bytes);
	assert_int_equal(d.count, 10);
	for (uint32_t i = 0; i < d.count; i++) {
		dataset_fill(&d, NULL, i, x);
		assert_true(x[5] == (float)(d.labels[i] + 1) / 255.0f && x[4] == 0);
	}
	/* A share has rows of the same file, also after the whole is gone. */
	const uint32_t some[] = {9, 2};
	assert_int_equal(dataset_subset(&part, &d, some, 2), ERR_OK);
	struct dataset window = dataset_window(&d, 2, 1);
	dataset_fill(&window, NULL, 0, x);
	assert_true(x[5] == (float)(window.labels[0] + 1) / 255.0f);
	int32_t wanted = d.labels[2];
	dataset_deinit(&d);
	dataset_fill(&part, NULL, 1, x);
	assert_true(part.labels[1] == wanted && x[5] == (float)(wanted + 1) / 255.0f);
	dataset_deinit(&part);
	/* What the head says and the file has must be the same to the byte. */
	struct why why = {""};
	assert_int_equal(truncate(from.images, sizeof(head) + (off_t)COUNT * WIDTH + 1), 0);
	assert_int_equal(source_load(&d, &from, NULL, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "images: bytes follow the data"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(npy_types),
	    cmocka_unit_test(npy_shapes),
	    cmocka_unit_test(npy_faults),
	    cmocka_unit_test(not_finite),
	    cmocka_unit_test(idx_types),
	    cmocka_unit_test(targets_and_labels),
	    cmocka_unit_test(mapped_rows),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
