/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "flush.h"
#include "gzip.h"
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
	uint8_t *gz = gzip(images_idx, sizeof(images_idx), &packed);

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
	idx_with(2, 10, ERR_UNSUPPORTED);
	idx_with(2, 0x0d, ERR_INVALID); /* four bytes each are more than there are */
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
	uint8_t *gz = gzip(wraps, sizeof(wraps), &packed);

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
	uint8_t *gz = gzip(images_idx, sizeof(images_idx), &packed);
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
	uint8_t *one = gzip(images_idx, 20, &a), *two = gzip(images_idx + 20, 14, &b);
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
	uint8_t *gz = gzip(data, size, &packed);
	assert_true(packed < size / 900);
	assert_int_equal(images(&d, gz, packed, NULL, 0), ERR_INVALID);
	free(gz);
	free(data);
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
