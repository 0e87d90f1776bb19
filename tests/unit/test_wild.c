/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file.h"
#include "wild.h"

#define DEEP 3000
#define VICTIMS 40
#define NOBODY 65534

static char dir[64];
static int fd;

static int
set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test_wild.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	return wild_directory(&fd, dir, NULL) != ERR_OK;
}

static int
tear_down(void **state)
{
	(void)state;
	close(fd);
	assert_int_equal(chdir("/"), 0);
	return file_remove_dir(dir, NULL) != ERR_OK;
}

static void
put(const char *name, const char *text)
{
	int out;

	assert_int_equal(wild_create(&out, fd, name, NULL), ERR_OK);
	assert_int_equal(write(out, text, strlen(text)), strlen(text));
	close(out);
}

/* What lies in it goes, itself stays. */
static void
empties_directories(void **state)
{
	int inner, deep;

	(void)state;
	put("file", "x");
	assert_int_equal(wild_make(&inner, fd, "inner", NULL), ERR_OK);
	assert_int_equal(wild_make(&deep, inner, "deep", NULL), ERR_OK);
	assert_int_equal(fchmod(deep, 0), 0);
	assert_int_equal(symlinkat("/etc", inner, "link"), 0);
	close(deep);
	assert_int_equal(wild_empty(inner, NULL), ERR_OK);
	assert_int_equal(wild_empty(inner, NULL), ERR_OK);
	close(inner);
	assert_int_equal(access("file", F_OK), 0);
	assert_int_equal(rmdir("inner"), 0);
}

static enum err
opened(const char *name)
{
	struct why why = {""};
	int in;
	enum err e = wild_open(&in, fd, name, 4, &why);

	if (!e) {
		assert_true(fcntl(in, F_GETFL) & O_NONBLOCK);
		close(in);
	} else {
		assert_int_equal(in, -1);
		assert_non_null(strstr(why.text, name));
	}
	return e;
}

static void
opens_files_alone(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int in, s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)state;

	put("file", "text");
	assert_int_equal(opened("file"), ERR_OK);
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(opened("link"), ERR_INVALID);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(opened("pipe"), ERR_INVALID);
	assert_int_equal(mkdir("directory", 0700), 0);
	assert_int_equal(opened("directory"), ERR_INVALID);
	assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof(at)), 0);
	close(s);
	assert_int_equal(opened("socket"), ERR_INVALID);
	if (mknod("device", S_IFCHR | 0600, 1 << 8 | 5) == 0)
		assert_int_equal(opened("device"), ERR_INVALID);
	put("long", "texts");
	assert_int_equal(opened("long"), ERR_LIMIT);
	assert_int_equal(opened("none"), ERR_NOTFOUND);
	assert_int_equal(link("file", "other"), 0);
	assert_int_equal(opened("file"), ERR_INVALID);
	assert_int_equal(opened("other"), ERR_INVALID);
	assert_int_not_equal(wild_directory(&in, "link", NULL), ERR_OK);
	assert_int_equal(wild_create(&in, fd, "link", NULL), ERR_EXISTS);
	assert_int_equal(wild_make(&in, fd, "link", NULL), ERR_EXISTS);
}

static void
reads_once(void **state)
{
	char *data = NULL;
	size_t len;
	(void)state;

	put("file", "text");
	assert_int_equal(wild_read(fd, "file", 4, &data, &len, NULL), ERR_OK);
	assert_int_equal(len, 4);
	assert_string_equal(data, "text");
	free(data);
	put("empty", "");
	assert_int_equal(wild_read(fd, "empty", 4, &data, &len, NULL), ERR_OK);
	assert_string_equal(data, "");
	free(data);
	assert_int_equal(wild_read(fd, "file", 3, &data, &len, NULL), ERR_LIMIT);
	assert_int_equal(symlink("/etc/passwd", "link"), 0);
	assert_int_equal(wild_read(fd, "link", 1 << 20, &data, &len, NULL), ERR_INVALID);
}

