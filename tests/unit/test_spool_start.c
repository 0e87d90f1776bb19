/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "file.h"
#include "start.h"

static const char hex[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

struct fixture {
	char dir[64], path[128];
	struct config config;
	uint8_t want[32], got[32];
	struct why why;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/test_spool_start.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/rivulet.spool-key", f->dir);
	config_defaults(&f->config);
	for (uint8_t i = 0; i < 32; i++)
		f->want[i] = i;
	unsetenv("CREDENTIALS_DIRECTORY");
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(file_empty_dir(f->dir, NULL), ERR_OK);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

/* The result with a key file of these bytes. */
static enum err
with(struct fixture *f, const void *text, size_t len, bool *found)
{
	assert_int_equal(file_write(f->path, text, len, 0600, &f->why), ERR_OK);
	memset(f->got, 0xff, sizeof(f->got));
	return spool_start_secret(&f->config, f->got, found, &f->why);
}

static void
forms(void **state)
{
	struct fixture *f = *state;
	char text[80];
	bool found;

	snprintf(f->config.spool_key_file, sizeof(f->config.spool_key_file), "%s", f->path);
	assert_int_equal(with(f, f->want, 32, &found), ERR_OK);
	assert_true(found);
	assert_memory_equal(f->got, f->want, 32);
	for (int end = 0; end < 3; end++) {
		int n = snprintf(text, sizeof(text), "%s%s", hex,
		    end == 0	   ? ""
			: end == 1 ? "\n"
				   : "\r\n");
		assert_int_equal(with(f, text, (size_t)n, &found), ERR_OK);
		assert_memory_equal(f->got, f->want, 32);
	}
	for (size_t n = 0; n < 70; n++) {
		memset(text, 'g', sizeof(text));
		assert_int_equal(with(f, text, n, &found), n == 32 ? ERR_OK : ERR_DENIED);
		assert_int_equal(found, n == 32);
		if (n != 32)
			assert_non_null(strstr(f->why.text, f->path));
	}
}

static void
places(void **state)
{
	struct fixture *f = *state;
	bool found = true;

	assert_int_equal(spool_start_secret(&f->config, f->got, &found, &f->why), ERR_OK);
	assert_false(found);
	/* Of the service manager, which need not have one. */
	setenv("CREDENTIALS_DIRECTORY", f->dir, 1);
	assert_int_equal(spool_start_secret(&f->config, f->got, &found, &f->why), ERR_OK);
	assert_false(found);
	assert_int_equal(with(f, f->want, 32, &found), ERR_OK);
	assert_true(found);
	/* A file that was named must be there. */
	snprintf(f->config.spool_key_file, sizeof(f->config.spool_key_file), "%s/none", f->dir);
	assert_int_equal(spool_start_secret(&f->config, f->got, &found, &f->why), ERR_NOTFOUND);
	assert_false(found);
	unsetenv("CREDENTIALS_DIRECTORY");
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {WITH(forms), WITH(places)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
