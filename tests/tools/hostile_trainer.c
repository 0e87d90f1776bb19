/* A trainer that tries to get at the agent, for tests/e2e/69-hostile-trainer.sh: "hostile_trainer TARGET RESULTS", in a task's
 * directory. TARGET is a file with the agent's process number, its process group, the name of an abstract
 * socket of somebody else, the version of Landlock and, where the task does not lie in it, the agent's home.
 * RESULTS takes a line for each attack: its name, and "failed", "void" (answered as if it was done: whoever looks at the home
 * says whether it was), or "SUCCEEDED". It leaves a good report, and much else. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEEP 3000

static struct {
	long agent, group;
	char socket[64];
	char home[1024], key[1100], task[1024], cache[1024];
	int landlock; /* the kernel's version */
	FILE *results;
	unsigned count;
} my;

static void
say(const char *name, const char *what)
{
	fprintf(my.results, "%s: %s\n", name, what);
	my.count++;
}

/* Must not succeed. */
#define FAILS(name, ...) say(name, (long)(__VA_ARGS__) < 0 ? "failed" : "SUCCEEDED")
#define CALL(name, ...) FAILS(name, syscall(__VA_ARGS__))
/* May be answered 0. */
#define VOID(name, ...) say(name, (long)(__VA_ARGS__) < 0 ? "failed" : "void")

static char *
in_home(const char *name)
{
	static char path[4][1200];
	static unsigned next;
	char *out = path[next++ % 4];

	snprintf(out, sizeof(path[0]), "%s/%s", my.home, name);
	return out;
}

static char *
of_agent(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/%s", my.agent, name);
	return path;
}

/* --- files */

