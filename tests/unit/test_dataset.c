#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "csv.h"
#include "flush.h"
#include "idx.h"

/* Two labels and two pictures of 2 x 3. */
static const uint8_t labels_idx[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 255};
static const uint8_t images_idx[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 3, //
    0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 250, 251, 252, 253, 254, 255};

static enum err
images(struct dataset *d, const void *file, size_t len, const uint32_t *keep, size_t n)
{
	struct flush f = flush_new(file, len);
	enum err e = idx_images(d, f.data, len, keep, n, NULL);

	flush_free(&f);
	return e;
}

static enum err
labels(int32_t **out, size_t *n, const void *file, size_t len)
{
	struct flush f = flush_new(file, len);
	enum err e = idx_labels(out, n, f.data, len, NULL);

	flush_free(&f);
	return e;
}

/* Packs data as one gzip member; the caller frees it. */
static uint8_t *
pack(const void *data, size_t len, size_t *packed)
{
	z_stream z = {0};
	uint8_t *out = malloc(len + 1024);

	assert_non_null(out);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)len;
	z.next_out = out;
	z.avail_out = (uInt)len + 1024;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	*packed = z.total_out;
	deflateEnd(&z);
	return out;
}

static void
idx_read(void **state)
{
	(void)state;
	struct dataset d;
	int32_t *l;
	size_t n;

	assert_int_equal(labels(&l, &n, labels_idx, sizeof(labels_idx)), ERR_OK);
	assert_int_equal(n, 3);
	assert_int_equal(l[0], 7);
	assert_int_equal(l[1], 0);
	assert_int_equal(l[2], 255);
	free(l);
	assert_int_equal(images(&d, images_idx, sizeof(images_idx), NULL, 0), ERR_OK);
	assert_int_equal(d.count, 3);
	assert_int_equal(d.dims, 3);
	assert_int_equal(d.shape[0], 1);
	assert_int_equal(d.shape[1], 2);
	assert_int_equal(d.shape[2], 3);
	assert_int_equal(d.features, 6);
	assert_memory_equal(d.bytes, images_idx + 16, 18);
	dataset_deinit(&d);
	assert_null(d.bytes);
}

static void
idx_keep(void **state)
{
	(void)state;
	static const struct {
		uint32_t keep[4];
		size_t n;
		enum err result;
	} cases[] = {{{0, 2}, 2, ERR_OK}, {{1}, 1, ERR_OK}, {{0}, 0, ERR_OK},
	    {{0, 1, 2}, 3, ERR_OK}, {{3}, 1, ERR_INVALID}, {{1, 0}, 2, ERR_INVALID},
	    {{1, 1}, 2, ERR_INVALID}, {{0, UINT32_MAX}, 2, ERR_INVALID}};
	size_t packed;
	uint8_t *gz = pack(images_idx, sizeof(images_idx), &packed);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int zip = 0; zip < 2; zip++) {
			struct dataset d;
			assert_int_equal(
			    images(&d, zip ? gz : images_idx, zip ? packed : sizeof(images_idx),
				cases[i].keep, cases[i].n),
			    cases[i].result);
			if (cases[i].result)
				continue;
			assert_int_equal(d.count, cases[i].n);
			for (size_t k = 0; k < d.count; k++)
				assert_memory_equal(
				    d.bytes + k * 6, images_idx + 16 + cases[i].keep[k] * 6, 6);
			dataset_deinit(&d);
		}
	}
	free(gz);
}

static void
idx_shapes(void **state)
{
	(void)state;
	static const uint8_t flat[] = {0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2, 9, 8};
	static const uint8_t colour[] = {0, 0, 8, 4, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0,
	    2, //
	    1, 2, 3, 4, 5, 6};
	struct dataset d;

	assert_int_equal(images(&d, flat, sizeof(flat), NULL, 0), ERR_OK);
	assert_int_equal(d.dims, 1);
	assert_memory_equal(d.shape, ((uint32_t[]){2, 1, 1}), 12);
	dataset_deinit(&d);
	assert_int_equal(images(&d, colour, sizeof(colour), NULL, 0), ERR_OK);
	assert_int_equal(d.dims, 3);
	assert_memory_equal(d.shape, ((uint32_t[]){3, 1, 2}), 12);
	dataset_deinit(&d);
}

/* Changes one byte of a copy and expects the result, both for images and (if `of_labels`) labels. */
static void
idx_with(size_t at, uint8_t value, enum err result)
{
	uint8_t copy[sizeof(images_idx)];
	struct dataset d;

	memcpy(copy, images_idx, sizeof(copy));
	copy[at] = value;
	enum err e = images(&d, copy, sizeof(copy), NULL, 0);
	assert_int_equal(e, result);
	if (e == ERR_OK)
		dataset_deinit(&d);
}

