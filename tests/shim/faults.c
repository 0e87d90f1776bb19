/*
 * LD_PRELOAD=faults.so: system calls fail as the file named by RIVULET_SHIM says, which may change at any time. Each line is
 *
 *     CALL ERRNO PATTERN      CALL: open, look, write, read, map, sync, rename, access, accept; PATTERN: a part of the path, * for all
 *     memory ENOMEM BYTES     allocations of at least so many bytes fail
 *
 * with write for write, pwrite and pwrite64, sync for fsync and fdatasync, open for what creates or writes only, look for opening what is
 * only read and for asking whether it may be, map for the pages of a file, which are then as those of a disk that fails, access for what asks
 * after writing only, and rename by its second path. ERRNO: ENOSPC, EROFS, EIO, EMFILE, ENOMEM, EACCES; or KILL:N, and the process ends by SIGKILL in its Nth such call;
 * or SLOW:N, and such a call takes N ms longer.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RULES_MAX 16
#define TEXT_MAX 2048

struct rule {
	char call[12], pattern[200];
	int number;
	unsigned long left; /* calls until the kill; 0: it fails with the number */
	unsigned long slow_ms; /* not 0: it does not fail */
};

static struct rule rules[RULES_MAX];
static volatile int rule_count;
static volatile size_t memory_limit; /* 0: none */
static struct timespec read_at;
static off_t read_size = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static int
number_of(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} all[] = {{"ENOSPC", ENOSPC}, {"EROFS", EROFS}, {"EIO", EIO}, {"EMFILE", EMFILE},
	    {"ENOMEM", ENOMEM}, {"EACCES", EACCES}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].number;
	return EIO;
}

/* Allocates nothing: malloc itself comes by here. Lock held. */
static void
parse(char *text)
{
	char *line, *rest = text, name[16];
	struct rule r;
	int n = 0;
	size_t limit = 0;

	while ((line = strsep(&rest, "\n")) && n < RULES_MAX) {
		if (sscanf(line, "%11s %15s %199s", r.call, name, r.pattern) != 3)
			continue;
		r.number = number_of(name);
		r.left = strncmp(name, "KILL:", 5) == 0 ? strtoul(name + 5, NULL, 10) : 0;
		r.slow_ms = strncmp(name, "SLOW:", 5) == 0 ? strtoul(name + 5, NULL, 10) : 0;
		if (strcmp(r.call, "memory") == 0)
			limit = strtoul(r.pattern, NULL, 10);
		else
			rules[n++] = r;
	}
	rule_count = n;
	memory_limit = limit;
}

static void
refresh(void)
{
	static __thread int inside;
	const char *path = getenv("RIVULET_SHIM");
	char text[TEXT_MAX];
	struct stat st;

	if (!path || inside || syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0) != 0)
		return;
	inside = 1;
	pthread_mutex_lock(&lock);
	if (st.st_size != read_size || st.st_mtim.tv_sec != read_at.tv_sec ||
	    st.st_mtim.tv_nsec != read_at.tv_nsec) {
		long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
		long n = fd < 0 ? -1 : syscall(SYS_read, fd, text, sizeof(text) - 1);
		if (n >= 0) {
			text[n] = '\0';
			parse(text);
			read_at = st.st_mtim;
			read_size = st.st_size;
		}
		if (fd >= 0)
			syscall(SYS_close, fd);
	}
	pthread_mutex_unlock(&lock);
	inside = 0;
}

/* Lock held. */
static int
hit(struct rule *r)
{
	if (r->left == 0)
		return r->number;
	if (--r->left == 0)
		kill(getpid(), SIGKILL);
	return 0;
}