static void
change_modes(void)
{
	const struct timespec times[2] = {{1, 0}, {1, 0}};
	const char *const paths[] = {my.home, my.key, in_home("work"), in_home("rivulet.conf")};
	char link[64];

	for (size_t i = 0; i < 4; i++) {
		const char *p = paths[i];
		int any = open(p, O_PATH | O_CLOEXEC);
		snprintf(link, sizeof(link), "/proc/self/fd/%d", any);
		VOID("chmod", chmod(p, 0777));
		VOID("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, p, 0777));
		VOID("fchmodat2", syscall(452, AT_FDCWD, p, 0777, AT_SYMLINK_NOFOLLOW));
		VOID("fchmodat2 of a descriptor", syscall(452, any, "", 0777, AT_EMPTY_PATH));
		VOID("chmod through /proc", chmod(link, 0777));
		FAILS("fchmod of a path's descriptor", fchmod(any, 0777));
		VOID("chown", chown(p, 65534, 65534));
		VOID("lchown", lchown(p, 65534, 65534));
		VOID("fchownat", fchownat(any, "", 65534, 65534, AT_EMPTY_PATH));
		FAILS("fchown of a path's descriptor", fchown(any, 65534, 65534));
		VOID("utimensat", utimensat(AT_FDCWD, p, times, 0));
		VOID("utimensat through /proc", utimensat(AT_FDCWD, link, times, 0));
		FAILS("futimens of a path's descriptor", futimens(any, times));
		FAILS("setxattr", setxattr(p, "user.rivulet", "x", 1, 0));
		FAILS("lsetxattr", lsetxattr(p, "user.rivulet", "x", 1, 0));
		FAILS("setxattr through /proc", setxattr(link, "user.rivulet", "x", 1, 0));
		FAILS("removexattr", removexattr(p, "user.rivulet"));
		CALL("setxattrat", 463, AT_FDCWD, p, 0, "user.rivulet", times, sizeof(times));
		CALL("removexattrat", 466, AT_FDCWD, p, 0, "user.rivulet");
		CALL("file_setattr", 469, AT_FDCWD, p, times, sizeof(times), 0);
		close(any);
	}
}

static void
read_files(void)
{
	char path[1200];
	int any = open(my.key, O_PATH | O_CLOEXEC), notify = inotify_init1(IN_CLOEXEC);
	struct {
		uint64_t flags, mode, resolve;
	} how = {O_RDONLY, 0, 0};
	struct {
		unsigned bytes;
		int type;
		unsigned char handle[128];
	} handle = {.bytes = 128};
	int mount = 0;

	FAILS("open the key", open(my.key, O_RDONLY | O_CLOEXEC));
	CALL("openat2", SYS_openat2, AT_FDCWD, my.key, &how, sizeof(how));
	FAILS("list the home", open(my.home, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	FAILS("list the outbox", open(in_home("outbox"), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", any);
	FAILS("open a path's descriptor", open(path, O_RDONLY | O_CLOEXEC));
	snprintf(path, sizeof(path), "/proc/%ld/root%s", my.agent, my.key);
	FAILS("open through /proc/PID/root", open(path, O_RDONLY | O_CLOEXEC));
	FAILS("open through ..", open("../../key.pem", O_RDONLY | O_CLOEXEC));
	FAILS("watch the home", inotify_add_watch(notify, my.home, IN_CREATE));
	CALL("fanotify", SYS_fanotify_init, 0, 0);
	(void)syscall(SYS_name_to_handle_at, AT_FDCWD, my.key, &handle, &mount, 0);
	CALL("open_by_handle_at", SYS_open_by_handle_at, AT_FDCWD, &handle, O_RDONLY);
	FAILS("link the key", link(my.key, "mine"));
	FAILS("link a path's descriptor", linkat(any, "", AT_FDCWD, "mine", AT_EMPTY_PATH));
	FAILS("link through /proc", linkat(AT_FDCWD, path, AT_FDCWD, "mine", AT_SYMLINK_FOLLOW));
	FAILS("execute the key", execl(my.key, "key", (char *)NULL));
	FAILS("link the base",
	    link("base.safetensors", "mine") < 0 ? -1 : open("mine", O_RDWR | O_CLOEXEC));
	FAILS("write to the base", open("base.safetensors", O_WRONLY | O_CLOEXEC));
	close(any);
}

static void
change_files(void)
{
	char other[1200];

	snprintf(other, sizeof(other), "%s.away", my.task);
	FAILS("write to the key", open(my.key, O_WRONLY | O_CLOEXEC));
	FAILS("truncate the key", truncate(my.key, 0));
	FAILS("open and truncate the key", open(my.key, O_RDONLY | O_TRUNC | O_CLOEXEC));
	FAILS("remove the key", unlink(my.key));
	FAILS("rename the key", rename(my.key, "mine"));
	FAILS("replace the key", rename("task.json", my.key));
	CALL("exchange", SYS_renameat2, AT_FDCWD, my.key, AT_FDCWD, "task.json", 2);
	FAILS(
	    "make a file in the home", open(in_home("new"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CALL("make a nameless file in the home", SYS_openat, AT_FDCWD, my.home, O_TMPFILE | O_RDWR,
	    0600);
	FAILS("make a directory in the home", mkdir(in_home("new"), 0700));
	FAILS("make a link in the home", symlink("/etc", in_home("new")));
	FAILS("make a pipe in the home", mkfifo(in_home("new"), 0600));
	FAILS("remove the outbox", rmdir(in_home("outbox")));
	FAILS("rename the outbox", rename(in_home("outbox"), "outbox"));
	FAILS("rename the task's directory", rename(my.task, other));
	FAILS("remove the task's directory", rmdir(my.task));
	FAILS("rename the cache", rename(my.cache, in_home("away")));
	snprintf(other, sizeof(other), "%s/inner", my.cache);
	(void)!mkdir(other, 0700);
	FAILS("move from the cache", rename(other, "inner"));
	FAILS("move from the cache to the home", rename(other, in_home("new")));
	FAILS("exchange with the cache",
	    syscall(SYS_renameat2, AT_FDCWD, other, AT_FDCWD, in_home("outbox"), 2));
	strcat(other, "/key");
	FAILS("move the key to the cache", rename(my.key, other));
	FAILS("link the key to the cache", link(my.key, other));
	FAILS("account to a file", syscall(SYS_acct, in_home("new")));
	(void)!mkdir("own", 0700);
	FAILS("move between directories", rename("task.json", "own/task.json"));
}

/* --- the agent's process */

static void
signal_agent(void)
{
	siginfo_t info = {.si_code = SI_QUEUE};
	int pidfd = (int)syscall(SYS_pidfd_open, my.agent, 0), pair[2];

	FAILS("kill", kill((pid_t)my.agent, SIGKILL));
	FAILS("kill with 0", kill((pid_t)my.agent, 0));
	CALL("tkill", SYS_tkill, my.agent, SIGKILL);
	CALL("tgkill", SYS_tgkill, my.agent, my.agent, SIGKILL);
	CALL("rt_sigqueueinfo", SYS_rt_sigqueueinfo, my.agent, SIGTERM, &info);
	CALL("pidfd_send_signal", SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	CALL("pidfd_getfd", SYS_pidfd_getfd, pidfd, 3, 0);
	FAILS("kill the agent's group", kill((pid_t)-my.group, SIGKILL));
	FAILS("kill the spawner", kill(getppid(), SIGKILL));
	FAILS("enter the agent's group", setpgid(0, (pid_t)my.group));
	FAILS("own a terminal", open("/dev/tty", O_RDWR | O_CLOEXEC));
	FAILS("type at a terminal", ioctl(0, TIOCSTI, "x"));
	/* A signal for what comes in, to somebody else. */
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
		(void)fcntl(pair[0], F_SETOWN, (int)my.agent);
		(void)fcntl(pair[0], F_SETSIG, SIGKILL);
		(void)fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK);
		VOID("SIGIO", write(pair[1], "x", 1));
	}
	close(pidfd);
}

static void
look_into_agent(void)
{
	static const char *const to_read[] = {"mem", "environ", "maps", "auxv", "io", "syscall",
	    "stack", "fd", "fdinfo", "map_files", "cwd/key.pem", "exe"};
	static const char *const to_write[] = {"mem", "oom_score_adj", "oom_adj", "comm",
	    "coredump_filter", "timerslack_ns", "clear_refs", "autogroup", "sched", "loginuid",
	    "uid_map", "attr/current", "make-it-fail"};
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)4096, 1};
	char name[64];

	for (size_t i = 0; i < sizeof(to_read) / sizeof(*to_read); i++) {
		snprintf(name, sizeof(name), "read /proc/PID/%s", to_read[i]);
		int fd = open(of_agent(to_read[i]), O_RDONLY | O_CLOEXEC);
		DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
		errno = 0;
		FAILS(name,
		    fd < 0  ? -1
			: d ? (readdir(d) && readdir(d) && readdir(d) ? 0 : -1)
			    : read(fd, &byte, 1) - 1);
	}
	for (size_t i = 0; i < sizeof(to_write) / sizeof(*to_write); i++) {
		snprintf(name, sizeof(name), "write /proc/PID/%s", to_write[i]);
		FAILS(name, open(of_agent(to_write[i]), O_WRONLY | O_CLOEXEC));
	}
	FAILS("ptrace", ptrace(PTRACE_ATTACH, (pid_t)my.agent, NULL, NULL));
	FAILS("ptrace seize", ptrace(PTRACE_SEIZE, (pid_t)my.agent, NULL, NULL));
	FAILS("process_vm_readv", process_vm_readv((pid_t)my.agent, &here, 1, &there, 1, 0));
	FAILS("process_vm_writev", process_vm_writev((pid_t)my.agent, &here, 1, &there, 1, 0));
	CALL("process_madvise", SYS_process_madvise, -1, NULL, 0, 0, 0);
	CALL("kcmp", SYS_kcmp, my.agent, getpid(), 0, 0, 0);
	CALL("perf_event_open", SYS_perf_event_open, &there, my.agent, -1, -1, 0);
	CALL("move_pages", SYS_move_pages, my.agent, 0, NULL, NULL, NULL, 0);
	CALL("migrate_pages", SYS_migrate_pages, my.agent, 0, NULL, NULL);
	CALL("get_robust_list", SYS_get_robust_list, my.agent, name, name);
}

static void
set_priorities(void)
{
	const struct rlimit least = {0, 0};
	struct rlimit old;
	struct sched_param none = {0};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	FAILS("prlimit", prlimit((pid_t)my.agent, RLIMIT_CPU, &least, NULL));
	FAILS("prlimit of files", prlimit((pid_t)my.agent, RLIMIT_NOFILE, &least, NULL));
	FAILS("prlimit of data", prlimit((pid_t)my.agent, RLIMIT_DATA, &least, NULL));
	FAILS("read limits", prlimit((pid_t)my.agent, RLIMIT_CPU, NULL, &old));
	FAILS("setpriority", setpriority(PRIO_PROCESS, (id_t)my.agent, 19));
	FAILS("setpriority of the group", setpriority(PRIO_PGRP, (id_t)my.group, 19));
	FAILS("setpriority of the user", setpriority(PRIO_USER, 0, 19));
	CALL("ioprio_set", SYS_ioprio_set, 1, my.agent, 3 << 13);
	CALL("ioprio_set of the group", SYS_ioprio_set, 2, my.group, 3 << 13);
	CALL("ioprio_set of the user", SYS_ioprio_set, 3, getuid(), 3 << 13);
	VOID("sched_setaffinity", sched_setaffinity((pid_t)my.agent, sizeof(one), &one));
	FAILS("sched_setscheduler", sched_setscheduler((pid_t)my.agent, SCHED_IDLE, &none));
	FAILS("sched_setparam", sched_setparam((pid_t)my.agent, &none));
	CALL("sched_setattr", SYS_sched_setattr, my.agent, &one, 0);
}

/* --- the kernel */

/* In a child, which is killed; its exit code is 0 if it was answered. */
static int
as_other(int which)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
#ifdef __x86_64__
		long got = 0;
		if (which == 0)
			got = syscall(0x40000000 | SYS_getpid);
		else
			__asm__ volatile("int $0x80" : "=a"(got) : "a"(20) : "memory");
		_exit(got > 0 ? 0 : 1);
#else
		(void)which;
		_exit(1);
#endif
	}
	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static void
pass_by(void)
{
	static const int spaces[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET,
	    CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80};
	char self[64], params[256] = {0};

	for (size_t i = 0; i < 8; i++) {
		snprintf(self, sizeof(self), "unshare %x", (unsigned)spaces[i]);
		FAILS(self, unshare(spaces[i]));
	}
	CALL("clone into a user namespace", SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	CALL("clone3", SYS_clone3, params, 88);
	FAILS("setns", setns(open(of_agent("ns/mnt"), O_RDONLY | O_CLOEXEC), 0));
	CALL("io_uring_setup", SYS_io_uring_setup, 4, params);
	CALL("a call of tomorrow", 471);
	CALL("a call of later", 600);
	FAILS("x32", as_other(0));
	FAILS("i386", as_other(1));
	CALL("mount", SYS_mount, "none", my.task, "tmpfs", 0, NULL);
	CALL("bind mount", SYS_mount, my.home, my.task, NULL, 4096, NULL);
	CALL("open_tree", SYS_open_tree, AT_FDCWD, my.home, 1);
	CALL("umount", SYS_umount2, "/proc", 2);
	CALL("pivot_root", SYS_pivot_root, ".", ".");
	FAILS("chroot", chroot("/"));
	CALL("bpf", SYS_bpf, 0, params, sizeof(params));
	CALL("userfaultfd", SYS_userfaultfd, 0);
	CALL("init_module", SYS_init_module, params, 1, "");
	CALL("kexec_load", SYS_kexec_load, 0, 0, NULL, 0);
	CALL("reboot", SYS_reboot, 0xfee1dead, 672274793, 0x89abcdef, NULL);
	CALL("swapon", SYS_swapon, "/none", 0);
	CALL("quotactl", SYS_quotactl, 0x80000700, NULL, 0, NULL);
	CALL("sethostname", SYS_sethostname, "x", 1);
	CALL("settimeofday", SYS_settimeofday, params, NULL);
	CALL("syslog", SYS_syslog, 5, NULL, 0);
	FAILS("write to the kernel's settings",
	    open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC));
	FAILS("write to control groups", open("/sys/fs/cgroup/cgroup.procs", O_WRONLY | O_CLOEXEC));
}

static int
reach_socket(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path + 1, my.socket, strlen(my.socket));
	int done = connect(fd, (struct sockaddr *)&at,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(my.socket)));
	close(fd);
	return done;
}

/* One that its user may open. */
static int
read_disk(void)
{
	DIR *d = opendir("/dev");
	struct dirent *entry;
	struct stat st;
	int found = -1;

	while (d && found < 0 && (entry = readdir(d)))
		if (fstatat(dirfd(d), entry->d_name, &st, 0) == 0 && S_ISBLK(st.st_mode))
			found = openat(dirfd(d), entry->d_name, O_RDONLY | O_CLOEXEC);
	if (d)
		closedir(d);
	return found;
}

/* Besides the three, and the one of the results. */
static int
inherited(void)
{
	int found = 0;

	for (int fd = 3; fd < 1024; fd++)
		if (fd != fileno(my.results) && fcntl(fd, F_GETFD) >= 0)
			found++;
	return found;
}

static void
keep_memory(void)
{
	char params[64] = {0};

	CALL("memfd_create", SYS_memfd_create, "x", 0);
	CALL("memfd_secret", 447, 0);
	CALL("shmget", SYS_shmget, 0, 4096, 01600);
	CALL("semget", SYS_semget, 0, 1, 01600);
	CALL("msgget", SYS_msgget, 0, 01600);
	CALL("mq_open", SYS_mq_open, "rivulet", O_CREAT | O_RDWR, 0600, NULL);
	CALL("keyctl", SYS_keyctl, 0, -4, 0);
	CALL("add_key", SYS_add_key, "user", "rivulet", params, 1, -4);
	if (my.landlock >= 6)
		FAILS("reach an abstract socket", reach_socket());
	FAILS("read a disk", read_disk());
	FAILS("gain rights", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? -1 : 0);
	FAILS("take the filters off", prctl(PR_SET_SECCOMP, 0, 0, 0, 0));
	FAILS("raise a limit", setrlimit(RLIMIT_NOFILE, &(struct rlimit){1u << 30, 1u << 30}));
	FAILS("go before the agent", open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
}

/* --- what it leaves */

static void
dig(const char *where)
{
	int at = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; i < DEEP && at >= 0; i++) {
		(void)!mkdirat(at, "d", 0700);
		int below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (i % 5 == 4)
			(void)!fchmod(at, 0);
		close(at);
		at = below;
	}
	if (at >= 0)
		close(at);
}

static void
leave(const char *where)
{
	char path[1200];
	int fd;

	dig(where);
	snprintf(path, sizeof(path), "%s/to-home", where);
	(void)!symlink(my.home, path);
	snprintf(path, sizeof(path), "%s/pipe", where);
	(void)!mkfifo(path, 0);
	snprintf(path, sizeof(path), "%s/closed", where);
	(void)!mkdir(path, 0700);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!symlinkat(my.key, fd, "key");
		(void)!fchmod(fd, 0);
		close(fd);
	}
}

/* Files in memory, a process that goes away, directories that nobody may enter. */
static void
leave_all(void)
{
	char path[1200];
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/%s", my.socket);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0) {
		(void)!ftruncate(fd, 1 << 20);
		close(fd);
	}
	snprintf(path, sizeof(path), "/dev/shm/%s.d", my.socket);
	(void)!mkdir(path, 0);
	snprintf(path, sizeof(path), "%s/tmp", my.cache);
	leave(path);
	leave(my.task);
	if (fork() == 0) {
		setsid();
		if (fork() == 0)
			for (;;)
				pause();
		_exit(0);
	}
}

