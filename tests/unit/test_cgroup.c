/* stages: gcc openssl address */
/* Needs the superuser and control groups of version 2 with memory, as no user can give groups away; else it is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cgroup.h"
#include "child.h"
#include "spawner_pool.h"

#define FOLDER "/sys/fs/cgroup"
#define MOST (32u << 20)
#define TASKS 40

static char group[64];

static bool
put(const char *where, const char *name, const char *text)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", where, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return done;
}

/* False: not on this machine. */
static bool
give_away(void)
{
	snprintf(group, sizeof(group), FOLDER "/rivulet-test-%d", (int)getpid());
	if (geteuid() != 0 || access(FOLDER "/cgroup.subtree_control", W_OK) != 0)
		return false;
	(void)put(FOLDER, "cgroup.subtree_control", "+memory +pids");
	return mkdir(group, 0755) == 0 && access(group, W_OK) == 0 &&
	    put(group, "pids.max", "40") && setxattr(group, "user.delegate", "1", 1, 0) == 0;
}

#define NEED(what) \
	do { \
		if (!(what)) \
			return __LINE__; \
	} while (0)

/* Memory of no process. */
static _Noreturn void
take_memory(const struct cgroup *c)
{
	char block[1 << 16];
	int fd = memfd_create("memory", MFD_CLOEXEC);

	memset(block, 1, sizeof(block));
	if (!cgroup_enter(c) || fd < 0)
		_exit(1);
	for (unsigned i = 0; i < 4 * MOST / sizeof(block); i++)
		(void)!write(fd, block, sizeof(block));
	_exit(2);
}

static _Noreturn void
take_tasks(const struct cgroup *c)
{
	unsigned n = 0;
	pid_t pid = 0;

	if (!cgroup_enter(c))
		_exit(0);
	while (n < 2 * TASKS && (pid = fork()) > 0)
		n++;
	if (pid == 0)
		for (;;)
			pause();
	_exit((int)n);
}

static int
limits(void)
{
	struct cgroup_place place;
	struct cgroup c;
	int status;
	struct why why = {""};

	NEED(put(group, "cgroup.procs", "0"));
	NEED(!cgroup_is_prepared(getpid(), "/proc", FOLDER));
	NEED(!cgroup_prepare(&place, "/proc", FOLDER, &why) && strcmp(place.path, group) == 0);
	NEED(cgroup_is_prepared(getpid(), "/proc", FOLDER));
	NEED(!cgroup_make(&c, &place, MOST, &why));
	pid_t pid = fork();
	if (pid == 0)
		take_memory(&c);
	NEED(waitpid(pid, &status, 0) == pid);
	NEED(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	NEED(cgroup_memory_over(&c) >= MOST / 2);
	cgroup_end(&c);
	NEED(!cgroup_make(&c, &place, 0, &why));
	NEED(cgroup_memory_over(&c) == 0);
	pid = fork();
	if (pid == 0)
		take_tasks(&c);
	NEED(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	NEED(WEXITSTATUS(status) > TASKS / 2 && WEXITSTATUS(status) < TASKS - TASKS / 8);
	pid = fork();
	if (pid == 0)
		_exit(0);
	NEED(pid > 0 && waitpid(pid, NULL, 0) == pid);
	char path[PATH_MAX];
	strcpy(path, c.path);
	cgroup_end(&c);
	NEED(access(path, F_OK) != 0 && !*c.path);
	cgroup_end(&c);
	return 0;
}

/* What a program writes to memory that is no process's, by the way that trainers go. */
static int
programs(void)
{
	static const char *const argv[] = {
	    "dd", "if=/dev/zero", "of=/dev/shm/rivulet-test-cgroup", "bs=1M", "count=96", NULL};
	static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
	struct child_result result = {.exited = true};
	struct spawner_pool n;
	struct spawner s;
	struct why why = {""};
	char log[512];

	/* As it was given away. */
	NEED(put(group, "cgroup.subtree_control", "-memory -pids"));
	NEED(put(group, "cgroup.procs", "0"));
	NEED(!spawner_pool_init(&n, NULL, &why) && !spawner_pool_spawner(&n, &s, &why));
	const struct child_options o = {.spawner = &s,
	    .order = {
		.argv = argv, .environment = environment, .directory = "/", .memory_bytes = MOST}};
	NEED(!child_run(&result, &o, log, sizeof(log), &why));
	NEED(!result.exited && result.code == SIGKILL && result.memory >= MOST / 2);
	spawner_deinit(&s);
	spawner_pool_deinit(&n);
	NEED(access("/dev/shm/rivulet-test-cgroup", F_OK) != 0);
	return 0;
}

static void
bounds_programs(void **state)
{
	char below[128];
	int status;
	(void)state;

	bool given = give_away();
	if (!given) {
		(void)rmdir(group);
		print_message("skipped: no control group can be given away here\n");
		skip();
	}
	pid_t pid = fork();
	if (pid == 0) {
		int line = limits();
		_exit(line ? line : programs());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	snprintf(below, sizeof(below), "%s/agent", group);
	for (unsigned i = 0; i < 100 && rmdir(below) != 0 && errno == EBUSY; i++)
		usleep(10000);
	(void)rmdir(group);
	if (status)
		fail_msg("line %d", WEXITSTATUS(status));
}

static void
leaves_others_alone(void **state)
{
	struct cgroup_place place;
	struct cgroup c;
	(void)state;

	assert_int_equal(cgroup_prepare(&place, "/proc", "/tmp", NULL), ERR_UNSUPPORTED);
	assert_int_equal(cgroup_prepare(&place, "/tmp", FOLDER, NULL), ERR_UNSUPPORTED);
	assert_string_equal(place.path, "");
	assert_int_equal(cgroup_make(&c, &place, 0, NULL), ERR_UNSUPPORTED);
	assert_int_equal(cgroup_memory_over(&c), 0);
	cgroup_end(&c);
	assert_false(cgroup_is_prepared(getpid(), "/proc", "/tmp"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bounds_programs),
	    cmocka_unit_test(leaves_others_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
