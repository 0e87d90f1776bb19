#include "ram.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "num.h"

/* A file of the kernel's, whose length it does not say before it is read: at most max bytes of it. NULL: it cannot be read. */
static char *
read_kernel(const char *path, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : malloc(max + 1);
	size_t len = 0;
	ssize_t n = 0;

	while (text && len < max && (n = read(fd, text + len, max - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	if (text && n >= 0) {
		text[len] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

/* One line of a file as a number; UINT64_MAX for anything else, such as "max". */
static uint64_t
read_limit(const char *path)
{
	char *text = read_kernel(path, 64);
	uint64_t v = UINT64_MAX;

	if (!text)
		return v;
	text[strcspn(text, "\n")] = '\0';
	if (!num_u64(text, UINT64_MAX, &v))
		v = UINT64_MAX;
	free(text);
	return v;
}

uint64_t
ram_cgroup(const char *groups, const char *folder)
{
	const char *own = strncmp(groups, "0::/", 4) == 0 ? groups : strstr(groups, "\n0::/");
	char path[PATH_MAX], file[PATH_MAX + 16];
	uint64_t least = UINT64_MAX;
	size_t base = strlen(folder);

	if (!own)
		return least;
	own = strchr(own, '/');
	size_t len = strcspn(own, "\n");
	if (base + len >= sizeof(path))
		return least;
	snprintf(path, sizeof(path), "%s%.*s", folder, (int)len, own);
	/* From its own to the outermost: each holds for all within it. */
	for (char *end = path + base + len; end >= path + base; end = strrchr(path, '/')) {
		*end = '\0';
		snprintf(file, sizeof(file), "%s/memory.max", path);
		uint64_t limit = read_limit(file);
		least = limit < least ? limit : least;
	}
	return least;
}

static uint64_t
limit_of(const struct rlimit *limit)
{
	return limit->rlim_cur != RLIM_INFINITY ? limit->rlim_cur : UINT64_MAX;
}

uint64_t
ram_limit(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	char *groups = read_kernel("/proc/self/cgroup", 64u << 10);
	uint64_t most = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
	uint64_t all[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0)
		all[0] = limit_of(&limit);
	if (getrlimit(RLIMIT_DATA, &limit) == 0)
		all[1] = limit_of(&limit);
	if (groups)
		all[2] = ram_cgroup(groups, "/sys/fs/cgroup");
	free(groups);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		most = all[i] < most ? all[i] : most;
	return most == UINT64_MAX ? 0 : most;
}