static void
idx_lies(void **state)
{
	(void)state;
	struct dataset d;
	int32_t *l;
	size_t n;

	idx_with(0, 1, ERR_INVALID);
	idx_with(2, 9, ERR_UNSUPPORTED);
	idx_with(2, 0x0d, ERR_UNSUPPORTED);
	idx_with(3, 1, ERR_INVALID);
	idx_with(3, 0, ERR_UNSUPPORTED);
	idx_with(3, 5, ERR_UNSUPPORTED);
	idx_with(7, 2, ERR_INVALID);
	idx_with(7, 4, ERR_INVALID);
	idx_with(7, 0, ERR_INVALID);
	idx_with(4, 255, ERR_LIMIT);
	idx_with(5, 1, ERR_INVALID);
	idx_with(8, 255, ERR_INVALID);
	idx_with(15, 0, ERR_INVALID);
	for (size_t len = 0; len < sizeof(images_idx); len++)
		assert_int_equal(images(&d, images_idx, len, NULL, 0), ERR_INVALID);
	for (size_t len = 0; len < sizeof(labels_idx); len++)
		assert_int_equal(labels(&l, &n, labels_idx, len), ERR_INVALID);
	assert_int_equal(labels(&l, &n, images_idx, sizeof(images_idx)), ERR_INVALID);
	assert_int_equal(images(&d, labels_idx, sizeof(labels_idx), NULL, 0), ERR_INVALID);
}

/* Sizes whose product leaves 64 bits, or that only a limit stops. */
static void
idx_huge(void **state)
{
	(void)state;
	static const uint8_t wraps[] = {
	    0, 0, 8, 4, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1};
	uint8_t all[20];
	struct dataset d;
	size_t packed;
	uint8_t *gz = pack(wraps, sizeof(wraps), &packed);

	assert_int_equal(images(&d, wraps, sizeof(wraps), NULL, 0), ERR_LIMIT);
	assert_int_equal(images(&d, gz, packed, NULL, 0), ERR_LIMIT);
	memset(all, 255, sizeof(all));
	memcpy(all, wraps, 4);
	assert_int_equal(images(&d, all, sizeof(all), NULL, 0), ERR_LIMIT);
	free(gz);
}

static void
gzip_damage(void **state)
{
	(void)state;
	size_t packed, n;
	uint8_t *gz = pack(images_idx, sizeof(images_idx), &packed);
	struct dataset d;
	int32_t *l;

	assert_int_equal(images(&d, gz, packed, NULL, 0), ERR_OK);
	assert_memory_equal(d.bytes, images_idx + 16, 18);
	dataset_deinit(&d);
	for (size_t len = 0; len < packed; len++)
		assert_int_equal(images(&d, gz, len, NULL, 0), ERR_INVALID);
	gz[packed - 5] ^= 1; /* CRC */
	assert_int_equal(images(&d, gz, packed, NULL, 0), ERR_INVALID);
	gz[packed - 5] ^= 1;
	gz[packed] = 0;
	assert_int_equal(images(&d, gz, packed + 1, NULL, 0), ERR_INVALID);
	assert_int_equal(labels(&l, &n, gz, packed), ERR_INVALID);
	free(gz);
}

static void
gzip_members(void **state)
{
	(void)state;
	uint8_t joined[256];
	size_t a, b;
	uint8_t *one = pack(images_idx, 20, &a), *two = pack(images_idx + 20, 14, &b);
	struct dataset d;

	memcpy(joined, one, a);
	memcpy(joined + a, two, b);
	assert_int_equal(images(&d, joined, a + b, NULL, 0), ERR_OK);
	assert_memory_equal(d.bytes, images_idx + 16, 18);
	dataset_deinit(&d);
	free(one);
	free(two);
}

/* 64 MiB of zeros behind an honest header that claims three small pictures: read to their end, not to the bomb's. */
static void
gzip_bomb(void **state)
{
	(void)state;
	size_t size = 64u << 20, packed;
	uint8_t *data = calloc(1, size);
	struct dataset d;

	assert_non_null(data);
	memcpy(data, images_idx, 16);
	uint8_t *gz = pack(data, size, &packed);
	assert_true(packed < size / 900);
	assert_int_equal(images(&d, gz, packed, NULL, 0), ERR_INVALID);
	/* One line that never ends. */
	struct csv_form how = {0};
	memset(data, '1', size);
	free(gz);
	gz = pack(data, size, &packed);
	assert_int_equal(csv_read(&d, gz, packed, &how, NULL, 0, NULL), ERR_LIMIT);
	free(gz);
	free(data);
}