static bool
is_there(const char *name)
{
	return faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A directory in a directory and so on, with a file beside each, and every third not to be entered. */
static void
dig(unsigned levels)
{
	int at = openat(fd, ".", O_DIRECTORY | O_CLOEXEC), last = -1;

	for (unsigned i = 0; i < levels; i++) {
		int made;
		assert_int_equal(wild_make(&made, at, i == 0 ? "tree" : "deeper", NULL), ERR_OK);
		close(openat(made, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0));
		assert_int_equal(symlinkat("../../..", made, "link"), 0);
		if (last >= 0)
			close(last);
		last = at;
		at = made;
		if (i % 3 == 2)
			assert_int_equal(fchmod(last, 0), 0);
	}
	close(last);
	close(at);
}

static int
removes_deep(void)
{
	const struct rlimit few = {16, 16};
	struct why why = {""};

	if (getuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
		return 1;
	dig(DEEP);
	if (setrlimit(RLIMIT_NOFILE, &few) != 0)
		return 2;
	if (wild_remove(fd, "tree", &why)) {
		fprintf(stderr, "%s\n", why.text);
		return 3;
	}
	return is_there("tree") ? 4 : 0;
}

/* By somebody whom modes hold up. */
static void
removes_deep_trees(void **state)
{
	int status;
	(void)state;

	assert_int_equal(chmod(dir, 0777), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(removes_deep());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
removes_anything(void **state)
{
	struct why why = {""};
	(void)state;

	put("file", "text");
	assert_int_equal(mkdir("kept", 0700), 0);
	put("kept/file", "text");
	assert_int_equal(symlink("kept", "link"), 0);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(wild_remove(fd, "link", &why), ERR_OK);
	assert_int_equal(wild_remove(fd, "pipe", &why), ERR_OK);
	assert_int_equal(wild_remove(fd, "file", &why), ERR_OK);
	assert_int_equal(wild_remove(fd, "file", &why), ERR_OK);
	assert_false(is_there("link") || is_there("pipe") || is_there("file"));
	assert_true(is_there("kept/file"));
}

/* Now a directory, now a link to what is somebody else's. */
static _Noreturn void
swap(void)
{
	for (;;) {
		(void)!renameat2(AT_FDCWD, "tree/inner", AT_FDCWD, "away", RENAME_EXCHANGE);
		(void)!renameat2(AT_FDCWD, "tree/inner/inner", AT_FDCWD, "away", RENAME_EXCHANGE);
	}
}

static void
fill(const char *where, const char *text)
{
	char name[64];

	for (unsigned i = 0; i < VICTIMS; i++) {
		snprintf(name, sizeof(name), "%s/file%u", where, i);
		int out = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		(void)!write(out, text, strlen(text));
		close(out);
	}
}

/* Nobody else writes text there. */
static bool
is_kept(const char *where)
{
	char name[64];
	struct stat st;
	bool kept = true;

	for (unsigned i = 0; i < VICTIMS; i++) {
		snprintf(name, sizeof(name), "%s/file%u", where, i);
		kept = kept && stat(name, &st) == 0 && st.st_size > 0;
	}
	return kept;
}

static void
touches_nothing_beside(void **state)
{
	struct why why = {""};
	(void)state;

	assert_int_equal(mkdir("precious", 0700), 0);
	fill("precious", "text");
	assert_int_equal(mkdir("precious/inner", 0700), 0);
	fill("precious/inner", "text");
	pid_t pid = fork();
	if (pid == 0)
		swap();
	for (unsigned i = 0; i < 300; i++) {
		(void)!symlink("precious", "away");
		(void)!mkdir("tree", 0700);
		(void)!mkdir("tree/inner", 0700);
		fill("tree/inner", "");
		(void)!mkdir("tree/inner/inner", 0700);
		fill("tree/inner/inner", "");
		(void)!file_remove_dir("tree", NULL);
		(void)!file_remove_dir("away", NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(is_kept("precious") && is_kept("precious/inner"));
	assert_int_equal(file_remove_dir("tree", &why), ERR_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(empties_directories, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(opens_files_alone, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(reads_once, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(removes_anything, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(removes_deep_trees, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(touches_nothing_beside, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
