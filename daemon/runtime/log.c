#include "log.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

enum {
	LINE_MAX_BYTES = 1024,
	TAIL = 5 /* kept free for " ..." and the newline */
};

struct line {
	char text[LINE_MAX_BYTES];
	size_t len;
	bool full;
};

static const struct {
	const char *name;
	int priority; /* syslog(3) */
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", 3},
    [LOG_LEVEL_WARN] = {"warn", 4},
    [LOG_LEVEL_INFO] = {"info", 6},
    [LOG_LEVEL_DEBUG] = {"debug", 7},
};

static atomic_ullong skipped_total;
static atomic_int threshold = LOG_LEVEL_INFO;

void
log_set_level(enum log_level level)
{
	atomic_store(&threshold, (int)level);
}

bool
log_has_room(enum log_level level)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t second;
	static unsigned lines;
	static unsigned long long skipped;

	if ((int)level > atomic_load(&threshold))
		return false;
	uint64_t now = clock_ms() / 1000;
	pthread_mutex_lock(&lock);
	if (now != second)
		lines = 0;
	second = now;
	bool room = lines < LOG_CROWD;
	unsigned long long before = room ? skipped : 0;
	lines += room;
	skipped = room ? 0 : skipped + 1;
	pthread_mutex_unlock(&lock);
	if (!room)
		atomic_fetch_add(&skipped_total, 1);
	if (before > 0)
		log_event(LOG_LEVEL_INFO, "log.skipped", LOG_U("lines", before));
	return room;
}

unsigned long long
log_skipped(void)
{
	return atomic_load(&skipped_total);
}

static void __attribute__((format(printf, 2, 3))) add(struct line *l, const char *fmt, ...)
{
	size_t room = sizeof(l->text) - TAIL - l->len;
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(l->text + l->len, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		l->full = true;
	else
		l->len += (size_t)n;
}

static bool
is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	    (c && strchr("_.:/+-", c));
}

/* Everything beyond printable ASCII is escaped: C1 control characters hide inside UTF-8 too. */
static void
add_string(struct line *l, const char *s)
{
	size_t plain = 0;

	while (is_plain(s[plain]))
		plain++;
	if (plain > 0 && !s[plain]) {
		add(l, "%s", s);
		return;
	}
	add(l, "\"");
	for (; *s && !l->full; s++) {
		if (*s == '"' || *s == '\\')
			add(l, "\\%c", *s);
		else if (*s >= ' ' && *s <= '~')
			add(l, "%c", *s);
		else
			add(l, "\\x%02x", (unsigned)(unsigned char)*s);
	}
	add(l, "\"");
}

/* A pair that does not fit is left out whole. */
static void
add_pair(struct line *l, const struct log_pair *p)
{
	size_t before = l->len;

	add(l, " %s=", p->key);
	switch (p->kind) {
	case LOG_STRING:
		add_string(l, p->s ? p->s : "");
		break;
	case LOG_UNSIGNED:
		add(l, "%llu", p->u);
		break;
	case LOG_DOUBLE:
		add(l, "%.6g", p->d);
		break;
	}
	if (l->full)
		l->len = before;
}

/* The journal tells its writers which device and inode its socket has (systemd.exec(5)). */
static bool
stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%" SCNuMAX ":%" SCNuMAX, &dev, &ino) == 2 &&
	    fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static void
add_prefix(struct line *l, enum log_level level)
{
	struct tm tm;
	char date[32];

	if (stderr_is_journal()) {
		add(l, "<%d>", levels[level].priority);
		return;
	}
	double now = clock_wall();
	time_t whole = (time_t)floor(now);
	gmtime_r(&whole, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	add(l, "%s.%03dZ ", date, (int)((now - (double)whole) * 1000 + 0.5) % 1000);
}

void
log_pairs(enum log_level level, const char *event, const struct log_pair *pairs)
{
	struct line l = {.len = 0};

	if ((int)level > atomic_load(&threshold))
		return;
	add_prefix(&l, level);
	add(&l, "%s %s", levels[level].name, event);
	for (; pairs->key && !l.full; pairs++)
		add_pair(&l, pairs);
	memcpy(l.text + l.len, l.full ? " ...\n" : "\n", l.full ? 5 : 1);
	l.len += l.full ? 5 : 1;
	/* A log that cannot be written has nowhere to be reported. */
	ssize_t n = write(STDERR_FILENO, l.text, l.len);
	(void)n;
}