static enum err
csv(struct dataset *d, const char *text, const struct csv_form *how, struct why *why)
{
	struct flush f = flush_new(text, strlen(text));
	enum err e = csv_read(d, f.data, strlen(text), how, NULL, 0, why);

	flush_free(&f);
	return e;
}

static void
csv_plain(void **state)
{
	(void)state;
	static const char *const texts[] = {
	    "1,2,0\n-3.5,1e2,1\n0.25,.5,2\n",
	    "1;2;0\r\n-3.5;1e2;1\r\n0.25;.5;2",
	    "\357\273\277a,b,class\n1 ,\t2, 0\n\n-3.5,+100.0,1.0\n   \n0.25,\"0.5\",2\n",
	    "\"x \"\"1\"\"\", \"y,z\" ,c\n1,2,0\n-3.5,0.1e+3,1\n2.5e-1,5e-1,2\n",
	};
	static const float expected[] = {1, 2, -3.5f, 100, 0.25f, 0.5f};
	struct csv_form how = {0};

	for (size_t i = 0; i < 4; i++) {
		struct dataset d;
		struct why why = {""};
		assert_int_equal(csv(&d, texts[i], &how, &why), ERR_OK);
		assert_int_equal(d.count, 3);
		assert_int_equal(d.features, 2);
		assert_int_equal(d.dims, 1);
		assert_memory_equal(d.shape, ((uint32_t[]){2, 1, 1}), 12);
		assert_memory_equal(d.floats, expected, sizeof(expected));
		assert_memory_equal(d.labels, ((int32_t[]){0, 1, 2}), 12);
		assert_int_equal(d.classes, 3);
		assert_null(d.targets);
		assert_null(d.bytes);
		dataset_deinit(&d);
	}
}

static void
csv_label_column(void **state)
{
	(void)state;
	static const struct {
		const char *label;
		int32_t first; /* -1: refused */
	} cases[] = {{NULL, 3}, {"last", 3}, {"0", 1}, {"1", 2}, {"2", 3}, {"kind", 2}, {"b c", 3},
	    {"3", -1}, {"none", -1}, {"-1", -1}, {"Kind", -1}};
	struct why why;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct csv_form how = {.label = cases[i].label};
		struct dataset d;
		int32_t *l;
		size_t n;
		static const char text[] = "a,kind,\"b c\"\n1,2,3\n4,5,6\n";
		enum err e = csv(&d, text, &how, &why);
		assert_int_equal(e, cases[i].first < 0 ? ERR_INVALID : ERR_OK);
		assert_int_equal(csv_labels(&l, &n, text, strlen(text), &how, NULL), e);
		if (e)
			continue;
		assert_int_equal(d.labels[0], cases[i].first);
		assert_true(d.floats[0] == (cases[i].first == 1 ? 2 : 1));
		assert_int_equal(n, 2);
		assert_int_equal(l[0], cases[i].first);
		assert_int_equal(l[1], cases[i].first + 3);
		free(l);
		dataset_deinit(&d);
	}
}

/* A header name wins over a number, and "last" may be a name too. */
static void
csv_header_wins(void **state)
{
	(void)state;
	struct csv_form how = {.label = "0"};
	struct dataset d;

	assert_int_equal(csv(&d, "x,0,last\n1,2,3\n", &how, NULL), ERR_OK);
	assert_int_equal(d.labels[0], 2);
	dataset_deinit(&d);
	how.label = "last";
	assert_int_equal(csv(&d, "last,x,y\n1,2,3\n", &how, NULL), ERR_OK);
	assert_int_equal(d.labels[0], 1);
	dataset_deinit(&d);
}

static void
csv_regression(void **state)
{
	(void)state;
	struct csv_form how = {.label = "0", .regression = true};
	static const char text[] = "-1.5,2\n1e3,4\n";
	struct dataset d;
	int32_t *l;
	size_t n;

	assert_int_equal(csv(&d, text, &how, NULL), ERR_OK);
	assert_int_equal(d.target_width, 1);
	assert_true(d.targets[0] == -1.5f && d.targets[1] == 1000);
	assert_true(d.floats[0] == 2 && d.floats[1] == 4);
	assert_null(d.labels);
	assert_int_equal(d.classes, 0);
	dataset_deinit(&d);
	assert_int_equal(csv_labels(&l, &n, text, strlen(text), &how, NULL), ERR_OK);
	assert_int_equal(n, 2);
	assert_int_equal(l[0], 0);
	free(l);
}

