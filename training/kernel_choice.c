#include "kernel_choice.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "gemm_choice.h"
#include "hash.h"
#include "hex.h"
#include "version.h"

#define LINE_ROOM 256
#define WAIT_MS 2000 /* for another process that measures, which takes a fiftieth of it */
#define SLEEP_NS 5000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool ready;

/* The file's. What does not fit is cut off, and so fails its checks. */
struct text {
	char data[KERNEL_CHOICE_MAX + 1];
	size_t len;
};
static struct text kept;

__attribute__((format(printf, 2, 3))) static void
say(struct text *t, const char *fmt, ...)
{
	size_t room = sizeof(t->data) - t->len;
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(t->data + t->len, room, fmt, args);
	va_end(args);
	if (n > 0)
		t->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* --- what a choice holds for */

/* Of the first CPU's entry, what tells it from other kinds. */
static bool
is_kind(const char *line)
{
	static const char *const names[] = {"vendor_id", "cpu family", "model", "model name",
	    "stepping", "CPU implementer", "CPU architecture", "CPU variant", "CPU part",
	    "CPU revision"};
	size_t len = strcspn(line, "\t:");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == len && memcmp(names[i], line, len) == 0)
			return true;
	return false;
}

static void
say_cpu(struct text *t)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[LINE_ROOM];

	say(t, "cpu");
	while (f && fgets(line, sizeof(line), f) && line[0] != '\n') {
		const char *value = line + strcspn(line, ":");
		value += strspn(value, ": ");
		if (is_kind(line))
			say(t, " %.*s", (int)strcspn(value, "\n"), value);
	}
	if (f)
		fclose(f);
	say(t, "\n");
}

/* given: by another process of this machine, whose environment may make OpenBLAS work for another processor. */
static void
say_head(struct text *t, bool given)
{
	char blas[LINE_ROOM];

	gemm_choice_blas(blas, sizeof(blas));
	say(t, "rivulet kernels 1\nversion %s\nvectors %s\n", version_text(),
	    gemm_choice_vectors());
	say_cpu(t);
	if (!given)
		say(t, "blas %s\n", blas);
}

/* --- the choice, the times and the sum */

static void
say_choice(struct text *t, const struct gemm_choice *c)
{
	for (size_t i = 0; i < GEMM_CLASSES; i++)
		say(t, "%s%s=%s", i > 0 ? " " : "", gemm_choice_class_name((enum gemm_class)i),
		    gemm_choice_way_name(c->way[i]));
	say(t, "\n");
}

/* For people alone. */
static void
say_times(struct text *t, const struct gemm_times *times)
{
	for (size_t i = 0; i < GEMM_CLASSES; i++) {
		say(t, "microseconds %s", gemm_choice_class_name((enum gemm_class)i));
		for (size_t way = 0; way < GEMM_WAYS; way++)
			if (times->ms[i][way] > 0)
				say(t, " %s %.2f", gemm_choice_way_name((enum gemm_way)way),
				    1000 * times->ms[i][way]);
		say(t, "\n");
	}
}

static void
say_sum(struct text *t)
{
	uint8_t hash[HASH_LEN];
	char hex[2 * HASH_LEN + 1];

	hash_sha256(hash, t->data, t->len);
	hex_encode(hex, hash, sizeof(hash));
	say(t, "sha256 %s\n", hex);
}

/* Whole, and of this machine and version: then the ways are in *choice. */
static bool
read_text(struct gemm_choice *choice, const char *text, size_t len, bool given)
{
	static const char sum[] = "\nsha256 ";
	const char *end = len <= KERNEL_CHOICE_MAX ? strstr(text, sum) : NULL;
	struct text head = {.len = 0}, whole = {.len = 0}, words = {.len = 0};

	if (!end || strlen(text) != len)
		return false;
	say(&whole, "%.*s\n", (int)(end - text), text);
	say_sum(&whole);
	say_head(&head, given);
	if (strcmp(whole.data, text) != 0 || strncmp(text, head.data, head.len) != 0)
		return false;
	const char *line = text + head.len;
	if (given)
		line += strcspn(line, "\n") + 1;
	char own[KERNEL_CHOICE_MAX + 1];
	snprintf(own, sizeof(own), "%.*s", (int)strcspn(line, "\n"), line);
	*choice = gemm_choice_usual();
	if (gemm_choice_read(choice, own, NULL))
		return false;
	/* All classes by their names, each once. */
	say_choice(&words, choice);
	return strncmp(line, words.data, words.len) == 0;
}

