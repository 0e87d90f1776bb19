/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ram.h"

static void
put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Its own group and all around it; what is no number says nothing. */
static void
groups(void **state)
{
	char dir[] = "/tmp/rivulet.XXXXXX", path[128];

	(void)state;
	assert_non_null(mkdtemp(dir));
	static const char *const folders[] = {"/a", "/a/b"};
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	assert_true(ram_cgroup("0::/a/b\n", dir) == UINT64_MAX);
	snprintf(path, sizeof(path), "%s/a/memory.max", dir);
	put(path, "5000000\n");
	assert_int_equal(ram_cgroup("0::/a/b\n", dir), 5000000);
	assert_int_equal(ram_cgroup("1:name=x:/a\n0::/a/b\n", dir), 5000000);
	assert_int_equal(ram_cgroup("0::/a", dir), 5000000);
	assert_true(ram_cgroup("0::/\n", dir) == UINT64_MAX);
	assert_true(ram_cgroup("1:memory:/a\n", dir) == UINT64_MAX);
	assert_true(ram_cgroup("", dir) == UINT64_MAX);
	snprintf(path, sizeof(path), "%s/a/b/memory.max", dir);
	put(path, "max\n");
	assert_int_equal(ram_cgroup("0::/a/b\n", dir), 5000000);
	put(path, "4096\n");
	assert_int_equal(ram_cgroup("0::/a/b\n", dir), 4096);
	unlink(path);
	/* The kernel's files have no length before they are read. */
	unsigned long long pids = 0;
	FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	if (f && fscanf(f, "%llu", &pids) == 1) {
		assert_int_equal(symlink("/proc/sys/kernel/pid_max", path), 0);
		assert_int_equal(ram_cgroup("0::/a/b\n", dir), pids < 5000000 ? pids : 5000000);
		unlink(path);
	}
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "%s/a/memory.max", dir);
	unlink(path);
	for (size_t i = 2; i-- > 0;) {
		snprintf(path, sizeof(path), "%s%s", dir, folders[i]);
		rmdir(path);
	}
	rmdir(dir);
}

static void
memory(void **state)
{
	uint64_t all = ram_limit();
	struct rlimit was, less;

	(void)state;
	assert_true(all > 1 << 20);
#ifdef __SANITIZE_ADDRESS__
	skip(); /* it has taken more addresses than that */
#endif
	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	less = was;
	less.rlim_cur = (rlim_t)(all - 4096);
	assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
	assert_int_equal(ram_limit(), all - 4096);
	assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(groups),
	    cmocka_unit_test(memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