static bool
copy(const char *from, const char *to)
{
	static char block[1 << 16];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n = in < 0 || out < 0 ? -1 : 1;

	while (n > 0 && (n = read(in, block, sizeof(block))) > 0)
		n = write(out, block, (size_t)n);
	close(in);
	close(out);
	return n == 0;
}

static bool
find(const char *target)
{
	FILE *f = fopen(target, "re");
	bool found = f &&
	    fscanf(f, "%ld %ld %63s %d %1023s", &my.agent, &my.group, my.socket, &my.landlock,
		my.home) >= 4;

	if (f)
		fclose(f);
	if (!getcwd(my.task, sizeof(my.task)))
		return false;
	if (!*my.home) {
		snprintf(my.home, sizeof(my.home), "%s", my.task);
		for (int i = 0; i < 2; i++)
			*strrchr(my.home, '/') = '\0';
	}
	snprintf(my.key, sizeof(my.key), "%s/key.pem", my.home);
	snprintf(my.cache, sizeof(my.cache), "%s", getenv("HOME") ? getenv("HOME") : "");
	return found;
}

int
main(int argc, char **argv)
{
	if (argc < 3 || !find(argv[1]) || !(my.results = fopen(argv[2], "we")))
		return 2;
	FAILS("inherit descriptors", inherited() == 0 ? -1 : 0);
	change_modes();
	read_files();
	change_files();
	/* Before version 6 signals are not Landlock's. */
	if (my.landlock >= 6)
		signal_agent();
	look_into_agent();
	set_priorities();
	pass_by();
	keep_memory();
	fprintf(my.results, "%u attacks\n", my.count);
	fclose(my.results);
	if (!copy("base.safetensors", "after.safetensors"))
		return 3;
	FILE *report = fopen("report.json", "we");
	if (!report || fputs("{\"examples\": 40, \"steps\": 1, \"loss\": 1.0}", report) < 0)
		return 4;
	fclose(report);
	leave_all();
	return 0;
}
