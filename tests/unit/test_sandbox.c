/* stages: gcc address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox.h"

#define NEWER 471
#define FCHMODAT2 452
#define SETXATTRAT 463
#define REMOVEXATTRAT 466
#define OPEN_TREE_ATTR 467
#define FILE_SETATTR 469
#define HIGH \
	(sizeof(long) > 4 ? 1UL << (8 * sizeof(long) - 32) : 0UL) /* what the kernel cuts off */

static char file[64];

static int
set_up(void **state)
{
	(void)state;
	strcpy(file, "/tmp/test_sandbox.XXXXXX");
	int fd = mkstemp(file);
	assert_true(fd >= 0 && write(fd, "text", 4) == 4 && fchmod(fd, 0600) == 0);
	return close(fd);
}

static int
tear_down(void **state)
{
	(void)state;
	return unlink(file);
}

/* A filter is for life: each test enters its own in a child, which exits with the line that failed. The status. */
static int
status_of(int (*test)(void), bool counted, bool decided)
{
	const struct sandbox_options options = {counted, decided};
	int status;

	if (!sandbox_works()) {
		print_message("skipped: this kernel has no seccomp filters\n");
		skip();
	}
	pid_t pid = fork();
	if (pid == 0) {
		struct why why;
		if (sandbox_enter(&options, &why)) {
			fprintf(stderr, "%s\n", why.text);
			_exit(1);
		}
		_exit(test());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
in_child(int (*test)(void), bool counted, bool decided)
{
	int status = status_of(test, counted, decided);

	if (status)
		fail_msg("line %d, signal %d", WEXITSTATUS(status), WTERMSIG(status));
}

#define NEED(what) \
	do { \
		if (!(what)) \
			return __LINE__; \
	} while (0)

#define FAILS(number, ...) (errno = 0, syscall(__VA_ARGS__) == -1 && errno == (number))
#define REFUSED(...) NEED(FAILS(EPERM, __VA_ARGS__))
#define MISSING(...) NEED(FAILS(ENOSYS, __VA_ARGS__))
/* Which is not EPERM: the arguments are such that nothing comes of it. */
#define ASKED(...) NEED(!FAILS(EPERM, __VA_ARGS__) && !FAILS(ENOSYS, __VA_ARGS__))

static bool
is_untouched(void)
{
	struct stat st;

	return stat(file, &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_uid == getuid() &&
	    st.st_mtime > 1000;
}

static int
paths(void)
{
	const struct timespec times[2] = {{1, 0}, {1, 0}};
	int any = open(file, O_PATH | O_CLOEXEC);

	NEED(syscall(SYS_fchmodat, AT_FDCWD, file, 0666) == 0);
	NEED(syscall(FCHMODAT2, AT_FDCWD, file, 0666, 0) == 0);
	NEED(syscall(FCHMODAT2, any, "", 0666, AT_EMPTY_PATH) == 0);
	NEED(syscall(SYS_fchownat, AT_FDCWD, file, 1, 1, 0) == 0);
	NEED(syscall(SYS_fchownat, any, "", 1, 1, AT_EMPTY_PATH) == 0);
	NEED(syscall(SYS_utimensat, AT_FDCWD, file, times, 0) == 0);
	NEED(syscall(SYS_utimensat, any, "", times, AT_EMPTY_PATH) == 0);
	NEED(chmod(file, 0) == 0 && chmod("/nowhere", 0) == 0 && lchown(file, 1, 1) == 0);
#ifdef SYS_chmod
	NEED(syscall(SYS_chmod, file, 0666) == 0 && syscall(SYS_chown, file, 1, 1) == 0);
	NEED(syscall(SYS_lchown, file, 1, 1) == 0 && syscall(SYS_utime, file, NULL) == 0);
	NEED(syscall(SYS_utimes, file, NULL) == 0);
	NEED(syscall(SYS_futimesat, AT_FDCWD, file, NULL) == 0);
#endif
	NEED(is_untouched());
	REFUSED(SYS_setxattr, file, "user.x", "1", 1, 0);
	REFUSED(SYS_lsetxattr, file, "user.x", "1", 1, 0);
	REFUSED(SETXATTRAT, AT_FDCWD, file, 0, "user.x", NULL, 0);
	REFUSED(SYS_removexattr, file, "user.x");
	REFUSED(SYS_lremovexattr, file, "user.x");
	REFUSED(REMOVEXATTRAT, AT_FDCWD, file, 0, "user.x");
	REFUSED(FILE_SETATTR, AT_FDCWD, file, NULL, 0, 0);
	REFUSED(SYS_inotify_add_watch, -1, file, 1);
	REFUSED(SYS_fanotify_init, 0, 0);
	REFUSED(SYS_open_by_handle_at, -1, NULL, 0);
	REFUSED(OPEN_TREE_ATTR, AT_FDCWD, file, 0, NULL, 0);
	return 0;
}

/* Of what is open. */
static int
descriptors(void)
{
	const struct timespec times[2] = {{77, 0}, {77, 0}};
	int fd = open(file, O_RDWR | O_CLOEXEC);
	struct stat st;

	NEED(fd >= 0 && fchmod(fd, 0640) == 0 && fchown(fd, getuid(), (gid_t)-1) == 0);
	NEED(futimens(fd, times) == 0 && fstat(fd, &st) == 0);
	NEED((st.st_mode & 07777) == 0640 && st.st_mtime == 77);
	ASKED(SYS_fsetxattr, -1, "user.x", "1", 1, 0);
	ASKED(SYS_fremovexattr, -1, "user.x");
	NEED(ftruncate(fd, 1) == 0);
	return 0;
}

static int
priorities(void)
{
	const unsigned long parent = (unsigned long)getppid(), self = (unsigned long)getpid();
	struct sched_param none = {0};
	struct rlimit limit;
	cpu_set_t cpus;

	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0);
	REFUSED(SYS_prlimit64, parent, RLIMIT_NOFILE, NULL, &limit);
	REFUSED(SYS_prlimit64, self, RLIMIT_CPU, NULL, &limit);
	if (HIGH)
		REFUSED(SYS_prlimit64, HIGH, RLIMIT_CPU, NULL, &limit);
	NEED(setpriority(PRIO_PROCESS, 0, 19) == 0 && getpriority(PRIO_PROCESS, 0) == 19);
	REFUSED(SYS_setpriority, PRIO_PROCESS, parent, 19);
	REFUSED(SYS_setpriority, PRIO_PGRP, 0, 19);
	REFUSED(SYS_setpriority, PRIO_USER, 0, 19);
	REFUSED(SYS_setpriority, HIGH | PRIO_USER, 0, 19);
	ASKED(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
	REFUSED(SYS_ioprio_set, IOPRIO_WHO_PROCESS, parent, 0);
	REFUSED(SYS_ioprio_set, IOPRIO_WHO_PGRP, 0, 0);
	REFUSED(SYS_ioprio_set, IOPRIO_WHO_USER, 0, 0);
	NEED(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
	REFUSED(SYS_sched_setscheduler, parent, SCHED_IDLE, &none);
	REFUSED(SYS_sched_setparam, parent, &none);
	REFUSED(SYS_sched_setattr, parent, NULL, 0);
	NEED(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	NEED(sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
	NEED(syscall(SYS_sched_setaffinity, parent, 0, NULL) == 0);
#ifdef SYS_migrate_pages
	REFUSED(SYS_migrate_pages, parent, 0, NULL, NULL);
	REFUSED(SYS_move_pages, parent, 0, NULL, NULL, NULL, 0);
#endif
	return 0;
}

static void *
thread(void *argument)
{
	return argument;
}

static int
ways_around(void)
{
	pthread_t id;
	void *came = NULL;

	MISSING(SYS_io_uring_setup, 1, NULL);
	MISSING(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0);
	MISSING(SYS_io_uring_register, -1, 0, NULL, 0);
	MISSING(NEWER);
	MISSING(1000);
	MISSING(SYS_clone3, NULL, 0);
	NEED(pthread_create(&id, NULL, thread, file) == 0 && pthread_join(id, &came) == 0);
	NEED(came == file);
	for (unsigned long bit = CLONE_NEWNS; bit <= CLONE_NEWNET; bit <<= 1)
		if (bit & 0x7e020000)
			REFUSED(SYS_unshare, bit);
	REFUSED(SYS_unshare, 0x80);
	REFUSED(SYS_unshare, HIGH | CLONE_NEWUSER);
	REFUSED(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	NEED(unshare(CLONE_FILES) == 0);
	REFUSED(SYS_setns, -1, 0);
	REFUSED(SYS_bpf, 0, NULL, 0);
	REFUSED(SYS_perf_event_open, NULL, 0, -1, -1, 0);
	REFUSED(SYS_userfaultfd, 0);
	REFUSED(SYS_mount, "none", "/mnt", "tmpfs", 0, NULL);
	REFUSED(SYS_ioctl, 0, TIOCSTI, "x");
	REFUSED(SYS_ioctl, 0, HIGH | TIOCSTI, "x");
	REFUSED(SYS_ioctl, 0, HIGH | TIOCLINUX, "x");
	ASKED(SYS_ioctl, -1, TIOCGWINSZ, NULL);
	return 0;
}

static int
memory(void)
{
	MISSING(SYS_shmget, 0, 4096, 0600);
	MISSING(SYS_semget, 0, 1, 0600);
	MISSING(SYS_msgget, 0, 0600);
	MISSING(SYS_mq_open, "x", O_RDWR, 0, NULL);
	MISSING(SYS_keyctl, 0, 0, 0);
	MISSING(SYS_add_key, NULL, NULL, NULL, 0, 0);
	MISSING(SYS_request_key, NULL, NULL, NULL, 0);
	MISSING(SYS_memfd_create, "x", 0);
	return 0;
}

static int
counted_memory(void)
{
	NEED(syscall(SYS_memfd_create, "x", 0) >= 0);
	NEED(truncate(file, 2) == 0);
	return 0;
}

static int
old_landlock(void)
{
	errno = 0;
	NEED(truncate(file, 1) != 0 && errno == EPERM);
	NEED(is_untouched());
	return 0;
}

/* What the superuser's program would have gained by being started. */
static int
rights(void)
{
	execl("/bin/sh", "sh", "-c",
	    "while read -r name value; do case $name in CapEff:) [ $((0x$value & ~0x45f3)) = 0 ]; "
	    "exit ;; esac; done </proc/self/status; exit 1",
	    (char *)NULL);
	return __LINE__;
}

#ifdef __x86_64__
static int
of_x32(void)
{
	syscall(0x40000000 | SYS_getpid);
	return 0;
}

static int
of_i386(void)
{
	long pid;

	__asm__ volatile("int $0x80" : "=a"(pid) : "a"(20) : "memory");
	return 0;
}
#endif

static void
test_paths(void **state)
{
	(void)state;
	in_child(paths, false, true);
	in_child(descriptors, false, true);
}

static void
test_priorities(void **state)
{
	(void)state;
	in_child(priorities, false, true);
}

static void
test_ways_around(void **state)
{
	(void)state;
	in_child(ways_around, false, true);
	in_child(rights, false, true);
}

static void
test_memory(void **state)
{
	(void)state;
	in_child(memory, false, true);
	in_child(counted_memory, true, true);
	in_child(old_landlock, false, false);
}

static void
test_other_machines(void **state)
{
	(void)state;
#ifdef __x86_64__
	int status = status_of(of_x32, false, true);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	status = status_of(of_i386, false, true);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
#else
	print_message("skipped: only this machine's own calls are known here\n");
	skip();
#endif
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_paths, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_priorities, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_ways_around, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_memory, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_other_machines, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