static void
csv_faults(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} cases[] = {
	    {"", "no rows"},
	    {"\n\n  \n", "no rows"},
	    {"a,b\n", "no rows"},
	    {"1\n2\n", "single column"},
	    {"1,2\n3,x\n", "line 2, column 2"},
	    {"1,2\n\n3,4\nx,4\n", "line 4, column 1"},
	    {"1,2\n,4\n", "line 2, column 1: the field is empty"},
	    {"1,2\n3,\n", "line 2, column 2: the field is empty"},
	    {"1,2\n3\n", "line 2 has fewer fields"},
	    {"1,2\n3,4,5\n", "line 2 has more fields"},
	    {"1,2\n3,4,\n", "line 2 has more fields"},
	    {"1,2\n1e999,4\n", "line 2, column 1"},
	    {"1,2\n1e39,4\n", "line 2, column 1: the number is too large"},
	    {"1,2\nnan,4\n", "line 2, column 1"},
	    {"1,2\n0x10,4\n", "line 2, column 1"},
	    {"1,2\n1.2.3,4\n", "line 2, column 1"},
	    {"1,2\n--1,4\n", "line 2, column 1"},
	    {"1,2\n.,4\n", "line 2, column 1"},
	    {"1,2\n-,4\n", "line 2, column 1"},
	    {"1,2\n3 4,4\n", "line 2, column 1"},
	    {"1,2\n\"3,4\n", "line 2, column 1: the quotes"},
	    {"1,2\n\"3\"x,4\n", "line 2, column 1: the quotes"},
	    {"1,2\n3,-1\n", "line 2, column 2: a class"},
	    {"1,2\n3,1.5\n", "line 2, column 2: a class"},
	    {"1,2\n3,4096\n", "line 2, column 2: a class"},
	    {"1;2\n3,5;1\n", "line 2, column 1"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct csv_form how = {0};
		struct why why = {""};
		struct dataset d;
		assert_int_equal(csv(&d, cases[i].text, &how, &why), ERR_INVALID);
		if (!strstr(why.text, cases[i].says))
			fail_msg(
			    "case %zu: \"%s\" does not say \"%s\"", i, why.text, cases[i].says);
	}
}

static void
csv_zero_byte(void **state)
{
	(void)state;
	struct csv_form how = {0};
	struct dataset d;
	struct why why;

	assert_int_equal(csv_read(&d, "1,2\n3\0,4\n", 10, &how, NULL, 0, &why), ERR_INVALID);
	assert_string_equal(why.text, "line 2 holds a zero byte");
}

static void
csv_keep(void **state)
{
	(void)state;
	static const char text[] = "x,c\n10,0\n\n11,1\nbad,row,here\n13,3\n";
	static const uint32_t keep[] = {1, 3}, past[] = {0, 4}, back[] = {3, 1};
	struct csv_form how = {0};
	struct dataset d;
	int32_t *l;
	size_t n;

	assert_int_equal(csv_read(&d, text, strlen(text), &how, keep, 2, NULL), ERR_OK);
	assert_int_equal(d.count, 2);
	assert_true(d.floats[0] == 11 && d.floats[1] == 13);
	assert_int_equal(d.labels[1], 3);
	dataset_deinit(&d);
	assert_int_equal(csv_read(&d, text, strlen(text), &how, keep, 0, NULL), ERR_OK);
	assert_int_equal(d.count, 0);
	dataset_deinit(&d);
	assert_int_equal(csv_read(&d, text, strlen(text), &how, past, 2, NULL), ERR_INVALID);
	assert_int_equal(csv_read(&d, text, strlen(text), &how, back, 2, NULL), ERR_INVALID);
	assert_int_equal(csv_labels(&l, &n, text, strlen(text), &how, NULL), ERR_INVALID);
}

static void
csv_row_limit(void **state)
{
	(void)state;
	struct csv_form how = {.max_rows = 2};
	struct dataset d;
	int32_t *l;
	size_t n;

	assert_int_equal(csv(&d, "1,2\n3,4\n5,6\n", &how, NULL), ERR_LIMIT);
	assert_int_equal(csv_labels(&l, &n, "1,2\n3,4\n5,6\n", 12, &how, NULL), ERR_LIMIT);
	assert_int_equal(csv(&d, "1,2\n3,4\n\n", &how, NULL), ERR_OK);
	dataset_deinit(&d);
}

/* Against strtod in the C locale, which rounds correctly: random decimal texts of all shapes, in a locale with a decimal comma
 * where the machine has one. */