/* The errno this call must fail with, or 0. */
static int
fails(const char *call, const char *path)
{
	unsigned long slow_ms = 0;
	int number = 0;

	refresh();
	if (rule_count == 0)
		return 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < rule_count && !number; i++)
		if (strcmp(rules[i].call, call) == 0 &&
		    (rules[i].pattern[0] == '*' || strstr(path, rules[i].pattern))) {
			slow_ms += rules[i].slow_ms;
			number = rules[i].slow_ms ? 0 : hit(&rules[i]);
		}
	pthread_mutex_unlock(&lock);
	if (slow_ms > 0)
		usleep((useconds_t)slow_ms * 1000);
	return number;
}

static int
fails_fd(const char *call, int fd)
{
	char link[40], path[1100] = "";

	refresh();
	if (rule_count == 0)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) < 0 || path[0] != '/')
		return 0; /* a socket or a pipe */
	return fails(call, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define REFUSE(number) \
	do { \
		int number_ = (number); \
		if (number_) { \
			errno = number_; \
			return -1; \
		} \
	} while (0)

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		va_list ap; \
		va_start(ap, flags); \
		mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(ap, mode_t) : 0; \
		va_end(ap); \
		REFUSE(fails(flags &(O_CREAT | O_WRONLY | O_RDWR) ? "open" : "look", path)); \
		return NEXT(name)(path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

/* What open becomes where its checks are compiled in and nothing is created. */
int __open64_2(const char *path, int flags);

int
__open64_2(const char *path, int flags)
{
	return open64(path, flags);
}

ssize_t
write(int fd, const void *p, size_t n)
{
	REFUSE(fails_fd("write", fd));
	return NEXT(write)(fd, p, n);
}

ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
	REFUSE(fails_fd("write", fd));
	return NEXT(pwrite)(fd, p, n, at);
}

ssize_t
pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	REFUSE(fails_fd("write", fd));
	return NEXT(pwrite64)(fd, p, n, at);
}

ssize_t
pread(int fd, void *p, size_t n, off_t at)
{
	REFUSE(fails_fd("read", fd));
	return NEXT(pread)(fd, p, n, at);
}

ssize_t
pread64(int fd, void *p, size_t n, off64_t at)
{
	REFUSE(fails_fd("read", fd));
	return NEXT(pread64)(fd, p, n, at);
}

/* Touching them is SIGBUS: there is no byte behind them. */
static void *
map_nothing(size_t len, int prot, int flags)
{
	int empty = memfd_create("nothing", MFD_CLOEXEC);
	long at = empty < 0 ? -1 : syscall(SYS_mmap, NULL, len, prot, flags, empty, 0);

	if (empty >= 0)
		syscall(SYS_close, empty);
	return at == -1 ? MAP_FAILED : (void *)at;
}

#define MMAP(name, offset) \
	void *name(void *address, size_t len, int prot, int flags, int fd, offset at) \
	{ \
		if (fd >= 0 && !address && fails_fd("map", fd)) \
			return map_nothing(len, prot, flags); \
		return (void *)syscall(SYS_mmap, address, len, prot, flags, fd, at); \
	}
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

int
fdatasync(int fd)
{
	REFUSE(fails_fd("sync", fd));
	return NEXT(fdatasync)(fd);
}

int
fsync(int fd)
{
	REFUSE(fails_fd("sync", fd));
	return NEXT(fsync)(fd);
}

int
rename(const char *from, const char *to)
{
	REFUSE(fails("rename", to));
	return NEXT(rename)(from, to);
}

int
access(const char *path, int mode)
{
	if (mode & (R_OK | W_OK))
		REFUSE(fails(mode & W_OK ? "access" : "look", path));
	return NEXT(access)(path, mode);
}

int
accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	REFUSE(fails("accept", ""));
	return NEXT(accept4)(fd, address, len, flags);
}

static int
too_much(size_t n)
{
	if (n < 65536)
		return 0;
	refresh();
	return memory_limit > 0 && n >= memory_limit;
}

void *
malloc(size_t n)
{
	if (too_much(n)) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
	if (size > 0 && too_much(n * size)) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
	if (too_much(n)) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_realloc(p, n);
}
