/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "notify.h"

/* A bound datagram socket; name as in $NOTIFY_SOCKET. */
static int
manager(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0 && len < sizeof(a.sun_path));
	memcpy(a.sun_path, name, len);
	if (name[0] == '@')
		a.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&a,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
	    0);
	return fd;
}

static void
expect(int fd, const char *text)
{
	char got[256];
	ssize_t n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);

	assert_true(n >= 0);
	got[n] = '\0';
	assert_string_equal(got, text);
}

static void
test_path_socket(void **state)
{
	char dir[] = "/tmp/test_notify.XXXXXX", path[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	int fd = manager(path);
	setenv("NOTIFY_SOCKET", path, 1);
	notify_send("READY=1\nSTATUS=2 jobs");
	notify_send("WATCHDOG=1");
	expect(fd, "READY=1\nSTATUS=2 jobs");
	expect(fd, "WATCHDOG=1");
	close(fd);
	notify_send("nobody listens");
	unlink(path);
	notify_send("nothing there");
	rmdir(dir);
}

static void
test_abstract_socket(void **state)
{
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "@test_notify/%d", (int)getpid());
	int fd = manager(name);
	setenv("NOTIFY_SOCKET", name, 1);
	notify_send("STOPPING=1");
	expect(fd, "STOPPING=1");
	/* A manager that no longer reads must not stop us. */
	for (int i = 0; i < 10000; i++)
		notify_send("WATCHDOG=1");
	expect(fd, "WATCHDOG=1");
	close(fd);
}

static void
test_no_socket(void **state)
{
	char longer[300];

	(void)state;
	unsetenv("NOTIFY_SOCKET");
	notify_send("READY=1");
	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	const char *const odd[] = {"", "@", "/", "relative", "vsock:2:1234", longer};
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		setenv("NOTIFY_SOCKET", odd[i], 1);
		notify_send("READY=1");
	}
	unsetenv("NOTIFY_SOCKET");
}

static void
test_watchdog(void **state)
{
	static const struct {
		const char *usec;
		uint64_t ms;
	} cases[] = {{"30000000", 15000}, {"3000", 1}, {"1", 1}, {"0", 0}, {"-5", 0}, {"", 0},
	    {"1s", 0}, {"99999999999999999999", 0}};
	char pid[16];

	(void)state;
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(notify_watchdog_ms(), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv("WATCHDOG_USEC", cases[i].usec, 1);
		assert_int_equal(notify_watchdog_ms(), cases[i].ms);
	}
	setenv("WATCHDOG_USEC", "2000000", 1);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_watchdog_ms(), 1000);
	snprintf(pid, sizeof(pid), "%d", (int)getpid() + 1);
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_watchdog_ms(), 0);
	setenv("WATCHDOG_PID", "me", 1);
	assert_int_equal(notify_watchdog_ms(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_path_socket),
	    cmocka_unit_test(test_abstract_socket),
	    cmocka_unit_test(test_no_socket),
	    cmocka_unit_test(test_watchdog),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
