/* stages: gcc openssl address */
/* Whose a state directory is, told where that explains an error: as another user, whom only root can become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "permission.h"

#define OTHER 64321
#define HASH "7ad535bb4a4cf2de6e0a298e5f3c95d3a78aba91c91aa9ebd0e88a075e43efc8"

static char dir[40];

static void
path(char out[128], const char *name)
{
	snprintf(out, 128, "%s/%s", dir, name);
}

static int
setup(void **state)
{
	char keys[128], file[128];

	(void)state;
	strcpy(dir, "/tmp/test_permission.XXXXXX");
	if (!mkdtemp(dir) || chmod(dir, 0700))
		return -1;
	path(keys, "keys");
	path(file, "keys/task.key");
	int fd = mkdir(keys, 0755) ? -1 : open(file, O_WRONLY | O_CREAT, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int
teardown(void **state)
{
	char keys[128], file[128];

	(void)state;
	path(keys, "keys");
	path(file, "keys/task.key");
	unlink(file);
	rmdir(keys);
	return rmdir(dir);
}

/* What OTHER is told. */
static void
told(const char *a, const char *b)
{
	struct why why = {"open it: Permission denied"};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		bool other = setgid(OTHER) == 0 && setuid(OTHER) == 0;
		bool kept = other && permission_explain(dir, ERR_IO, &why) == ERR_IO;
		_exit(!kept || write(ends[1], why.text, sizeof(why.text)) != sizeof(why.text));
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(ends[0], why.text, sizeof(why.text)), sizeof(why.text));
	close(ends[0]);
	close(ends[1]);
	assert_non_null(strstr(why.text, "open it: Permission denied"));
	if ((a && !strstr(why.text, a)) || (b && !strstr(why.text, b)))
		fail_msg("\"%s\" or \"%s\" is not in \"%s\"", a, b, why.text);
	if (!a)
		assert_string_equal(why.text, "open it: Permission denied");
}

static void
another_user(void **state)
{
	char file[128], keys[128];

	(void)state;
	if (geteuid() != 0)
		skip();
	told("belongs to root, and this is 64321: run it as root (sudo -u root)", dir);
	/* The directory is right, something in it is not. */
	assert_int_equal(chown(dir, OTHER, OTHER), 0);
	path(keys, "keys");
	assert_int_equal(chown(keys, OTHER, OTHER), 0);
	told("/keys/task.key belongs to root, not to 64321: chown -R 64321", NULL);
	path(file, "keys/task.key");
	assert_int_equal(chown(file, OTHER, OTHER), 0);
	told(NULL, NULL);
	/* A key that is only to be read is none that is in the way. */
	assert_int_equal(chmod(file, 0400), 0);
	told(NULL, NULL);
	assert_int_equal(chmod(file, 0), 0);
	told("/keys/task.key is yours, but its mode is 0000: chmod u+rwX it", NULL);
	assert_int_equal(unlink(file), 0);
	/* A whole name of a model. */
	path(file, "keys/" HASH);
	close(open(file, O_WRONLY | O_CREAT, 0600));
	told("/keys/" HASH " belongs to root, not to 64321: chown -R 64321 /", NULL);
	assert_int_equal(unlink(file), 0);
}

/* No error, nothing to explain; and an error of another kind stays as it is. */
static void
nothing_to_say(void **state)
{
	struct why why = {"x"};

	(void)state;
	assert_int_equal(permission_explain(dir, ERR_OK, &why), ERR_OK);
	assert_int_equal(permission_explain(dir, ERR_CORRUPT, &why), ERR_CORRUPT);
	assert_string_equal(why.text, "x");
	assert_int_equal(permission_explain("/nowhere/at/all", ERR_IO, &why), ERR_IO);
	assert_string_equal(why.text, "x");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(another_user, setup, teardown),
	    cmocka_unit_test_setup_teardown(nothing_to_say, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
