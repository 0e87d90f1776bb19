/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backoff.h"
#include "file.h"
#include "uplink.h"

/* NetworkManager's one property, on a bus of dbus-daemon's. What libsystemd needs of it for a service is looked up as it is there. */
static char root[] = "/tmp/rivulet.bus.XXXXXX";
static pid_t daemon_pid;
static void *library;

static const char config[] =
    "<busconfig><type>session</type><listen>unix:path=%s/run/dbus/system_bus_socket</listen>"
    "<auth>EXTERNAL</auth><policy context=\"default\"><allow send_destination=\"*\" "
    "eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>\n";

/* A pointer to a function of libsystemd. */
#define FIND(result, name, ...) \
	result (*name)(__VA_ARGS__); \
	*(void **)(void *)&name = dlsym(library, #name); \
	assert_non_null(*(void **)(void *)&name)

static int
answer(void *message, void *value, void *error)
{
	FIND(int, sd_bus_message_is_method_call, void *, const char *, const char *);
	FIND(int, sd_bus_reply_method_return, void *, const char *, ...);

	(void)error;
	if (!sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Properties", "Get"))
		return 0;
	sd_bus_reply_method_return(message, "v", "u", *(uint32_t *)value);
	return 1;
}

/* Until it is killed. Writes a byte when it can be asked. */
static void
serve(uint32_t value, int ready)
{
	char address[128];
	void *bus = NULL;
	FIND(int, sd_bus_new, void **);
	FIND(int, sd_bus_set_address, void *, const char *);
	FIND(int, sd_bus_set_bus_client, void *, int);
	FIND(int, sd_bus_start, void *);
	FIND(int, sd_bus_request_name, void *, const char *, uint64_t);
	FIND(int, sd_bus_add_filter, void *, void **, int (*)(void *, void *, void *), void *);
	FIND(int, sd_bus_process, void *, void **);
	FIND(int, sd_bus_wait, void *, uint64_t);

	snprintf(address, sizeof(address), "unix:path=%s/run/dbus/system_bus_socket", root);
	if (sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address) < 0 ||
	    sd_bus_set_bus_client(bus, 1) < 0 || sd_bus_start(bus) < 0 ||
	    sd_bus_add_filter(bus, NULL, answer, &value) < 0 ||
	    sd_bus_request_name(bus, "org.freedesktop.NetworkManager", 0) < 0 ||
	    write(ready, "x", 1) != 1)
		_exit(1);
	for (;;)
		if (sd_bus_process(bus, NULL) == 0)
			sd_bus_wait(bus, UINT64_MAX);
}

static pid_t
manager(uint32_t value)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0)
		serve(value, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	return pid;
}

static void
end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool
start_daemon(void)
{
	char path[128], text[1024], socket[128], option[160];

	if (!mkdtemp(root))
		return false;
	snprintf(path, sizeof(path), "%s/run/dbus", root);
	snprintf(socket, sizeof(socket), "%s/run/dbus/system_bus_socket", root);
	if (file_mkdirs(path, 0755, NULL))
		return false;
	snprintf(path, sizeof(path), "%s/bus.conf", root);
	snprintf(option, sizeof(option), "--config-file=%s", path);
	snprintf(text, sizeof(text), config, root);
	if (file_write(path, text, strlen(text), 0644, NULL))
		return false;
	daemon_pid = fork();
	if (daemon_pid == 0) {
		execlp(
		    "dbus-daemon", "dbus-daemon", option, "--nofork", "--nosyslog", (char *)NULL);
		_exit(127);
	}
	for (double until = backoff_now() + 30; access(socket, F_OK) != 0;) {
		if (backoff_now() > until || waitpid(daemon_pid, NULL, WNOHANG) != 0)
			return false;
		usleep(20000);
	}
	return true;
}

static void
what_it_says(void **state)
{
	static const bool metered[] = {
	    [LINK_YES] = true, [LINK_NO] = false, [LINK_GUESS_YES] = true, [LINK_GUESS_NO] = false};
	struct uplink_bus bus = {.library = NULL};
	struct link l;

	(void)state;
	for (uint32_t value = LINK_YES; value <= LINK_GUESS_NO; value++) {
		pid_t pid = manager(value);
		uplink_read(&l, &bus, root);
		assert_int_equal(l.answer, value);
		assert_int_equal(l.metered, metered[value]);
		end(pid);
	}
	uplink_bus_deinit(&bus);
}

static void
nobody_to_ask(void **state)
{
	struct uplink_bus bus = {.library = NULL};

	(void)state;
	/* A bus without NetworkManager, one that says what it may not, and no bus. */
	assert_int_equal(uplink_ask(&bus, root), LINK_UNKNOWN);
	pid_t pid = manager(77);
	assert_int_equal(uplink_ask(&bus, root), LINK_UNKNOWN);
	end(pid);
	assert_int_equal(uplink_ask(&bus, "/nowhere"), LINK_UNKNOWN);
	uplink_bus_deinit(&bus);
}

/* One that is stopped: it must not keep a device from its work for long. */
static void
nobody_answers(void **state)
{
	struct uplink_bus bus = {.library = NULL};
	pid_t pid = manager(LINK_YES);
	double began = backoff_now();

	(void)state;
	kill(pid, SIGSTOP);
	assert_int_equal(uplink_ask(&bus, root), LINK_UNKNOWN);
	assert_true(backoff_now() - began < 20);
	end(pid);
	uplink_bus_deinit(&bus);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_it_says),
	    cmocka_unit_test(nobody_to_ask),
	    cmocka_unit_test(nobody_answers),
	};
	int failed = 77;

	library = dlopen("libsystemd.so.0", RTLD_NOW);
	bool started = library && start_daemon();
	if (started)
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	else
		printf("needs libsystemd and dbus-daemon\n");
	if (daemon_pid > 0 && started)
		end(daemon_pid);
	if (file_remove_dir(root, NULL) && started)
		return 1;
	return failed;
}
