/* stages: gcc address */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine.h"
#include "file.h"

static char dir[64];

static const char *
at(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *out = path[next++ % 4];

	snprintf(out, sizeof(path[0]), "%s/%s", dir, name);
	return out;
}

static int
set_up(void **state)
{
	(void)state;
	static const char *const dirs[] = {
	    "open", "open/secret", "open/secret/task", "closed", "sockets"};
	static const char *const files[] = {
	    "open/file", "open/secret/key", "open/secret/task/file", "closed/file"};
	strcpy(dir, "/tmp/test_confine.XXXXXX");
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(mkdir(at(dirs[i]), 0700), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(file_write(at(files[i]), "x", 1, 0600, NULL), ERR_OK);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	return file_remove_dir(dir, NULL) != ERR_OK;
}

static bool
can_open(const char *name, int flags)
{
	int fd = open(at(name), flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A domain is for life: each test enters its own in a child, which exits with the line that failed. */
static void
in_child(int (*test)(void))
{
	int status;

	if (confine_version() == 0) {
		print_message("skipped: this kernel has no Landlock\n");
		skip();
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(test());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("line %d", WEXITSTATUS(status));
}

#define NEED(what) \
	do { \
		if (!(what)) \
			return __LINE__; \
	} while (0)

static int
files(void)
{
	struct confine c;
	char secret[64];
	pid_t parent = getppid();

	snprintf(secret, sizeof(secret), "%s", at("open/secret"));
	NEED(!confine_init(&c, CONFINE_FILES, secret, NULL));
	NEED(!confine_allow(&c, at("open"), CONFINE_READ, NULL));
	NEED(!confine_allow(&c, at("open/secret/task"), CONFINE_READ | CONFINE_WRITE, NULL));
	NEED(confine_allow(&c, secret, CONFINE_READ, NULL) == ERR_DENIED);
	NEED(confine_allow(&c, at("none"), CONFINE_READ, NULL) == ERR_NOTFOUND);
	NEED(!confine_allow(&c, "/dev", CONFINE_DEVICES, NULL));
	NEED(!confine_enter(&c, NULL));
	confine_deinit(&c);
	NEED(can_open("open/file", O_RDONLY) && !can_open("open/file", O_WRONLY));
	NEED(!can_open("open/new", O_WRONLY | O_CREAT));
	NEED(!can_open("open/secret/key", O_RDONLY) && !can_open("closed/file", O_RDONLY));
	NEED(can_open("open/secret/task/file", O_RDWR));
	NEED(can_open("open/secret/task/new", O_WRONLY | O_CREAT));
	NEED(rename(at("open/secret/task/new"), at("open/secret/task/newer")) == 0);
	NEED(rename(at("open/secret/task/newer"), at("closed/newer")) != 0);
	NEED(confine_version() < 3 || truncate(at("open/file"), 0) != 0);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	NEED(null >= 0 && open("/dev/made", O_WRONLY | O_CREAT, 0600) < 0);
	NEED(confine_version() < 6 || kill(parent, 0) != 0);
	return 0;
}

/* Everything but symbolic links, also one from elsewhere. */
static int
no_links(void)
{
	struct confine c;

	NEED(!confine_init(&c, CONFINE_FILES, NULL, NULL));
	NEED(!confine_allow(&c, at("open"), CONFINE_READ | CONFINE_WRITE, NULL));
	NEED(!confine_allow(
	    &c, at("closed"), CONFINE_READ | CONFINE_WRITE | CONFINE_NO_LINKS, NULL));
	NEED(!confine_enter(&c, NULL));
	confine_deinit(&c);
	NEED(symlink("file", at("open/link")) == 0);
	NEED(symlink("file", at("closed/link")) != 0);
	NEED(rename(at("open/link"), at("closed/link")) != 0);
	NEED(linkat(AT_FDCWD, at("open/link"), AT_FDCWD, at("closed/link"), 0) != 0);
	NEED(unlink(at("open/link")) == 0);
	NEED(can_open("closed/new", O_WRONLY | O_CREAT) && unlink(at("closed/new")) == 0);
	NEED(mkdir(at("closed/directory"), 0700) == 0 && rmdir(at("closed/directory")) == 0);
	return 0;
}

/* Within one directory things are renamed; what moves, moves between others. */
static int
no_moves(void)
{
	struct confine c;

	NEED(!confine_init(&c, CONFINE_FILES, NULL, NULL));
	NEED(!confine_allow(&c, at("open"), CONFINE_READ | CONFINE_WRITE, NULL));
	NEED(!confine_allow(
	    &c, at("closed"), CONFINE_READ | CONFINE_WRITE | CONFINE_NO_MOVES, NULL));
	NEED(!confine_enter(&c, NULL));
	confine_deinit(&c);
	NEED(rename(at("closed/file"), at("closed/other")) == 0);
	NEED(mkdir(at("closed/inner"), 0700) == 0);
	NEED(rename(at("closed/other"), at("closed/inner/other")) != 0);
	NEED(link(at("closed/other"), at("closed/inner/other")) != 0);
	NEED(rename(at("open/secret"), at("closed/secret")) != 0);
	NEED(rename(at("closed/other"), at("open/other")) != 0);
	NEED(rename(at("open/file"), at("open/secret/file")) == 0 || confine_version() < 2);
	return 0;
}

/* An address without a file. */
static bool
reaches(int socket, int (*how)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", dir);
	return how(socket, (const struct sockaddr *)&a,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(dir))) == 0;
}

static int
sockets(void)
{
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int before = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct confine c;

	NEED(reaches(listener, bind) && listen(listener, 4) == 0 && reaches(before, connect));
	NEED(!confine_init(&c, CONFINE_FILES, NULL, NULL) && !confine_enter(&c, NULL));
	confine_deinit(&c);
	int after = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	NEED(!reaches(after, connect));
	return 0;
}

/* Reading stays as it was. */
static int
writes(void)
{
	struct confine c;

	NEED(!confine_init(&c, CONFINE_WRITES, NULL, NULL));
	NEED(!confine_allow(&c, at("open"), CONFINE_WRITE, NULL));
	NEED(!confine_allow(&c, at("sockets"), CONFINE_SOCKETS, NULL));
	NEED(!confine_enter(&c, NULL));
	confine_deinit(&c);
	NEED(mknod(at("sockets/one"), S_IFSOCK | 0600, 0) == 0 && unlink(at("sockets/one")) == 0);
	NEED(!can_open("sockets/new", O_WRONLY | O_CREAT));
	NEED(can_open("closed/file", O_RDONLY) && !can_open("closed/file", O_WRONLY));
	NEED(!can_open("closed/new", O_WRONLY | O_CREAT) && unlink(at("closed/file")) != 0);
	NEED(can_open("open/file", O_RDWR) && can_open("open/secret/new", O_WRONLY | O_CREAT));
	NEED(rename(at("open/file"), at("open/secret/file")) == 0 || confine_version() < 2);
	NEED(kill(getppid(), 0) == 0);
	return 0;
}

static void
test_files(void **state)
{
	(void)state;
	in_child(files);
}

static void
test_no_links(void **state)
{
	(void)state;
	in_child(no_links);
}

static void
test_no_moves(void **state)
{
	(void)state;
	in_child(no_moves);
}

static void
test_sockets(void **state)
{
	(void)state;
	if (confine_version() < 6) {
		print_message("skipped: wants Landlock 6, the kernel has %d\n", confine_version());
		skip();
	}
	in_child(sockets);
}

static void
test_writes(void **state)
{
	(void)state;
	in_child(writes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_files, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_writes, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_links, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_moves, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_sockets, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
