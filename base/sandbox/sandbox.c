#include "sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The newest call that this table was made with (listns, Linux 6.19); the same on all machines that rivulet is built for. Whatever
 * comes later is as if the kernel were older. */
#define NEWEST 470
/* Of 32-bit ARM alone: caches, the thread's pointer. */
#define ARM_FIRST 0x0f0001
#define ARM_LAST 0x0f0006

/* --- what is answered instead */

enum answer {
	ALWAYS_DONE, /* 0, and nothing was done: programs die of anything else */
	REFUSED, /* EPERM */
	MISSING, /* ENOSYS: they do it another way */
};

/* --- calls that are always answered so. A name that this machine does not have is passed over. */

/* A file's path is not seen here, but an open file was allowed by Landlock: of two forms of a call, that with a descriptor stays. */
static const char *const modes[] = {"chmod", "fchmodat", "fchmodat2", "chown", "chown32", "lchown",
    "lchown32", "fchownat", "utime", "utimes", NULL};
/* inotify and fanotify tell the names of a directory that may not be listed. */
static const char *const attributes[] = {"setxattr", "lsetxattr", "setxattrat", "removexattr",
    "lremovexattr", "removexattrat", "file_setattr", "inotify_add_watch", "fanotify_init",
    "fanotify_mark", "open_by_handle_at", NULL};
/* Past the filters (clone3 has its flags in memory; clone does the same), or what outlives its process and is counted for none. */
static const char *const passing_by[] = {"io_uring_setup", "io_uring_enter", "io_uring_register",
    "clone3", "shmget", "semget", "msgget", "ipc", "mq_open", "memfd_secret", "add_key",
    "request_key", "keyctl", NULL};
/* For the superuser, for the few who look into kernels, and of other processes. */
static const char *const of_few[] = {"acct", "bpf", "chroot", "clock_settime", "clock_settime64",
    "create_module", "delete_module", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
    "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load", "lookup_dcookie", "mount",
    "mount_setattr", "move_mount", "open_tree", "open_tree_attr", "perf_event_open", "pivot_root",
    "process_madvise", "process_mrelease", "quotactl", "quotactl_fd", "reboot", "setdomainname",
    "sethostname", "setns", "settimeofday", "stime", "swapoff", "swapon", "syslog", "umount",
    "umount2", "userfaultfd", "vhangup", NULL};
static const char *const nameless_memory[] = {"memfd_create", NULL};
static const char *const cutting[] = {"truncate", "truncate64", NULL};

/* Whose names the library of Debian 12 does not know. */
static const struct {
	const char *name;
	int number;
} newer[] = {{"fchmodat2", 452}, {"setxattrat", 463}, {"removexattrat", 466},
    {"open_tree_attr", 467}, {"file_setattr", 469}};

/* --- calls that are answered so for some arguments */

enum when {
	NOT, /* it is not this value, all 64 bits of it */
	IS, /* its lower 32 bits are, of which the kernel takes no more */
	HAS, /* it has this bit */
};

/* Of others, 0 is the caller itself. Who names itself by number, or its process group, is refused as well: numbers are not seen through
 * here. OpenMP binds its threads from outside. */
static const struct condition {
	const char *name;
	enum answer answer;
	enum when when;
	unsigned argument;
	uint64_t value;
} conditions[] = {
    {"futimesat", ALWAYS_DONE, NOT, 1, 0},
    {"utimensat", ALWAYS_DONE, NOT, 1, 0},
    {"utimensat_time64", ALWAYS_DONE, NOT, 1, 0},
    {"prlimit64", REFUSED, NOT, 0, 0},
    {"setpriority", REFUSED, NOT, 0, PRIO_PROCESS},
    {"setpriority", REFUSED, NOT, 1, 0},
    {"ioprio_set", REFUSED, NOT, 0, IOPRIO_WHO_PROCESS},
    {"ioprio_set", REFUSED, NOT, 1, 0},
    {"sched_setparam", REFUSED, NOT, 0, 0},
    {"sched_setscheduler", REFUSED, NOT, 0, 0},
    {"sched_setattr", REFUSED, NOT, 0, 0},
    {"sched_setaffinity", ALWAYS_DONE, NOT, 0, 0},
    {"migrate_pages", REFUSED, NOT, 0, 0},
    {"move_pages", REFUSED, NOT, 0, 0},
    {"clone", REFUSED, HAS, 0, CLONE_NEWNS},
    {"clone", REFUSED, HAS, 0, CLONE_NEWCGROUP},
    {"clone", REFUSED, HAS, 0, CLONE_NEWUTS},
    {"clone", REFUSED, HAS, 0, CLONE_NEWIPC},
    {"clone", REFUSED, HAS, 0, CLONE_NEWUSER},
    {"clone", REFUSED, HAS, 0, CLONE_NEWPID},
    {"clone", REFUSED, HAS, 0, CLONE_NEWNET},
    {"unshare", REFUSED, HAS, 0, CLONE_NEWTIME},
    {"unshare", REFUSED, HAS, 0, CLONE_NEWNS},
    {"unshare", REFUSED, HAS, 0, CLONE_NEWCGROUP},
    {"unshare", REFUSED, HAS, 0, CLONE_NEWUTS},
    {"unshare", REFUSED, HAS, 0, CLONE_NEWIPC},
    {"unshare", REFUSED, HAS, 0, CLONE_NEWUSER},
    {"unshare", REFUSED, HAS, 0, CLONE_NEWPID},
    {"unshare", REFUSED, HAS, 0, CLONE_NEWNET},
    /* Text as if it was typed at a terminal. */
    {"ioctl", REFUSED, IS, 1, TIOCSTI},
    {"ioctl", REFUSED, IS, 1, TIOCLINUX},
};

