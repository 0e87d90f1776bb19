/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <time.h>
#include <utime.h>

#include "local.h"
#include "trial.h"

#define JOB(tensors) \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}]," \
	"\"loss\":\"cross_entropy\"},\"tensors\":{" tensors "}," \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":[\"a\",\"b\"]}," \
	"\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}}," \
	"\"round\":{\"goal\":1}}"

static void
path_of(const struct trial *t, char out[256])
{
	snprintf(out, 256, "%s/local/22222222222222222222222222222222.weights", t->home);
}

static void
remove_file(const struct trial *t)
{
	char path[256];

	path_of(t, path);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

/* The bias stays here: trained, kept for the next round, no part of the delta. */
static void
test_kept_between_rounds(void **state)
{
	struct trial t;
	struct why why;
	uint8_t base[24], trained[24];

	(void)state;
	trial_init(&t, JOB("\"fc.bias\":\"local\""), "");
	assert_int_equal(t.work.table.elements, 4);
	memcpy(base, t.work.weights, 24);
	assert_int_equal(local_load(&t.work, t.home, &why), ERR_OK);
	assert_memory_equal(base, t.work.weights, 24);
	assert_int_equal(trainer_builtin_run(&t.in, &t.out, &why), ERR_OK);
	assert_int_equal(local_save(&t.work, t.home, &why), ERR_OK);
	memcpy(trained, t.work.weights, 24);
	assert_memory_not_equal(trained + 16, base + 16, 8);
	/* The next round's base model knows nothing of it. */
	memcpy(t.work.weights, base, 24);
	assert_int_equal(local_load(&t.work, t.home, &why), ERR_OK);
	assert_memory_equal(t.work.weights, base, 16);
	assert_memory_equal(t.work.weights + 16, trained + 16, 8);
	remove_file(&t);
	trial_deinit(&t);
}

/* Those bytes as the file change nothing, and the file is named. */
static void
refused(struct trial *t, const uint8_t base[24], const char *data, size_t len)
{
	struct why why = {""};
	char path[256];

	path_of(t, path);
	assert_int_equal(file_write(path, data, len, 0600, NULL), ERR_OK);
	assert_int_equal(local_load(&t->work, t->home, &why), ERR_CORRUPT);
	assert_non_null(strstr(why.text, path));
	assert_memory_equal(t->work.weights, base, 24);
}

static void
test_unfitting_file(void **state)
{
	struct trial t;
	uint8_t base[24];
	char path[256], *data;
	size_t len;

	(void)state;
	trial_init(&t, JOB("\"fc.bias\":\"local\""), "");
	memcpy(base, t.work.weights, 24);
	t.work.weights[20] ^= 1;
	assert_int_equal(local_save(&t.work, t.home, NULL), ERR_OK);
	memcpy(t.work.weights, base, 24);
	path_of(&t, path);
	assert_int_equal(file_read(path, 1000, &data, &len, NULL), ERR_OK);
	assert_int_equal(len, 16 + 8 + 32);
	for (size_t i = 0; i < len; i++) {
		data[i] ^= 1;
		refused(&t, base, data, len);
		data[i] ^= 1;
		refused(&t, base, data, i);
	}
	free(data);
	remove_file(&t);
	trial_deinit(&t);
}

/* A file that the program of commit 402de29 left has no hash: it is read, and has one from then on. */
static void
test_earlier_program(void **state)
{
	static const float want[2] = {-0x1.0378a8p-4f, 0x1.0378a8p-4f};
	struct trial t;
	char path[256], *data;
	size_t len;

	(void)state;
	trial_init(&t, JOB("\"fc.bias\":\"local\""), "");
	assert_int_equal(local_save(&t.work, t.home, NULL), ERR_OK);
	path_of(&t, path);
	assert_int_equal(
	    file_read("tests/vectors/device/local.weights", 1000, &data, &len, NULL), ERR_OK);
	assert_int_equal(len, 16 + 8);
	assert_int_equal(file_write(path, data, len, 0600, NULL), ERR_OK);
	free(data);
	for (int again = 0; again < 2; again++) {
		memset(t.work.weights + 16, 0, 8);
		assert_int_equal(local_load(&t.work, t.home, NULL), ERR_OK);
		assert_memory_equal(t.work.weights + 16, want, 8);
		assert_int_equal(file_read(path, 1000, &data, &len, NULL), ERR_OK);
		assert_int_equal(len, 16 + 8 + 32);
		free(data);
	}
	remove_file(&t);
	trial_deinit(&t);
}

/* A file beside the weights' own, with an age in days; what local_init leaves of it. */
static bool
stays(const struct trial *t, const char *name, int days)
{
	struct utimbuf at = {time(NULL) - days * 86400, time(NULL) - days * 86400};
	char path[256];

	snprintf(path, sizeof(path), "%s/local/%s", t->home, name);
	assert_int_equal(file_write(path, "x", 1, 0600, NULL), ERR_OK);
	assert_int_equal(utime(path, &at), 0);
	assert_int_equal(local_init(t->home, NULL), ERR_OK);
	/* The first time that it looks old it is marked, and looks half as old; a clock that stands ahead for a start or two drops nothing. */
	if (days > 1) {
		assert_int_equal(access(path, F_OK), 0);
		assert_int_equal(local_init(t->home, NULL), ERR_OK);
		assert_int_equal(access(path, F_OK), 0);
		assert_int_equal(utime(path, &at), 0);
		assert_int_equal(local_init(t->home, NULL), ERR_OK);
	}
	bool is = access(path, F_OK) == 0;
	if (is)
		assert_int_equal(unlink(path), 0);
	return is;
}

/* At a start: what a kill left goes at once, a job's weights after a year without it. */
static void
test_cleaned(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, JOB("\"fc.bias\":\"local\""), "");
	assert_int_equal(local_init(t.home, NULL), ERR_OK);
	assert_int_equal(local_save(&t.work, t.home, NULL), ERR_OK);
	assert_true(stays(&t, "33333333333333333333333333333333.weights", 364));
	assert_false(stays(&t, "33333333333333333333333333333333.weights", 366));
	assert_false(stays(&t, "22222222222222222222222222222222.weights.a1B2c3", 0));
	assert_false(stays(&t, "2222222222222222222222222222222.weights", 0));
	t.work.weights[20] ^= 1;
	uint8_t changed = t.work.weights[20];
	assert_int_equal(local_load(&t.work, t.home, NULL), ERR_OK);
	assert_int_equal(t.work.weights[20], changed ^ 1);
	remove_file(&t);
	trial_deinit(&t);
}

static void
test_nothing_local(void **state)
{
	struct trial t;
	char path[256];

	(void)state;
	trial_init(&t, JOB(""), "");
	assert_int_equal(local_save(&t.work, t.home, NULL), ERR_OK);
	path_of(&t, path);
	assert_int_not_equal(access(path, F_OK), 0);
	trial_deinit(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kept_between_rounds),
	    cmocka_unit_test(test_unfitting_file),
	    cmocka_unit_test(test_earlier_program),
	    cmocka_unit_test(test_cleaned),
	    cmocka_unit_test(test_nothing_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