/* --- where it is kept */

/* "" if there is no place. */
static void
find_directory(char out[PATH_MAX], const char *home)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *user = getenv("HOME");
	int n = 0;

	if (home)
		n = snprintf(out, PATH_MAX, "%s", home);
	else if (cache && *cache == '/')
		n = snprintf(out, PATH_MAX, "%s/rivulet", cache);
	else if (user && *user == '/')
		n = snprintf(out, PATH_MAX, "%s/.cache/rivulet", user);
	if (n <= 0 || n >= PATH_MAX - (int)sizeof("/" KERNEL_CHOICE_FILE))
		out[0] = '\0';
	else if (!home && file_mkdirs(out, 0700, NULL))
		out[0] = '\0';
}

static bool
read_kept(struct gemm_choice *choice, const char *directory)
{
	char path[PATH_MAX + sizeof(KERNEL_CHOICE_FILE)], *text = NULL;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/%s", directory, KERNEL_CHOICE_FILE);
	if (!*directory || file_read(path, KERNEL_CHOICE_MAX, &text, &len, NULL))
		return false;
	bool good = read_text(choice, text, len, false);
	if (good) {
		memcpy(kept.data, text, len + 1);
		kept.len = len;
	}
	free(text);
	return good;
}

/* The directory itself is locked: a file for it would stay. -1: it cannot be, or somebody holds it for long. */
static int
lock_directory(const char *directory)
{
	const struct timespec pause = {0, SLEEP_NS};
	int fd = *directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	for (uint64_t until = clock_ms() + WAIT_MS; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB);) {
		if (clock_ms() > until) {
			close(fd);
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return fd;
}

/* What cannot be written is this process's own. */
static void
measure(struct gemm_choice *choice, const char *directory)
{
	char path[PATH_MAX + sizeof(KERNEL_CHOICE_FILE)];
	struct gemm_times times;

	*choice = gemm_choice_usual();
	memset(&times, 0, sizeof(times));
	(void)!gemm_choice_measure(choice, &times);
	kept.len = 0;
	say_head(&kept, false);
	say_choice(&kept, choice);
	say_times(&kept, &times);
	say_sum(&kept);
	snprintf(path, sizeof(path), "%s/%s", directory, KERNEL_CHOICE_FILE);
	if (*directory)
		(void)!file_write(path, kept.data, kept.len, 0644, NULL);
}

static void
find(const char *home)
{
	char directory[PATH_MAX] = "";
	struct gemm_choice choice;

	find_directory(directory, home);
	if (!read_kept(&choice, directory)) {
		int fd = lock_directory(directory);
		/* Another process may have been quicker. */
		if (!read_kept(&choice, directory))
			measure(&choice, directory);
		if (fd >= 0)
			close(fd);
	}
	gemm_choice_set(&choice);
}

/* --- for callers */

void
kernel_choice_ready(const char *home)
{
	pthread_mutex_lock(&lock);
	if (!ready && !gemm_choice_forced())
		find(home);
	ready = true;
	pthread_mutex_unlock(&lock);
}

const char *
kernel_choice_text(void)
{
	return kept.data;
}

bool
kernel_choice_take(const char *text)
{
	struct gemm_choice choice;
	size_t len = strlen(text);

	if (gemm_choice_forced() || !read_text(&choice, text, len, true))
		return false;
	pthread_mutex_lock(&lock);
	memcpy(kept.data, text, len + 1);
	kept.len = len;
	gemm_choice_set(&choice);
	ready = true;
	pthread_mutex_unlock(&lock);
	return true;
}
