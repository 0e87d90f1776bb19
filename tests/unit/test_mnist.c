/* stages: gcc clang address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "idx.h"

#define DIR "../shared/data/mnist/"

static char *
slurp(const char *name, size_t *len)
{
	char path[128];
	char *data;
	struct why why = {""};

	snprintf(path, sizeof(path), DIR "%s", name);
	if (file_read(path, 1 << 28, &data, len, &why))
		fail_msg("%s", why.text);
	return data;
}

/* The number of each digit in the training set and the first labels, as published with the data. */
static void
train_labels(void **state)
{
	(void)state;
	static const size_t expected[] = {
	    5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
	size_t counts[10] = {0}, len, n;
	char *file = slurp("train-labels-idx1-ubyte.gz", &len);
	int32_t *labels;

	assert_int_equal(idx_labels(&labels, &n, file, len, NULL), ERR_OK);
	assert_int_equal(n, 60000);
	assert_memory_equal(labels, ((int32_t[]){5, 0, 4, 1, 9}), 20);
	for (size_t i = 0; i < n; i++) {
		assert_in_range(labels[i], 0, 9);
		counts[labels[i]]++;
	}
	assert_memory_equal(counts, expected, sizeof(counts));
	free(labels);
	free(file);
}

/* Mean 0.1307 and standard deviation 0.3081 of the training pixels are the well-known figures. */
static void
train_images(void **state)
{
	(void)state;
	size_t len;
	char *file = slurp("train-images-idx3-ubyte.gz", &len);
	double sum = 0, squares = 0;
	struct dataset d;
	float x[784];

	assert_int_equal(idx_images(&d, file, len, NULL, 0, NULL), ERR_OK);
	assert_int_equal(d.count, 60000);
	assert_int_equal(d.features, 784);
	assert_memory_equal(d.shape, ((uint32_t[]){1, 28, 28}), 12);
	for (uint32_t i = 0; i < 60000; i++) {
		dataset_fill(&d, NULL, i, x);
		for (size_t k = 0; k < 784; k++) {
			sum += x[k];
			squares += (double)x[k] * x[k];
		}
	}
	double mean = sum / (60000.0 * 784);
	assert_true(fabs(mean - 0.1307) < 5e-5);
	assert_true(fabs(sqrt(squares / (60000.0 * 784) - mean * mean) - 0.3081) < 5e-5);
	dataset_deinit(&d);
	free(file);
}

/* A share of the set is the same as picking it from the whole. */
static void
test_share(void **state)
{
	(void)state;
	uint32_t keep[600];
	size_t len;
	char *file = slurp("t10k-images-idx3-ubyte.gz", &len);
	struct dataset whole, share;

	for (uint32_t i = 0; i < 600; i++)
		keep[i] = i * 16 + i % 7;
	assert_int_equal(idx_images(&whole, file, len, NULL, 0, NULL), ERR_OK);
	assert_int_equal(whole.count, 10000);
	assert_int_equal(idx_images(&share, file, len, keep, 600, NULL), ERR_OK);
	assert_int_equal(share.count, 600);
	for (size_t i = 0; i < 600; i++)
		assert_memory_equal(share.bytes + i * 784, whole.bytes + keep[i] * 784, 784);
	dataset_deinit(&whole);
	dataset_deinit(&share);
	free(file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(train_labels),
	    cmocka_unit_test(train_images),
	    cmocka_unit_test(test_share),
	};
	if (access(DIR "train-images-idx3-ubyte.gz", R_OK) != 0) {
		printf("no MNIST files in " DIR "\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