static void
csv_numbers(void **state)
{
	(void)state;
	struct csv_form how = {.regression = true};
	char text[128], number[64];

	srandom(1);
	for (int i = 0; i < 20000; i++) {
		int whole = (int)(random() % 18), behind = (int)(random() % 24), n = 0;
		n += sprintf(number + n, "%s", i % 3 ? "" : "-");
		for (int k = 0; k < whole; k++)
			number[n++] = (char)('0' + random() % 10);
		if (behind > 0)
			number[n++] = '.';
		for (int k = 0; k < behind; k++)
			number[n++] = (char)('0' + random() % 10);
		if (whole + behind == 0)
			number[n++] = '7';
		number[n] = '\0';
		float expected = (float)strtod(number, NULL);
		sprintf(text, "1,%s\n", number);
		struct dataset d;
		setlocale(LC_NUMERIC, "de_DE.UTF-8");
		enum err e = csv(&d, text, &how, NULL);
		setlocale(LC_NUMERIC, "C");
		assert_int_equal(e, ERR_OK);
		if (memcmp(d.targets, &expected, 4) != 0)
			fail_msg("%s", number);
		dataset_deinit(&d);
	}
}

static void
subset(void **state)
{
	(void)state;
	static const uint32_t pick[] = {2, 0}, bad[] = {0, 3};
	struct dataset d, s;
	int32_t *l;
	size_t n;

	assert_int_equal(images(&d, images_idx, sizeof(images_idx), NULL, 0), ERR_OK);
	assert_int_equal(labels(&l, &n, labels_idx, sizeof(labels_idx)), ERR_OK);
	d.labels = l;
	d.classes = 256;
	assert_int_equal(dataset_subset(&s, &d, pick, 2), ERR_OK);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.classes, 256);
	assert_int_equal(s.bytes[0], 250);
	assert_int_equal(s.bytes[6], 0);
	assert_int_equal(s.labels[0], 255);
	assert_int_equal(s.labels[1], 7);
	dataset_deinit(&s);
	assert_int_equal(dataset_subset(&s, &d, bad, 2), ERR_INVALID);
	assert_int_equal(dataset_subset(&s, &d, NULL, 0), ERR_OK);
	assert_int_equal(s.count, 0);
	dataset_deinit(&s);
	dataset_deinit(&d);
}

/* Every byte value, for widths around the vectorised step, against the formula in plain scalar code. */
static void
fill_bytes(void **state)
{
	(void)state;
	static uint8_t bytes[600];
	static float out[300 + 1];
	struct data_spec spec = {.channels = 1, .mean = {0.1307f}, .std = {0.3081f}};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t width = 1; width <= 300; width++) {
		struct dataset d = {.count = 2, .features = width, .bytes = bytes};
		out[width] = 77;
		for (int with = 0; with < 2; with++) {
			dataset_fill(&d, with ? &spec : NULL, 1, out);
			for (size_t i = 0; i < width; i++) {
				volatile float x = (float)bytes[width + i] / 255.0f;
				volatile float centred = x - 0.1307f;
				assert_true(out[i] == (with ? centred / 0.3081f : x));
			}
		}
		assert_true(out[width] == 77);
	}
}

static void
fill_floats(void **state)
{
	(void)state;
	static float values[] = {1, 2, 3, 4, 5, 6};
	struct dataset d = {
	    .count = 1, .shape = {3, 1, 2}, .dims = 3, .features = 6, .floats = values};
	struct data_spec spec = {.channels = 3, .mean = {1, 2, 3}, .std = {1, 2, 0.5f}};
	float out[6];

	dataset_fill(&d, NULL, 0, out);
	assert_memory_equal(out, values, sizeof(out));
	dataset_fill(&d, &spec, 0, out);
	assert_memory_equal(out, ((float[]){0, 1, 0.5f, 1, 4, 6}), sizeof(out));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(idx_read),
	    cmocka_unit_test(idx_keep),
	    cmocka_unit_test(idx_shapes),
	    cmocka_unit_test(idx_lies),
	    cmocka_unit_test(idx_huge),
	    cmocka_unit_test(gzip_damage),
	    cmocka_unit_test(gzip_members),
	    cmocka_unit_test(gzip_bomb),
	    cmocka_unit_test(csv_plain),
	    cmocka_unit_test(csv_label_column),
	    cmocka_unit_test(csv_header_wins),
	    cmocka_unit_test(csv_regression),
	    cmocka_unit_test(csv_faults),
	    cmocka_unit_test(csv_zero_byte),
	    cmocka_unit_test(csv_keep),
	    cmocka_unit_test(csv_row_limit),
	    cmocka_unit_test(csv_numbers),
	    cmocka_unit_test(subset),
	    cmocka_unit_test(fill_bytes),
	    cmocka_unit_test(fill_floats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