/* --- the filters */

static uint32_t
action(enum answer answer)
{
	static const uint16_t numbers[] = {
	    [ALWAYS_DONE] = 0, [REFUSED] = EPERM, [MISSING] = ENOSYS};

	return SCMP_ACT_ERRNO(numbers[answer]);
}

static int
find(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	for (size_t i = 0; number < 0 && i < sizeof(newer) / sizeof(newer[0]); i++)
		if (strcmp(newer[i].name, name) == 0)
			number = newer[i].number;
	return number;
}

static int
answer(scmp_filter_ctx filter, enum answer answer, const char *const *names)
{
	int failed = 0;

	for (; !failed && *names; names++)
		if (find(*names) >= 0)
			failed = seccomp_rule_add(filter, action(answer), find(*names), 0);
	return failed;
}

static struct scmp_arg_cmp
test_of(const struct condition *c)
{
	uint64_t mask = c->when == HAS ? c->value : UINT32_MAX;

	if (c->when == NOT)
		return (struct scmp_arg_cmp){c->argument, SCMP_CMP_NE, c->value, 0};
	return (struct scmp_arg_cmp){c->argument, SCMP_CMP_MASKED_EQ, mask, c->value};
}

static int
answer_some(scmp_filter_ctx filter)
{
	int failed = 0;

	for (size_t i = 0; !failed && i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		const struct condition *c = &conditions[i];
		const struct scmp_arg_cmp is = test_of(c);
		if (find(c->name) >= 0)
			failed = seccomp_rule_add(filter, action(c->answer), find(c->name), 1, is);
	}
	return failed;
}

static int
refuse(scmp_filter_ctx filter, const struct sandbox_options *o)
{
	int failed = answer(filter, ALWAYS_DONE, modes);

	failed = failed ? failed : answer(filter, REFUSED, attributes);
	failed = failed ? failed : answer(filter, MISSING, passing_by);
	failed = failed ? failed : answer(filter, REFUSED, of_few);
	if (!failed && !o->memory_counted)
		failed = answer(filter, MISSING, nameless_memory);
	if (!failed && !o->truncate_decided)
		failed = answer(filter, REFUSED, cutting);
	return failed ? failed : answer_some(filter);
}

/* Everything there is, by its number. */
static int
know(scmp_filter_ctx filter)
{
	int failed = 0;

	for (int number = 0; !failed && number <= NEWEST; number++)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
#ifdef __arm__
	for (int number = ARM_FIRST; !failed && number <= ARM_LAST; number++)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
#endif
	return failed;
}

/* Calls in the manner of another machine (i386, x32, 32-bit ARM) would be other calls by the same numbers. */
static int
settle(scmp_filter_ctx filter)
{
	int failed = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	/* Before Linux 4.14, or where seccomp itself is refused and prctl is not. */
	if (failed)
		failed = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_THREAD);
	/* A tree: two hundred comparisons less. */
	return failed ? failed : seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
}

/* Of two filters the kernel does what the stricter one says. */
static int
enter(const struct sandbox_options *o)
{
	scmp_filter_ctx refusing = seccomp_init(SCMP_ACT_ALLOW);
	scmp_filter_ctx knowing = seccomp_init(action(MISSING));
	int failed = refusing && knowing ? 0 : -ENOMEM;

	failed = failed ? failed : settle(refusing);
	failed = failed ? failed : settle(knowing);
	failed = failed ? failed : refuse(refusing, o);
	failed = failed ? failed : know(knowing);
	failed = failed ? failed : seccomp_load(refusing);
	failed = failed ? failed : seccomp_load(knowing);
	seccomp_release(refusing);
	seccomp_release(knowing);
	return failed;
}

/* --- */

/* What reaches neither other processes nor the machine. */
#define KEPT \
	(1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE | 1U << CAP_FSETID | 1U << CAP_KILL | \
	    1U << CAP_SETGID | 1U << CAP_SETUID | 1U << CAP_SETPCAP | 1U << CAP_NET_BIND_SERVICE | \
	    1U << CAP_IPC_LOCK)

/* Whoever has none is not asked; what the bounding set loses does not come back with exec. */
static void
drop_capabilities(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct held[2];

	if (syscall(SYS_capget, &head, held) != 0)
		return;
	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (i >= 32 || !(KEPT & 1U << i))
			(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	held[0].effective &= KEPT;
	held[0].permitted &= KEPT;
	held[0].inheritable &= KEPT;
	held[1] = (struct __user_cap_data_struct){0};
	(void)syscall(SYS_capset, &head, held);
}

bool
sandbox_works(void)
{
	/* A filter at no address: whoever has filters looks there. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) != 0 && errno == EFAULT;
}

enum err
sandbox_enter(const struct sandbox_options *o, struct why *why)
{
	if (!sandbox_works())
		return err_set(why, ERR_UNSUPPORTED, "this kernel has no seccomp filters");
	drop_capabilities();
	int failed = enter(o);
	if (!failed)
		return ERR_OK;
	errno = -failed;
	return err_errno(why, "seccomp");
}
